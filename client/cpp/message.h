// Internal: requests and responses to and from gRPC's buffers.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cpp/borrow.h"
#include "client/cpp/known_results.h"
#include "client/cpp/request.h"
#include "client/cpp/request_numbers.h"
#include "client/cpp/tensor.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/operator_service.pb.h"

namespace opserve {

// Full name of the method that takes these requests.
inline constexpr char kExecute[] = "/opserve.v1.OperatorService/Execute";

struct EncodedRequest {
  grpc::ByteBuffer buffer;
  Borrow borrow;
  RequestNumbers::Ticket number = {};  // of a request with an identity
};

// A request's message, and the tensors with its payloads in their storages, in their order.
struct RequestParts {
  v1::ExecuteRequest header;
  std::vector<Tensor> payloads;
};

// Whether the program keeps, replaces or donates tensors, so that it must not run twice.
bool HasEffects(const v1::ExecuteRequest& program);

// Whether a request with effects, or a call of a prepared program, which may have some, lacks an
// identity or a key by which the daemon knows its repetitions.
bool NeedsIdentity(const v1::ExecuteRequest& request);

// kInvalidArgument: more destinations than results.
absl::StatusOr<RequestParts> TakeApart(const Request& request);

// A message with these payloads, as EncodeRequest's.
absl::StatusOr<EncodedRequest> EncodeMessage(const google::protobuf::MessageLite& header,
                                             absl::Span<const Tensor> payloads);

// The message of an Execute call, with an identity if it needs one. Refers to the storages of the
// tensors, except small ones, which are copied. Tensors with the same storage share a payload.
//
// kInvalidArgument: more bytes than a gRPC message can have, or more destinations than results.
absl::StatusOr<EncodedRequest> EncodeRequest(const Request& request, RequestNumbers* numbers);

void EncodeRange(const SharedRange& range, v1::SharedMemoryRange* message);
void EncodeAttribute(const NamedAttribute& attribute, v1::NamedAttribute* message);

// kInternal: not an answer that the protocol allows. kFailedPrecondition: a result is in a region
// of shared memory that is gone.
absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer);

// The same of the answer to a call of a prepared program with these results, which is brief or, if
// the daemon does not know such answers, whole.
absl::StatusOr<Response> DecodeResponse(const grpc::ByteBuffer& buffer,
                                        absl::Span<const KnownResult> known,
                                        const v1::PreparedCall& call);

// An answer without payloads. kInternal: it is not a message of this type.
absl::Status DecodeMessage(const grpc::ByteBuffer& buffer, google::protobuf::MessageLite* message);

// kInternal, for an answer that the protocol does not allow.
absl::Status BadAnswer(absl::string_view why);

}  // namespace opserve
