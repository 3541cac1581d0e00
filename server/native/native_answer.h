// The answer to a request in the native protocol's words.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/support/byte_buffer.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/slices.h"
#include "server/native/known_requests.h"
#include "server/request/request_answer.h"

namespace opserve::server {

// What the answer to a request is to say. A repetition has the results of the first answer as that
// had them, whatever it asks for.
struct AnswerForm {
  bool is_brief = false;  // its caller knows the results of a prepared program: v1::BriefResults
  bool has_receipt = false;
  std::shared_ptr<const KnownRequests::Known> known = nullptr;  // an equal request came before
};

// All of the answer but its payloads.
v1::ExecuteResponse HeaderOf(const RequestAnswer& answer, const AnswerForm& form);

// The same, serialised; *made, which must stay, has it unless it was made before.
absl::string_view HeaderBytesOf(const RequestAnswer& answer, const AnswerForm& form,
                                std::string* made);

// The payloads, without a copy. Those of at most `copied_bytes` bytes are for a writer that copies
// such at once: they do not keep their bytes.
codec::Slices PayloadsOf(const RequestAnswer& answer, size_t copied_bytes = 0);

// The message.
grpc::ByteBuffer MessageOf(const RequestAnswer& answer, const AnswerForm& form);

}  // namespace opserve::server
