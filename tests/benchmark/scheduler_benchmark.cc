// What a scheduling decision costs: queueing a task, choosing the next, and accounting for one that
// ended, while every tenant has a backlog.

#include <cstdint>
#include <deque>
#include <random>

#include "benchmark/benchmark.h"
#include "server/schedule/policy/dispatch_queue.h"

namespace opserve::server {
namespace {

constexpr uint64_t kDeviceBytes = uint64_t{32} << 30;
constexpr size_t kBacklog = 4;  // of each tenant
constexpr size_t kLanes = 4;

using Queue = DispatchQueue;

class Decisions {
 public:
  explicit Decisions(uint32_t tenants)
      : queue_({.capacity = (kBacklog + 1) * tenants, .lanes = kLanes, .random = {}},
               kDeviceBytes) {
    for (uint32_t tenant = 0; tenant < tenants; ++tenant) {
      if (!queue_.SetTenant(tenant, 1 + tenant % 10, {}).ok()) std::abort();
      for (size_t i = 0; i < kBacklog; ++i) Push(tenant);
    }
    for (size_t i = 0; i < kLanes; ++i) Start();
  }

  void Decide() {
    const Queue::Lease lease = running_.front();
    running_.pop_front();
    queue_.Ended(lease, Cost());
    Start();
  }

 private:
  absl::Duration Cost() { return absl::Microseconds(50 + random_() % 10'000); }

  void Push(uint32_t tenant) {
    now_ += absl::Microseconds(10);
    ++tasks_;
    Queue::Entry entry{.task = nullptr,
                       .key = reinterpret_cast<const void*>(tasks_),
                       .tenant = tenant,
                       .deadline = now_ + absl::Hours(1) + absl::Milliseconds(random_() % 1000),
                       .estimate = Cost(),
                       .device_bytes = 1 << 20};
    if (!queue_.Push(&entry, now_).ok()) std::abort();
  }

  // The tenant that is served sends another task.
  void Start() {
    Queue::Popped popped = queue_.Pop(now_);
    if (!popped.started) std::abort();
    running_.push_back(popped.started->lease);
    Push(popped.started->entry.tenant);
  }

  Queue queue_;
  std::mt19937_64 random_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  std::deque<Queue::Lease> running_;
  uint64_t tasks_ = 0;
};

void Decision(benchmark::State& state) {
  Decisions decisions(static_cast<uint32_t>(state.range(0)));
  for (auto _ : state) decisions.Decide();
}
BENCHMARK(Decision)->ArgName("tenants")->Arg(1)->Arg(100)->Arg(1000);

}  // namespace
}  // namespace opserve::server

BENCHMARK_MAIN();
