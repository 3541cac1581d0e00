#include "server/grpc/split_message.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/grpc/message_bytes.h"

namespace opserve::server {
namespace {

// More parts than any request has beside its payloads.
constexpr size_t kMaxHeaderFields = 65536;

absl::Status Malformed(const absl::Status& status) {
  return InvalidCall("", "", status.message(), 0);
}

}  // namespace

absl::StatusOr<codec::PayloadMessage> SplitMessage(codec::Slices&& message,
                                                   uint64_t max_header_bytes,
                                                   uint32_t payloads_field) {
  absl::StatusOr<codec::PayloadMessage> split =
      codec::PayloadMessage::Split(std::move(message), codec::kMaxPayloads, payloads_field);
  if (!split.ok()) return Malformed(split.status());
  OPSERVE_RETURN_IF_ERROR(CheckHeaderBytes(split->header().size(), max_header_bytes));
  if (split->header_fields() > kMaxHeaderFields) {
    return Malformed(absl::InvalidArgumentError(
        absl::StrCat("the message has ", split->header_fields(),
                     " fields beside its payloads, at most ", kMaxHeaderFields, " allowed")));
  }
  return split;
}

absl::StatusOr<codec::PayloadMessage> SplitMessage(const grpc::ByteBuffer& message,
                                                   uint64_t max_header_bytes,
                                                   google::protobuf::MessageLite* header,
                                                   uint32_t payloads_field) {
  codec::Slices slices;
  OPSERVE_RETURN_IF_ERROR(codec::TakeSlices(message, &slices));
  OPSERVE_ASSIGN_OR_RETURN(codec::PayloadMessage split,
                           SplitMessage(std::move(slices), max_header_bytes, payloads_field));
  OPSERVE_RETURN_IF_ERROR(ReadHeader(split, header));
  return split;
}

absl::Status ReadHeader(const codec::PayloadMessage& message,
                        google::protobuf::MessageLite* header) {
  const absl::Status status = message.ParseHeader(header);
  return status.ok() ? status : Malformed(status);
}

}  // namespace opserve::server
