// What a request asks for, whatever its protocol: translated and not checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/program/program_request.h"
#include "server/schedule/policy/fair_queue.h"

namespace opserve::server {

// Of a client that numbers its requests, by which a repetition is known.
struct RequestIdentity {
  std::string client;  // its random name, of 16 bytes
  uint64_t number = 0;
  uint64_t answered_below = 0;  // it has the answers to all requests with smaller numbers
};

struct GivenRequest {
  // Whether a repetition is answered without running anything again.
  bool is_repeatable() const { return !idempotency_key.empty() || identity.has_value(); }

  ProgramRequest program;                   // nothing, if `prepared` is set
  std::optional<PreparedRequest> prepared;  // the program was prepared before
  absl::string_view idempotency_key;        // "": none
  // With a key: all that the protocol's message says but its payloads, and the same for messages
  // that say the same in another encoding.
  std::string fields;
  std::optional<RequestIdentity> identity;
  Priority priority = Priority::kNormal;
};

}  // namespace opserve::server
