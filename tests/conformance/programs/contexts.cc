// Programs about contexts and their options.

#include "program.h"

namespace {

// What a context of the program's own has: itself as the current one, a default stream, and the
// device's cores.
void ContextQuery() {
  CHECK_OK(aclInit(nullptr));
  CHECK_OK(aclrtSetDevice(0));
  aclrtContext context = nullptr, current = nullptr;
  CHECK_OK(aclrtCreateContext(&context, 0));
  CHECK_OK(aclrtGetCurrentContext(&current));
  CHECK_TRUE(current == context);
  aclrtStream stream = nullptr;
  CHECK_OK(aclrtCtxGetCurrentDefaultStream(&stream));
  CHECK_TRUE(stream != nullptr);
  for (const aclrtDevResLimitType type : {ACL_RT_DEV_RES_CUBE_CORE, ACL_RT_DEV_RES_VECTOR_CORE}) {
    uint32_t cores = 0;
    CHECK_OK(aclrtGetResInCurrentThread(type, &cores));
    CHECK_TRUE(cores > 0);
  }
  CHECK_OK(aclrtDestroyContext(context));
  CHECK_OK(aclrtResetDevice(0));
  CHECK_OK(aclFinalize());
}

void CheckPrimaryContext(int32_t expected) {
  uint32_t flags = 1;
  int32_t active = -1;
  CHECK_OK(aclrtGetPrimaryCtxState(0, &flags, &active));
  CHECK_TRUE(active == expected && flags == 0);
}

// Deterministic algorithms for one context and not for another, beside the process's own option.
void ContextScopedDeterminism() {
  CHECK_OK(aclInit(nullptr));
  CheckPrimaryContext(0);
  CHECK_OK(aclrtSetDevice(0));
  CheckPrimaryContext(1);
  int64_t before = -1, value = -1;
  CHECK_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &before));
  CHECK_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, 1));
  CHECK_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK_TRUE(value == 1);
  CHECK_OK(aclrtSetSysParamOpt(ACL_OPT_DETERMINISTIC, before));

  aclrtContext contexts[2] = {};
  for (int64_t i = 0; i < 2; ++i) {
    CHECK_OK(aclrtCreateContext(&contexts[i], 0));
    CHECK_OK(aclrtSetCurrentContext(contexts[i]));
    CHECK_OK(aclrtCtxSetSysParamOpt(ACL_OPT_DETERMINISTIC, i));
  }
  for (int64_t i = 0; i < 2; ++i) {
    CHECK_OK(aclrtSetCurrentContext(contexts[i]));
    CHECK_OK(aclrtCtxGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
    CHECK_TRUE(value == i);
  }
  CHECK_OK(aclrtGetSysParamOpt(ACL_OPT_DETERMINISTIC, &value));
  CHECK_TRUE(value == before);
  for (const aclrtContext context : contexts) CHECK_OK(aclrtDestroyContext(context));
  CHECK_OK(aclrtResetDevice(0));
  CheckPrimaryContext(0);
  CHECK_OK(aclFinalize());
}

}  // namespace

std::vector<Program> ContextPrograms() {
  return {{"context_query", ContextQuery},
          {"context_scoped_determinism", ContextScopedDeterminism}};
}
