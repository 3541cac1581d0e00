#include "client/cli/bench/bench_sender.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cli/commands/shared_arena.h"
#include "client/cpp/prepared_program.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

// The request without and with the wish for a receipt.
struct Forms {
  explicit Forms(const Request& request) : plain(request), with_receipt(request) {
    with_receipt.want_receipt = true;
  }
  const Request& Pick(bool want_receipt) const { return want_receipt ? with_receipt : plain; }

  Request plain;
  Request with_receipt;
};

// Requests with tensors in shared memory: all read the same inputs, and each one in flight has a
// place of its own for its result.
class SharedRequests {
 public:
  static absl::StatusOr<std::shared_ptr<SharedRequests>> Make(const BenchPlan& plan,
                                                              uint32_t concurrency,
                                                              const Session& session) {
    uint64_t bytes = SharedArena::BytesFor(plan.request.invocations[0].inputs);
    for (const uint64_t result_bytes : plan.result_bytes) {
      // Results of calls in flight must not share a place.
      bytes += concurrency * SharedArena::BytesFor(result_bytes);
    }
    OPSERVE_ASSIGN_OR_RETURN(auto arena, SharedArena::Make(session, bytes));
    auto requests = std::make_shared<SharedRequests>();
    requests->arena_ = std::move(arena);
    requests->PutInPlace(plan, concurrency);
    return requests;
  }

  absl::StatusOr<Response> Send(Client& client, bool want_receipt) ABSL_LOCKS_EXCLUDED(mutex_) {
    // There are as many as calls in flight, so one is free.
    std::unique_ptr<Forms> forms = TakeFree();
    absl::StatusOr<Response> response = client.Execute(forms->Pick(want_receipt));
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(forms));
    return response;
  }

 private:
  void PutInPlace(const BenchPlan& plan, uint32_t concurrency) ABSL_LOCKS_EXCLUDED(mutex_) {
    Request request = plan.request;
    arena_->Place(&request.invocations[0].inputs);
    absl::MutexLock lock(&mutex_);
    for (uint32_t i = 0; i < concurrency; ++i) {
      request.destinations.clear();
      for (const uint64_t bytes : plan.result_bytes)
        request.destinations.push_back(arena_->Take(bytes));
      free_.push_back(std::make_unique<Forms>(request));
    }
  }

  std::unique_ptr<Forms> TakeFree() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Forms> forms = std::move(free_.back());
    free_.pop_back();
    return forms;
  }

  std::unique_ptr<SharedArena> arena_;
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Forms>> free_ ABSL_GUARDED_BY(mutex_);  // not in flight
};

// Requests that run a prepared program.
absl::StatusOr<SendRequest> MakePreparedSender(const Request& request, Client& client) {
  // Its tensors travel with each call, as inputs of a program do.
  OPSERVE_ASSIGN_OR_RETURN(const PreparedProgram program, client.Prepare(request));
  // Before anything is measured.
  OPSERVE_RETURN_IF_ERROR(program.PrepareFor({}, request.timeout));
  return [program, timeout = request.timeout](bool want_receipt) {
    return program({}, {.want_receipt = want_receipt, .timeout = timeout});
  };
}

}  // namespace

absl::StatusOr<SendRequest> MakeSender(const BenchPlan& plan, uint32_t concurrency,
                                       const Session& session, Client& client) {
  if (plan.prepare) return MakePreparedSender(plan.request, client);
  switch (plan.transport) {
    case BenchTransport::kSharedMemory: {
      OPSERVE_ASSIGN_OR_RETURN(auto requests, SharedRequests::Make(plan, concurrency, session));
      // Owned by the function, as the requests refer to its memory until they end.
      return [requests = std::move(requests), &client](bool want_receipt) {
        return requests->Send(client, want_receipt);
      };
    }
    case BenchTransport::kUnary:
    case BenchTransport::kSession:  // an option of the client
      break;
  }
  return [&client, forms = Forms(plan.request)](bool want_receipt) {
    return client.Execute(forms.Pick(want_receipt));
  };
}

}  // namespace opserve::cli
