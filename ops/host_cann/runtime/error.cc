#include "ops/host_cann/runtime/error.h"

#include "ops/host_cann/runtime/calls.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

struct ThreadErrors {
  std::string unread;    // the latest error's text, until it is read
  std::string returned;  // what the last read returned; the caller may still look at it
  aclError last_code = ACL_SUCCESS;
};

ThreadErrors& Errors() {
  thread_local ThreadErrors errors;
  return errors;
}

aclError CheckLevel(aclrtLastErrLevel level) {
  if (level == ACL_RT_THREAD_LEVEL) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("level is ", static_cast<int>(level), ", must be ACL_RT_THREAD_LEVEL"));
}

}  // namespace

void SetErrorMessage(std::string_view code, std::string_view text) {
  Errors().unread = Concat(code, ": ", text);
}

aclError Fail(aclError code, std::string_view label, std::string_view text) {
  SetErrorMessage(label, text);
  Errors().last_code = code;
  return code;
}

aclError RequireNotNull(const void* pointer, std::string_view name) {
  if (pointer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kNullArgument, Concat(name, " must not be null"));
}

}  // namespace opserve::host_cann

using namespace opserve::host_cann;

const char* aclGetRecentErrMsg() {
  if (EnterErrorQuery(__func__) != ACL_SUCCESS) return nullptr;
  ThreadErrors& errors = Errors();
  if (errors.unread.empty()) return nullptr;
  errors.returned.swap(errors.unread);
  errors.unread.clear();
  return errors.returned.c_str();
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  RETURN_IF_FAILED(EnterErrorQuery(__func__));
  RETURN_IF_FAILED(CheckLevel(level));
  return Errors().last_code;
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  RETURN_IF_FAILED(EnterErrorQuery(__func__));
  RETURN_IF_FAILED(CheckLevel(level));
  const aclError code = Errors().last_code;
  Errors().last_code = ACL_SUCCESS;
  return code;
}
