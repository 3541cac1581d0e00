#include "server/native/known_requests.h"

#include <algorithm>
#include <utility>

#include "server/execution/plan_cache.h"
#include "server/native/native_request.h"
#include "server/native/result_message.h"

namespace opserve::server {
namespace {

// A thread looks at all of them for a request that it does not know, which must be cheap beside
// binding it. With the limits below they take at most about 1 MiB.
constexpr size_t kMostPrograms = 32;
constexpr size_t kMostHeaderBytes = 2048;
constexpr size_t kMostInvocations = 16;

bool HasSizes(const Program& program, absl::Span<const codec::Payload> payloads) {
  return std::equal(
      payloads.begin(), payloads.end(), program.payload_sizes.begin(), program.payload_sizes.end(),
      [](const codec::Payload& payload, uint64_t size) { return payload.size == size; });
}

bool MayKeep(absl::string_view header, const v1::ExecuteRequest& message,
             const ProgramCall& bound) {
  // An answer of such a request depends on more than its header, or its program would be too large
  // to keep.
  return header.size() <= kMostHeaderBytes && message.idempotency_key().empty() &&
         !message.has_identity() && bound.program->invocations.size() <= kMostInvocations &&
         bound.program->literals.size() <= kMostHeaderBytes && bound.residents.empty() &&
         bound.kept.empty() && bound.windows.empty();
}

}  // namespace

KnownRequests::~KnownRequests() {
  counters_.programs.fetch_sub(static_cast<int64_t>(known_.size()), std::memory_order_relaxed);
}

std::shared_ptr<const KnownRequests::Known> KnownRequests::Find(
    absl::string_view header, absl::Span<const codec::Payload> payloads) {
  const auto found =
      std::find_if(known_.begin(), known_.end(), [&](const std::shared_ptr<const Known>& known) {
        return known->header == header && HasSizes(*known->program, payloads);
      });
  if (found == known_.end()) return nullptr;
  counters_.hits.fetch_add(1, std::memory_order_relaxed);
  // To the front: the programs at the end make room.
  std::rotate(known_.begin(), found, found + 1);
  return known_.front();
}

std::shared_ptr<const Program> KnownRequests::Keep(absl::string_view header,
                                                   const v1::ExecuteRequest& message,
                                                   const ProgramCall& bound) {
  if (!MayKeep(header, message, bound)) return bound.program;
  counters_.misses.fetch_add(1, std::memory_order_relaxed);
  if (known_.size() == kMostPrograms) {
    known_.pop_back();
  } else {
    counters_.programs.fetch_add(1, std::memory_order_relaxed);
  }
  auto known = std::make_shared<Known>();
  known->header = std::string(header);
  known->message = message;
  known->request = TranslateRequest(known->message);
  // Its next requests find their plans without making keys. A prepared program has plans.
  known->program = message.has_prepared() ? bound.program : WithPlans(*bound.program);
  known->answer = AnswerOf(*known->program);
  known->answer_bytes = known->answer.SerializeAsString();
  known_.insert(known_.begin(), std::move(known));
  return known_.front()->program;
}

}  // namespace opserve::server
