// Programs of Open Inference requests (server/request/known_programs.h). Requests that differ in
// their ids count as equal.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "inference/grpc_service.pb.h"
#include "proto/codec/payloads.h"
#include "server/kserve/infer_request.h"
#include "server/request/known_programs.h"
#include "server/request/request_input.h"

namespace opserve::server {

// All of a message but its payloads.
struct InferenceHeader {
  std::string text;      // all but the id
  absl::string_view id;  // in the message; ASCII
};

// None: `header` is no such message, or has an id that others would have to look at.
std::optional<InferenceHeader> SplitInferenceHeader(absl::string_view header);

// A polling thread has one. Used by one thread.
class KnownInferences {
 public:
  struct Known : KnownProgram {  // its header is InferenceHeader::text
    inference::ModelInferRequest message;
    InferTask task;  // refers to `message`
  };

  static bool MayKnow(absl::string_view header) {
    return header.size() <= KnownPrograms<Known>::kMostHeaderBytes;
  }

  explicit KnownInferences(KnownRequestCounters& counters) : programs_(counters) {}

  // That of an equal message. Null: there is none.
  std::shared_ptr<const Known> Find(absl::string_view header,
                                    absl::Span<const codec::Payload> payloads) {
    return programs_.Find(header, payloads);
  }

  // Keeps a request that Find did not find when it is bound, if it may: all elements are raw, and
  // KnownPrograms::MayKeep allows it. Used during the request's hand-over.
  class Candidate final : public ProgramKeeper {
   public:
    // `request`: its message and task.
    Candidate(KnownInferences& known, std::string header, std::shared_ptr<Known> request)
        : known_(known), header_(std::move(header)), request_(std::move(request)) {}
    std::shared_ptr<const Program> Keep(const codec::PayloadMessage& message,
                                        const ProgramCall& bound) override;

   private:
    KnownInferences& known_;
    std::string header_;
    const std::shared_ptr<Known> request_;
  };

 private:
  KnownPrograms<Known> programs_;
};

}  // namespace opserve::server
