// Programs of native requests (known_programs.h). Calls of a prepared program need not be parsed,
// and have the same answer; whether the program is still there is looked up for each of them.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payloads.h"
#include "server/request/given_request.h"
#include "server/request/known_programs.h"

namespace opserve::server {

// A polling thread has one. Used by one thread.
class KnownRequests {
 public:
  struct Known : KnownProgram {  // its header is all of the message but its payloads
    v1::ExecuteRequest message;
    GivenRequest request;        // its views are of `message`
    v1::ExecuteResponse answer;  // AnswerOf(program)
    std::string answer_bytes;    // it, serialised
  };

  explicit KnownRequests(KnownRequestCounters& counters) : programs_(counters) {}

  // The program of an equal message. Null: there is none.
  std::shared_ptr<const Known> Find(absl::string_view header,
                                    absl::Span<const codec::Payload> payloads) {
    return programs_.Find(header, payloads);
  }

  // Keeps the program to which a request was bound that Find did not find, if it may
  // (KnownPrograms::MayKeep). Returns the call's program from now on.
  std::shared_ptr<const Program> Keep(absl::string_view header, const v1::ExecuteRequest& message,
                                      const ProgramCall& bound);

 private:
  KnownPrograms<Known> programs_;
};

}  // namespace opserve::server
