// The limits of one program, and the checks of them. A small request must not ask for much memory
// or work, which broadcasting and strides of 0 would allow.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/operator_descriptor.h"
#include "server/program/program.h"

namespace opserve::server {

// The limits of one program; BindProgram refuses larger ones.
struct ProgramLimits {
  uint32_t max_invocations = 10'000;
  uint64_t max_tensor_bytes = uint64_t{2} << 30;  // storage of one input, or one output
  // All inputs together, and the device memory that the program needs beside resident tensors.
  uint64_t max_program_bytes = uint64_t{8} << 30;
  // Amplification guard: results that travel may take this many times the bytes of the inputs, and
  // 1 MiB more; device memory beside the inputs and the results that stay there, likewise of both.
  uint64_t max_output_ratio = 100;
  // Work of one invocation, in elements (Judge::CountCharge): by default the elements of
  // max_program_bytes in halves.
  uint64_t max_work = uint64_t{4} << 30;
  // Of all invocations together: a lane can be taken back between two of them.
  uint64_t max_program_work = uint64_t{1} << 40;
};

// Errors of the following name operator and argument ("": none), actual and allowed size.

// kInvalidArgument, reason "too_large".
absl::Status TooLarge(absl::string_view operator_name, absl::string_view argument,
                      absl::string_view problem);
// The storage of one input, or one output.
absl::Status CheckTensorBytes(const ProgramLimits& limits, absl::string_view operator_name,
                              absl::string_view argument, uint64_t bytes);
// Adds the bytes of one input to those of the program.
absl::Status CountInput(const ProgramLimits& limits, absl::string_view argument, uint64_t bytes,
                        Program* program);
// Adds the bytes of a tensor that the device makes.
absl::Status CountOutput(const ProgramLimits& limits, absl::string_view operator_name,
                         absl::string_view argument, uint64_t bytes, Program* program);
// Adds the charge of an invocation of the operator, or of a copy for it. kFailedPrecondition,
// reason "work_limit".
absl::Status CountWork(const ProgramLimits& limits, const catalog::OperatorDescriptor& descriptor,
                       const BoundInvocation& invocation, Program* program);
// The memory that a program, whose facts are known, needs at one time. Reason "too_large", or
// kFailedPrecondition and "amplification".
absl::Status CheckMemory(const ProgramLimits& limits, const Program& program);

}  // namespace opserve::server
