// Programs that requests brought, kept for requests that bring the same again.
//
// Clients send the same few requests over and over, with other elements. What a daemon finds out
// about a request without them depends only on its header and the sizes of its payloads: equal ones
// need not be parsed, checked and bound again. Calls of a prepared program need not be parsed, and
// have the same answer; whether the program is still there is looked up for each of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/payloads.h"
#include "server/execution/program.h"
#include "server/request/given_request.h"

namespace opserve::server {

// Of all polling threads together. Thread-safe.
struct KnownRequestCounters {
  std::atomic<uint64_t> hits = 0;
  std::atomic<uint64_t> misses = 0;  // of requests that may be kept
  std::atomic<int64_t> programs = 0;
};

// A polling thread has one; nothing in it is a tenant's. Used by one thread.
class KnownRequests {
 public:
  struct Known {
    std::string header;  // all of the message but its payloads
    v1::ExecuteRequest message;
    GivenRequest request;  // its views are of `message`
    std::shared_ptr<const Program> program;
    v1::ExecuteResponse answer;  // AnswerOf(program)
    std::string answer_bytes;    // it, serialised
  };

  explicit KnownRequests(KnownRequestCounters& counters) : counters_(counters) {}
  ~KnownRequests();
  KnownRequests(const KnownRequests&) = delete;
  KnownRequests& operator=(const KnownRequests&) = delete;

  // The program of an equal message. Null: there is none.
  std::shared_ptr<const Known> Find(absl::string_view header,
                                    absl::Span<const codec::Payload> payloads);

  // Keeps the program to which a request was bound that Find did not find, if nothing but its
  // header and its payloads' sizes decides about that: no resident tensor, shared memory, or key by
  // which it is repeated. Large ones are not kept either. The program that was
  // used least recently makes room. Returns the call's program from now on.
  std::shared_ptr<const Program> Keep(absl::string_view header, const v1::ExecuteRequest& message,
                                      const ProgramCall& bound);

 private:
  std::vector<std::shared_ptr<const Known>> known_;  // most recently used first
  KnownRequestCounters& counters_;
};

}  // namespace opserve::server
