// Devices that share page-locked memory, and connections of which some never read: what waits, and
// for what. The zones, the queues and the pool of the memory are the daemon's own. Everything is
// drawn from one seed.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/device/memory/pinned_pool.h"
#include "server/schedule/policy/default_zones.h"
#include "server/schedule/policy/dispatch_queue.h"
#include "tests/seed.h"
#include "tests/simulation/scenario.h"
#include "tests/simulation/simulated_acl.h"
#include "tests/unit/server/named_task.h"

namespace opserve::simulation {
namespace {

using server::PinnedBuffer;
using server::PinnedPool;
using server::PinnedZones;
using Tasks = server::DispatchQueue;

constexpr uint64_t kPinnedBytes = 1 << 20;

class ReadersSimulation {
 public:
  explicit ReadersSimulation(uint64_t seed) : random_(seed) {
    const int64_t count = random_.Between(1, 5);
    for (uint32_t t = 0; t < count; ++t) {
      settings_.push_back({.tenant = t, .weight = static_cast<uint32_t>(random_.Between(1, 9))});
    }
    settings_ = server::WithPinnedZones(settings_, kPinnedBytes);
    EXPECT_TRUE(zones_->SetTenants(settings_).ok());
    for (const server::TenantSettings& tenant : settings_) {
      DrawResults(tenant);
      used_.push_back(0);
      for (int64_t i = random_.Between(1, 4); i > 0; --i) {
        connections_.push_back({.tenant = tenant.tenant, .reads = random_.Happens(0.6)});
      }
    }
    for (int64_t i = random_.Between(1, 3); i > 0; --i) {
      devices_.push_back(std::make_unique<Device>(zones_.get()));
    }
  }

  void Run() {
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) {
      switch (random_.Between(0, 9)) {
        case 0:
          Cancel();
          break;
        case 1:
          now_ += absl::Milliseconds(random_.Between(1, 200));
          break;
        case 2:
        case 3:
          EndOne();
          break;
        case 4:
        case 5:
          ReadOne(/*stuck_as_well=*/false);
          break;
        default:
          Push();
      }
      FillLanes();
      CheckAmounts();
    }
    LetWorkEnd();
    CheckOnlyOwnMemoryIsWaitedFor();
    LetEverybodyRead();
    CheckNothingIsLeft();
  }

  // Tasks that got no memory, because there was none.
  uint64_t refusals() const { return refusals_; }

 private:
  static constexpr size_t kLanes = 2;

  // Of one task. Each holds a part of what is booked for the task, until it is read.
  using Results = std::vector<PinnedBuffer>;
  struct RunningTask {
    Tasks::Started started;
    Results results;
  };

  struct Device final : PinnedZones::Queue {
    explicit Device(PinnedZones* zones) : tasks({.capacity_per_tenant = 32}, 1, zones, this) {}
    void PinnedMemoryMayFit(uint32_t tenant) override { tasks.PinnedMemoryMayFit(tenant); }
    void ConnectionMayFit(uint64_t connection) override { tasks.ConnectionMayFit(connection); }
    Tasks tasks;
    std::vector<RunningTask> running;
  };
  struct Connection {
    uint32_t tenant = 0;
    bool reads = true;
    uint64_t bytes = 0;
    std::vector<Results> unread = {};
  };
  struct Waiting {
    size_t device = 0;
    size_t connection = 0;
  };

  static uint64_t Most(const server::TenantSettings& tenant) {
    return std::min(tenant.pinned.hard, kPinnedBytes);
  }

  // All tasks of a tenant have results of the same sizes, so none waits for larger ones before it.
  void DrawResults(const server::TenantSettings& tenant) {
    const int64_t count = random_.Between(1, 3);
    std::vector<size_t> sizes;
    uint64_t blocks = 0;
    for (int64_t i = 0; i < count; ++i) {
      sizes.push_back(
          static_cast<size_t>(random_.Between(1, static_cast<int64_t>(Most(tenant)) / 4 / count)));
      blocks += PinnedPool::BlockBytes(sizes.back());
    }
    result_sizes_.push_back(std::move(sizes));
    result_bytes_.push_back(blocks);
  }

  void Push() {
    const auto c = static_cast<size_t>(random_.Between(0, connections_.size() - 1));
    const auto d = static_cast<size_t>(random_.Between(0, devices_.size() - 1));
    const uint32_t tenant = connections_[c].tenant;
    const uint64_t task = ++tasks_;
    Tasks::Entry entry{.task = server::Named(task),
                       .key = reinterpret_cast<const void*>(task),
                       .tenant = tenant,
                       .priority = static_cast<server::Priority>(random_.Between(0, 2)),
                       .deadline = random_.Happens(0.2)
                                       ? now_ + absl::Milliseconds(random_.Between(1, 500))
                                       : absl::InfiniteFuture(),
                       .estimate = absl::Milliseconds(1),
                       .pinned_bytes = result_bytes_[tenant],
                       .connection = c + 1};
    if (devices_[d]->tasks.Push(&entry, now_).ok()) waiting_[task] = {d, c};
  }

