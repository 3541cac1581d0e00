#include "client/cli/bench_sender.h"

#include <cstring>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/cpp/shared_memory.h"
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
    auto memory = SharedMemory::Open(session.target, {.token = session.connection.token});
    if (!memory.ok()) return memory.status();
    uint64_t bytes = 0;
    for (const uint64_t result_bytes : plan.result_bytes) {
      bytes += concurrency * Padded(result_bytes);
    }
    for (const BenchTensor& input : TensorsOf(plan.request.invocations[0].inputs)) {
      bytes += Padded(input.tensor.storage().size());
    }
    OPSERVE_ASSIGN_OR_RETURN(auto region, (*memory)->CreateRegion(bytes));
    auto requests = std::make_shared<SharedRequests>();
    requests->memory_ = *std::move(memory);
    requests->region_ = std::move(region);
    requests->PutInPlace(plan, concurrency);
    return requests;
  }

  absl::StatusOr<Response> Send(Client& client, bool want_receipt) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::unique_ptr<Forms> forms = TakeFree();
    absl::StatusOr<Response> response = client.Execute(forms->Pick(want_receipt));
    absl::MutexLock lock(&mutex_);
    free_.push_back(std::move(forms));
    return response;
  }

 private:
  // To where the next tensor begins, as devices need it to be used in place.
  static uint64_t Padded(uint64_t bytes) { return (bytes + 32 + 63) / 64 * 64; }

  SharedRange Next(uint64_t bytes) {
    const SharedRange range = region_->Range(used_, bytes);
    used_ += Padded(bytes);
    return range;
  }

  SharedTensor PutInPlace(const Tensor& tensor) {
    const SharedRange range = Next(tensor.storage().size());
    if (range.size > 0) {
      std::memcpy(region_->bytes().data() + range.offset, tensor.storage().data(), range.size);
    }
    return {.dtype = tensor.dtype(), .shape = tensor.shape(), .range = range};
  }

  void PutInPlace(const BenchPlan& plan, uint32_t concurrency) ABSL_LOCKS_EXCLUDED(mutex_) {
    Request request = plan.request;
    for (NamedInput& input : request.invocations[0].inputs) {
      if (auto* list = std::get_if<std::vector<ListedTensor>>(&input.value)) {
        for (ListedTensor& listed : *list) listed = PutInPlace(std::get<Tensor>(listed));
      } else {
        input.value = PutInPlace(std::get<Tensor>(input.value));
      }
    }
    absl::MutexLock lock(&mutex_);
    for (uint32_t i = 0; i < concurrency; ++i) {
      request.destinations.clear();
      for (const uint64_t bytes : plan.result_bytes) request.destinations.push_back(Next(bytes));
      free_.push_back(std::make_unique<Forms>(request));
    }
  }

  std::unique_ptr<Forms> TakeFree() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    std::unique_ptr<Forms> forms = std::move(free_.back());
    free_.pop_back();
    return forms;
  }

  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<SharedRegion> region_;
  uint64_t used_ = 0;  // bytes of the region, from its start
  absl::Mutex mutex_;
  std::vector<std::unique_ptr<Forms>> free_ ABSL_GUARDED_BY(mutex_);  // not in flight
};

}  // namespace

absl::StatusOr<SendRequest> MakeSender(const BenchPlan& plan, uint32_t concurrency,
                                       const Session& session, Client& client) {
  switch (plan.transport) {
    case BenchTransport::kStream: {
      auto opened = client.OpenStream({.window = concurrency});
      if (!opened.ok()) return opened.status();
      return [stream = std::shared_ptr<ExecuteStream>(*std::move(opened)),
              forms = Forms(plan.request)](bool want_receipt) {
        return stream->Execute(forms.Pick(want_receipt)).get();
      };
    }
    case BenchTransport::kSharedMemory: {
      OPSERVE_ASSIGN_OR_RETURN(auto requests, SharedRequests::Make(plan, concurrency, session));
      return [requests = std::move(requests), &client](bool want_receipt) {
        return requests->Send(client, want_receipt);
      };
    }
    case BenchTransport::kUnary:
      break;
  }
  return [&client, forms = Forms(plan.request)](bool want_receipt) {
    return client.Execute(forms.Pick(want_receipt));
  };
}

}  // namespace opserve::cli
