// Programs in files: the protocol's PrepareRequest as protobuf text.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/resident_tensor.h"
#include "client/cpp/tensor.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// kInvalidArgument: the file is no such text; the message has line and column. The codes of
// ReadFileBytes: it cannot be read.
absl::StatusOr<v1::PrepareRequest> ReadProgramFile(const std::string& path);

// The inputs of a program that it replaces or donates, which have to be resident tensors: by
// number.
std::vector<bool> ChangedInputs(const v1::PrepareRequest& program);

using ProgramInputValue = std::variant<Tensor, ResidentTensor>;

struct DirectRequest {
  v1::ExecuteRequest header;
  std::vector<Tensor> payloads;
};

// The program with its inputs, as one call that prepares nothing. Requires: as many contiguous
// values as the program has inputs, of their dtypes and shapes; ChangedInputs are resident.
DirectRequest WithInputs(const v1::PrepareRequest& program,
                         const std::vector<ProgramInputValue>& values);

}  // namespace opserve::cli