  void Cancel() {
    if (waiting_.empty()) return;
    auto task = waiting_.begin();
    std::advance(task, random_.Between(0, waiting_.size() - 1));
    const auto removed =
        devices_[task->second.device]->tasks.Remove(reinterpret_cast<const void*>(task->first));
    EXPECT_TRUE(removed && server::NameOf<uint64_t>(*removed) == task->first);
    zones_->TellWaiting();
    waiting_.erase(task);
  }

  void FillLanes() {
    for (bool is_done = false; !is_done;) {
      is_done = true;
      for (const auto& device : devices_) {
        while (device->running.size() < kLanes && device->tasks.MayStart()) {
          Tasks::Popped popped = device->tasks.Pop(now_);
          zones_->TellWaiting();
          for (const Tasks::Entry& late : popped.expired)
            waiting_.erase(server::NameOf<uint64_t>(late));
          if (!popped.started && popped.expired.empty()) break;
          is_done = false;
          if (popped.started) Start(device.get(), *std::move(popped.started));
        }
        if (device->running.size() < kLanes) {
          EXPECT_FALSE(device->tasks.MayStart()) << "a lane is idle though something could start";
        }
      }
    }
  }

  void Start(Device* device, Tasks::Started started) {
    const auto task = waiting_.find(server::NameOf<uint64_t>(started.entry));
    ASSERT_NE(task, waiting_.end()) << "started twice";
    Connection& connection = connections_[task->second.connection];
    waiting_.erase(task);
    std::optional<Results> results = TakeResults(connection.tenant, started.pinned);
    started.pinned = {};  // the results have their own
    if (!results) {
      ++refusals_;
      device->tasks.Ended(started.lease, absl::ZeroDuration());
      return;
    }
    connection.bytes += result_bytes_[connection.tenant];
    used_[connection.tenant] += result_bytes_[connection.tenant];
    device->running.push_back({std::move(started), *std::move(results)});
  }

  // What is booked is there, unless the system has no memory: none.
  std::optional<Results> TakeResults(uint32_t tenant, const server::PinnedAllowance& booked) {
    const bool system_refuses = random_.Happens(0.02);
    RefusePinnedMemory(system_refuses);
    Results results;
    for (const size_t bytes : result_sizes_[tenant]) {
      if (random_.Happens(0.5)) {  // as a thread does that must not wait
        if (std::optional<PinnedBuffer> idle = pool_->TryAllocate(bytes, booked)) {
          results.push_back(*std::move(idle));
          continue;
        }
      }
      absl::StatusOr<PinnedBuffer> buffer = pool_->Allocate(bytes, booked);
      if (!buffer.ok()) {
        EXPECT_TRUE(system_refuses) << buffer.status();
        EXPECT_TRUE(absl::IsResourceExhausted(buffer.status())) << buffer.status();
        return std::nullopt;
      }
      results.push_back(*std::move(buffer));
    }
    for (const PinnedBuffer& buffer : results) CheckIsAlone(buffer);
    return results;
  }

  // No byte of it is another's.
  void CheckIsAlone(const PinnedBuffer& buffer) {
    const auto at = reinterpret_cast<uintptr_t>(buffer.data());
    EXPECT_EQ(at % 64, 0u);
    ForEachResult([&](const PinnedBuffer& other) {
      const auto begin = reinterpret_cast<uintptr_t>(other.data());
      EXPECT_TRUE(at + buffer.size() <= begin || begin + other.size() <= at);
    });
  }

  // Of tasks that run, and unread ones.
  template <typename Function>
  void ForEachResult(Function function) const {
    const auto all_of = [&](const Results& results) {
      for (const PinnedBuffer& buffer : results) function(buffer);
    };
    for (const auto& device : devices_) {
      for (const RunningTask& run : device->running) all_of(run.results);
    }
    for (const Connection& connection : connections_) {
      for (const Results& results : connection.unread) all_of(results);
    }
  }

  bool EndOne() {
    for (const auto& device : devices_) {
      if (device->running.empty()) continue;
      RunningTask run = std::move(device->running.back());
      device->running.pop_back();
      device->tasks.Ended(run.started.lease, absl::Milliseconds(1));
      connections_[run.started.entry.connection - 1].unread.push_back(std::move(run.results));
      return true;
    }
    return false;
  }

