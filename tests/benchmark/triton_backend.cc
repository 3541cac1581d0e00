// The model that triton.sh has Triton serve: KlDivBackward with reduction "none", as opserve's
// operator computes it. Declares the functions of Triton's C API that it calls (tritonbackend.h,
// tritonserver.h), so that nothing of Triton is needed to build it.
#include <cstdint>
#include <ctime>

extern "C" {
struct TRITONSERVER_Error;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Request;
struct TRITONBACKEND_Response;
struct TRITONBACKEND_Input;
struct TRITONBACKEND_Output;
using Error = TRITONSERVER_Error*;

Error TRITONBACKEND_RequestInput(TRITONBACKEND_Request*, const char* name, TRITONBACKEND_Input**);
Error TRITONBACKEND_InputProperties(TRITONBACKEND_Input*, const char** name, int* datatype,
                                    const int64_t** shape, uint32_t* dims, uint64_t* bytes,
                                    uint32_t* buffers);
Error TRITONBACKEND_InputBuffer(TRITONBACKEND_Input*, uint32_t index, const void** buffer,
                                uint64_t* bytes, int* memory_type, int64_t* memory_type_id);
Error TRITONBACKEND_ResponseNew(TRITONBACKEND_Response**, TRITONBACKEND_Request*);
Error TRITONBACKEND_ResponseOutput(TRITONBACKEND_Response*, TRITONBACKEND_Output**,
                                   const char* name, int datatype, const int64_t* shape,
                                   uint32_t dims);
Error TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output*, void** buffer, uint64_t bytes,
                                 int* memory_type, int64_t* memory_type_id);
Error TRITONBACKEND_ResponseSend(TRITONBACKEND_Response*, uint32_t flags, Error);
Error TRITONBACKEND_RequestRelease(TRITONBACKEND_Request*, uint32_t flags);
Error TRITONBACKEND_ModelInstanceReportStatistics(TRITONBACKEND_ModelInstance*,
                                                  TRITONBACKEND_Request*, bool success,
                                                  uint64_t begin, uint64_t compute_begin,
                                                  uint64_t compute_end, uint64_t end);
Error TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                         TRITONBACKEND_Request** requests, uint32_t count);
}

namespace {

constexpr int kFloat32 = 11;
constexpr uint32_t kFinal = 1;
constexpr uint32_t kReleaseAll = 1;

uint64_t Nanoseconds() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// In one buffer, as both of Triton's ways for requests give it.
const float* Elements(TRITONBACKEND_Input* input) {
  const void* buffer = nullptr;
  uint64_t bytes = 0;
  int type = 0;
  int64_t id = 0;
  TRITONBACKEND_InputBuffer(input, 0, &buffer, &bytes, &type, &id);
  return static_cast<const float*>(buffer);
}

void Answer(TRITONBACKEND_Request* request) {
  TRITONBACKEND_Input* gradient = nullptr;
  TRITONBACKEND_Input* self = nullptr;
  TRITONBACKEND_Input* target = nullptr;
  TRITONBACKEND_RequestInput(request, "grad_output", &gradient);
  TRITONBACKEND_RequestInput(request, "self", &self);
  TRITONBACKEND_RequestInput(request, "target", &target);
  const char* name = nullptr;
  const int64_t* shape = nullptr;
  uint64_t bytes = 0;
  uint32_t dims = 0;
  uint32_t buffers = 0;
  int type = 0;
  TRITONBACKEND_InputProperties(target, &name, &type, &shape, &dims, &bytes, &buffers);

  TRITONBACKEND_Response* response = nullptr;
  TRITONBACKEND_Output* output = nullptr;
  void* result = nullptr;
  int memory_type = 0;
  int64_t id = 0;
  TRITONBACKEND_ResponseNew(&response, request);
  TRITONBACKEND_ResponseOutput(response, &output, "grad_input", kFloat32, shape, dims);
  TRITONBACKEND_OutputBuffer(output, &result, bytes, &memory_type, &id);
  const float* const g = Elements(gradient);
  const float* const t = Elements(target);
  auto* const to = static_cast<float*>(result);
  for (uint64_t i = 0; i < bytes / sizeof(float); ++i) to[i] = -t[i] * g[i];
  TRITONBACKEND_ResponseSend(response, kFinal, nullptr);
}

}  // namespace

Error TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance* instance,
                                         TRITONBACKEND_Request** requests, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t begin = Nanoseconds();
    Answer(requests[i]);
    const uint64_t end = Nanoseconds();
    TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], true, begin, begin, end,
                                                end);
    TRITONBACKEND_RequestRelease(requests[i], kReleaseAll);
  }
  return nullptr;
}
