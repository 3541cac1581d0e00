// A request that was let in and bound while its payloads are still on their way to the device.
#pragma once

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/request/idempotency_cache.h"
#include "server/request/request.h"
#include "server/request/request_digest.h"
#include "server/run/early_claim.h"

namespace opserve::server {

// Its turn with its resident tensors is that of its admission, so a client that stops sending holds
// up its own tenant's requests, for as long as an upload may stall. Used by one thread at a time;
// ends by Start or Refuse.
class AdmittedRequest {
 public:
  // Lets it in and binds it to `apart`, into which its payloads are to be brought (BindApart); they
  // have these bytes. Null: `on_end` is called, here with an error or the answer that an equal
  // request had, or when the run ends that an equal request began.
  static std::unique_ptr<AdmittedRequest> Admit(
      RequestContext& context, RequestInput input, absl::Span<const uint64_t> payload_bytes,
      absl::Span<const std::shared_ptr<ResidentTensor>> apart, OnRequestEnd on_end);

  const ProgramCall& bound() const { return request_->bound(); }
  Priority priority() const { return request_->priority_; }
  // Of the run, which others may share.
  const std::shared_ptr<CallState>& call() const { return request_->call(); }

  // The payloads' bytes come by in their order: a request with an idempotency key is known by them.
  void Add(absl::string_view bytes);

  // All payloads are there: as Request::Start. `booked`: as ProgramCall::booked.
  static void Start(std::unique_ptr<AdmittedRequest> admitted, std::shared_ptr<void> booked);
  // They never will be. `status`: not OK.
  static void Refuse(std::unique_ptr<AdmittedRequest> admitted, const absl::Status& status);

 private:
  // Of a request with an idempotency key.
  struct Keyed {
    IdempotencyCache::Repeatable repeatable;  // without the digest
    RequestDigester digester;
  };

  explicit AdmittedRequest(std::unique_ptr<Request> request) : request_(std::move(request)) {}

  std::unique_ptr<Request> request_;
  std::optional<Keyed> keyed_;
  std::shared_ptr<EarlyClaim> claim_;  // null: it uses no resident tensors
};

}  // namespace opserve::server