  bool ReadOne(bool stuck_as_well) {
    for (Connection& connection : connections_) {
      if (connection.unread.empty() || !(connection.reads || stuck_as_well)) continue;
      const uint64_t bytes = result_bytes_[connection.tenant];
      connection.bytes -= bytes;
      used_[connection.tenant] -= bytes;
      const Results read = std::move(connection.unread.back());
      connection.unread.pop_back();
      return true;
    }
    return false;
  }

  // Nothing runs any more, and all who read have read.
  void LetWorkEnd() {
    do {
      FillLanes();
    } while (EndOne() || ReadOne(/*stuck_as_well=*/false));
  }
  void LetEverybodyRead() {
    do {
      FillLanes();
    } while (EndOne() || ReadOne(/*stuck_as_well=*/true));
  }

  bool IsFull(const Connection& connection) const {
    const uint64_t bytes = result_bytes_[connection.tenant];
    return connection.bytes > 0 &&
           connection.bytes + bytes > Most(settings_[connection.tenant]) / 4;
  }

  void CheckAmounts() {
    uint64_t all = 0;
    for (const server::TenantSettings& tenant : settings_) {
      EXPECT_LE(used_[tenant.tenant], Most(tenant));
      all += used_[tenant.tenant];
    }
    EXPECT_LE(all, kPinnedBytes);
    CheckPool(all);
    for (const Connection& connection : connections_) {
      const uint64_t one = result_bytes_[connection.tenant];
      EXPECT_LE(connection.bytes, std::max(Most(settings_[connection.tenant]) / 4, one));
    }
  }

  void CheckPool(uint64_t lent) {
    uint64_t blocks = 0;
    ForEachResult(
        [&](const PinnedBuffer& buffer) { blocks += PinnedPool::BlockBytes(buffer.size()); });
    EXPECT_EQ(blocks, lent);
    const PinnedPool::Statistics pool = pool_->statistics();
    EXPECT_EQ(pool.allocated_bytes, lent);
    EXPECT_EQ(pool.reserved_bytes, SimulatedPinnedBytes());
    EXPECT_LE(pool.reserved_bytes, kPinnedBytes);
    EXPECT_EQ(pool.fallbacks_total, 0u);
  }

  // Whatever others' readers leave unread.
  void CheckOnlyOwnMemoryIsWaitedFor() {
    for (const auto& [task, wait] : waiting_) {
      const Connection& connection = connections_[wait.connection];
      const uint32_t t = connection.tenant;
      const bool is_tenant_full =
          used_[t] + result_bytes_[t] > settings_[t].pinned.reserved && settings_.size() > 1;
      const bool is_all_full = used_[t] + result_bytes_[t] > Most(settings_[t]);
      EXPECT_TRUE(IsFull(connection) || is_tenant_full || is_all_full)
          << "task " << task << " of tenant " << t << " waits for another tenant";
    }
  }

  void CheckNothingIsLeft() {
    EXPECT_TRUE(waiting_.empty()) << waiting_.size() << " tasks were forgotten";
    EXPECT_FALSE(zones_->AnybodyWaits());
    EXPECT_FALSE(zones_->WaitsForReaders());
    for (const auto& device : devices_) EXPECT_EQ(device->tasks.depth(), 0u);
    for (const uint64_t used : used_) EXPECT_EQ(used, 0u);
    CheckPool(/*lent=*/0);
    pool_->Close();
    EXPECT_EQ(SimulatedPinnedBytes(), 0u);
  }

  Random random_;
  absl::Time now_ = absl::FromUnixSeconds(1000);
  std::vector<server::TenantSettings> settings_;
  // By tenant.
  std::vector<std::vector<size_t>> result_sizes_;
  std::vector<uint64_t> result_bytes_;  // in blocks
  std::vector<uint64_t> used_;
  const std::shared_ptr<PinnedPool> pool_ = PinnedPool::Create(SimulatedAcl(), kPinnedBytes);
  std::shared_ptr<PinnedZones> zones_ = PinnedZones::Create(kPinnedBytes, /*overflows=*/false);
  std::vector<Connection> connections_;
  std::vector<std::unique_ptr<Device>> devices_;
  absl::btree_map<uint64_t, Waiting> waiting_;
  uint64_t tasks_ = 0;
  uint64_t refusals_ = 0;
};

TEST(ReadersSimulationTest, NoTenantWaitsForAnothersReaders) {
  uint64_t refusals = 0;
  const uint64_t first = TestSeed(0);
  for (uint64_t seed = first; seed < first + 1000 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ReadersSimulation simulation(seed);
    simulation.Run();
    refusals += simulation.refusals();
  }
  EXPECT_GT(refusals, 100u);
}

}  // namespace
}  // namespace opserve::simulation
