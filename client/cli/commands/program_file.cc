#include "client/cli/commands/program_file.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/arrays/file_bytes.h"
#include "client/cpp/program_tensors.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

// Keeps the first complaint.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column,
                const std::string& message) override {
    if (!text_.empty()) return;
    // The parser counts from 0, and says -1 of the whole text.
    text_ = line < 0 ? message : absl::StrCat(line + 1, ":", column + 1, ": ", message);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Puts input `number` in the tensor's place.
void PlaceInput(const PreparedProgram::Input& value, uint32_t payload,
                const v1::ProgramInput& input, v1::Tensor* tensor) {
  if (const auto* resident = std::get_if<ResidentTensor>(&value)) {
    tensor->set_resident_tensor(resident->handle);
    return;
  }
  // A tensor without fields of its own is the input as it is.
  if (tensor->dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    tensor->set_dtype(input.dtype());
    *tensor->mutable_shape() = input.shape();
  }
  tensor->set_payload(payload);
}

}  // namespace

absl::StatusOr<v1::PrepareRequest> ReadProgramFile(const std::string& path) {
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes bytes, ReadFileBytes(path));
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  v1::PrepareRequest program;
  const std::string text(reinterpret_cast<const char*>(bytes.span().data()), bytes.size);
  if (!parser.ParseFromString(text, &program)) {
    return absl::InvalidArgumentError(absl::StrCat(path, ":", error.text()));
  }
  return program;
}

std::vector<bool> ChangedInputs(const v1::PrepareRequest& program) {
  std::vector<bool> changed(program.inputs_size());
  // Numbers out of range are the daemon's to refuse.
  const auto set = [&changed](uint32_t input) {
    if (input < changed.size()) changed[input] = true;
  };
  for (const uint32_t input : program.program().donated_inputs()) set(input);
  for (const v1::WantedResult& result : program.program().results()) {
    if (result.replace().has_program_input()) set(result.replace().program_input());
  }
  return changed;
}

DirectRequest WithInputs(const v1::PrepareRequest& program,
                         const std::vector<PreparedProgram::Input>& values) {
  DirectRequest request{.header = program.program(), .payloads = {}};
  std::vector<uint32_t> payloads;  // by input
  for (const PreparedProgram::Input& value : values) {
    // Resident inputs take no payload; their entry is not used.
    payloads.push_back(static_cast<uint32_t>(request.payloads.size()));
    if (const auto* tensor = std::get_if<Tensor>(&value)) request.payloads.push_back(*tensor);
  }
  ForEachTensor(request.header, [&](v1::Tensor& tensor) {
    const uint32_t input = tensor.program_input();
    if (!tensor.has_program_input() || input >= values.size()) return;  // the daemon will tell
    PlaceInput(values[input], payloads[input], program.inputs(static_cast<int>(input)), &tensor);
  });
  const auto handle_of = [&values](uint32_t input) {
    // ChangedInputs are resident by contract. Others have an empty handle, which the daemon
    // refuses.
    return input < values.size() ? std::get<ResidentTensor>(values[input]).handle : std::string();
  };
  for (v1::WantedResult& result : *request.header.mutable_results()) {
    if (!result.replace().has_program_input()) continue;
    const std::string handle = handle_of(result.replace().program_input());
    result.mutable_replace()->clear_program_input();
    result.mutable_replace()->set_handle(handle);
  }
  for (const uint32_t input : request.header.donated_inputs()) {
    request.header.add_donated(handle_of(input));
  }
  // The handles stand in their place.
  request.header.clear_donated_inputs();
  return request;
}

}  // namespace opserve::cli
