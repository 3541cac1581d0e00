// Programs in files: the protocol's PrepareRequest as protobuf text.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cpp/prepared_program.h"
#include "client/cpp/tensor.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve::cli {

// kInvalidArgument: the file is no such text; the message has line and column. The codes of
// ReadFileBytes: it cannot be read.
absl::StatusOr<v1::PrepareRequest> ReadProgramFile(const std::string& path);

// The inputs of a program that it replaces or donates, which have to be resident tensors: by
// number.
std::vector<bool> ChangedInputs(const v1::PrepareRequest& program);

struct DirectRequest {
  v1::ExecuteRequest header;
  std::vector<Tensor> payloads;
};

// The program with its inputs, as one call that prepares nothing. Requires: as many values
// as the program has inputs, of their dtypes and shapes, each resident or a contiguous Tensor;
// ChangedInputs are resident.
DirectRequest WithInputs(const v1::PrepareRequest& program,
                         const std::vector<PreparedProgram::Input>& values);

}  // namespace opserve::cli
