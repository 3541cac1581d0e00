#include "server/kserve/infer_answer.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/codec/payload_message.h"
#include "proto/status/error.h"
#include "server/grpc/result_slice.h"
#include "server/grpc/status_conversion.h"
#include "server/kserve/models.h"

namespace opserve::server {
namespace {

constexpr size_t kMaxIdInErrorBytes = 64;

struct InferResponseParts {
  inference::ModelInferResponse header;
  std::vector<grpc::Slice> contents;  // one for each output
};

InferResponseParts ToParts(const InferEcho& echo, const RequestAnswer& answer) {
  InferResponseParts parts;
  parts.header.set_model_name(echo.model_name);
  parts.header.set_model_version(std::string(kModelVersion));
  parts.header.set_id(echo.id);
  for (const AnsweredResult& result : answer.results) {
    auto* output = parts.header.add_outputs();
    output->set_name(result.output);
    output->set_datatype(std::string(DatatypeName(result.spec.dtype)));
    output->mutable_shape()->Add(result.spec.shape.begin(), result.spec.shape.end());
    // Results in shared memory have an empty entry, so that entries match outputs by position.
    parts.contents.push_back(result.payload ? ToSlice(answer.payloads[*result.payload])
                                            : grpc::Slice());
  }
  return parts;
}

}  // namespace

InferEcho EchoOf(const inference::ModelInferRequest& request) {
  return {.model_name = request.model_name(), .id = request.id()};
}

grpc::ByteBuffer BuildInferResponse(const InferEcho& echo, const RequestAnswer& answer) {
  const InferResponseParts parts = ToParts(echo, answer);
  return codec::BuildPayloadMessage(
      parts.header, parts.contents,
      {.field = inference::ModelInferResponse::kRawOutputContentsFieldNumber});
}

grpc::ByteBuffer BuildInferStreamResponse(const InferEcho& echo, const RequestAnswer& answer) {
  InferResponseParts parts = ToParts(echo, answer);
  // Each request of a stream has one response, which is the final one.
  (*parts.header.mutable_parameters())["triton_final_response"].set_bool_param(true);
  return codec::BuildPayloadMessage(
      parts.header, parts.contents,
      {.field = inference::ModelInferResponse::kRawOutputContentsFieldNumber,
       .wrapper_field = inference::ModelStreamInferResponse::kInferResponseFieldNumber});
}

grpc::ByteBuffer BuildInferStreamError(const InferEcho& echo, const absl::Status& error) {
  inference::ModelStreamInferResponse response;
  // The message of a stream has a text for errors, and no code.
  response.set_error_message(ToStatusDetails(InferError(echo.id, error)).message());
  response.mutable_infer_response()->set_id(echo.id);
  // A name of this length is none of ours; the client knows the request by its id.
  response.mutable_infer_response()->set_model_name(Shortened(echo.model_name, kMaxErrorNameBytes));
  return codec::BuildPayloadMessage(response, {});
}

absl::Status InferError(absl::string_view id, const absl::Status& status) {
  absl::StatusCode code = status.code();
  // For Triton's clients a region that is too small for the result is the server's error.
  if (code == absl::StatusCode::kOutOfRange) code = absl::StatusCode::kInternal;
  const bool names_request = code == absl::StatusCode::kInvalidArgument || code != status.code();
  if (!names_request) return status;
  const std::string shown = id.empty() ? "<id_unknown>" : Shortened(id, kMaxIdInErrorBytes);
  absl::Status error(code, absl::StrCat("[request id: ", shown, "] ", status.message()));
  if (const auto detail = ErrorDetailOf(status))
    SetErrorDetail(*detail, &error);  // has another code
  return error;
}

}  // namespace opserve::server
