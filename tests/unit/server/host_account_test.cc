// Host memory of prepared programs and of all that their runs leave behind: counted, limited, given
// back, and about as much as the process really holds.
#include "server/program/host_account.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/native/native_request.h"
#include "server/run/captured_runs.h"
#include "server/run/prepared_programs.h"
#include "tests/process_memory.h"
#include "tests/unit/server/lane_fixture.h"

namespace opserve::server {
namespace {

TEST(HostAccountTest, BytesCountFromOpenToClose) {
  const auto all = std::make_shared<HostSum>();
  const auto tenant = std::make_shared<HostSum>(/*limit=*/100, all);
  const auto one = std::make_shared<HostAccount>();
  const auto other = std::make_shared<HostAccount>();
  HostCharge early = one->Charge(5);
  EXPECT_TRUE(one->HasRoom(1000));
  one->Open(tenant, 20);
  other->Open(tenant, 30);

  HostCharge charge = one->Charge(40);
  EXPECT_EQ(one->bytes(), 65u);
  EXPECT_EQ(tenant->bytes(), 95u);
  EXPECT_EQ(all->bytes(), 95u);
  EXPECT_TRUE(other->HasRoom(5));
  EXPECT_FALSE(other->HasRoom(6));
  EXPECT_TRUE(charge.IsIn(*one));
  EXPECT_FALSE(charge.IsIn(*other));
  EXPECT_TRUE(charge.IsBeside(*other));

  one->Close();
  EXPECT_EQ(one->bytes(), 0u);
  EXPECT_EQ(tenant->bytes(), 30u);
  EXPECT_FALSE(charge.Counts());

  // Prepared again: what was charged before does not come back, nor is it taken off.
  one->Open(tenant, 20);
  HostCharge late = one->Charge(7);
  charge = HostCharge();
  early = HostCharge();
  EXPECT_EQ(tenant->bytes(), 57u);
  HostCharge moved = std::move(late);
  EXPECT_FALSE(late.Counts());
  EXPECT_TRUE(moved.Counts());
  moved = HostCharge();
  EXPECT_EQ(tenant->bytes(), 50u);
}

class HostMemoryTest : public LaneFixture {
 protected:
  static constexpr uint32_t kTenant = 3;
  static constexpr int kInvocations = 12;
  static constexpr int kExecutors = 7;  // of these, that are not equal
  static constexpr PreparedLimits kNoLimits = {.max_bytes_per_tenant = uint64_t{1} << 30};

  // A lane beside the fixture's.
  struct Lane {
    std::unique_ptr<StreamLane> stream;
    std::unique_ptr<PlanCache> plans;
  };

  void SetUp() override {
    LaneFixture::SetUp();
    captured_ =
        std::make_unique<CapturedRuns>(acl_, /*max_bytes=*/16 << 20, /*runs_per_program=*/1,
                                       [](uint32_t, uint64_t) { return std::make_shared<int>(); });
  }
  void TearDown() override {
    captured_.reset();
    lanes_.clear();
    LaneFixture::TearDown();
  }

  void MakeCapturedRuns() {
    captured_ =
        std::make_unique<CapturedRuns>(acl_, /*max_bytes=*/16 << 20, /*runs_per_program=*/1,
                                       [](uint32_t, uint64_t) { return std::make_shared<int>(); });
  }
  void AddLane(size_t plans) {
    lanes_.push_back({*StreamLane::Create(*device_, static_cast<uint32_t>(lanes_.size()) + 1),
                      std::make_unique<PlanCache>(acl_, plans, counters_)});
  }

  // Two layers of a network, again and again, on rows of `width` FLOATs: each width has executors
  // of its own. Its input comes with each call.
  static v1::PrepareRequest Network(int64_t width, int invocations = kInvocations) {
    v1::PrepareRequest request;
    v1::ProgramInput* payload = request.add_inputs();
    payload->set_dtype(v1::DATA_TYPE_FLOAT);
    payload->add_shape(2);
    payload->add_shape(width);
    const char* const kOperators[] = {"Add", "Softmax", "Mul", "Gelu", "Adds", "Relu"};
    for (int i = 0; i < invocations; ++i) {
      v1::Invocation* invocation = request.mutable_program()->add_invocations();
      const std::string name = kOperators[i % std::size(kOperators)];
      invocation->set_operator_(name);
      const bool is_binary = name == "Add" || name == "Mul";
      for (const char* input : {"self", "other"}) {
        if (!is_binary && input != std::string("self")) continue;
        v1::NamedTensor* named = invocation->add_inputs();
        named->set_name(input);
        v1::Tensor* tensor = named->mutable_tensor();
        if (i == 0) {
          tensor->set_program_input(0);
        } else {
          tensor->mutable_invocation_output()->set_invocation(i - 1);
        }
      }
      if (name == "Softmax") {
        v1::NamedAttribute* dim = invocation->add_attributes();
        dim->set_name("dim");
        dim->mutable_value()->set_int64_value(1);
      }
      if (name == "Adds") {
        v1::NamedAttribute* other = invocation->add_attributes();
        other->set_name("other");
        other->mutable_value()->set_double_value(i);
      }
    }
    return request;
  }

  std::string Prepare(const v1::PrepareRequest& request, PreparedPrograms& programs,
                      uint32_t tenant = kTenant) {
    const auto added = programs.Prepare(
        tenant, request.SerializeAsString(), absl::InfiniteDuration(), absl::UnixEpoch(), [&] {
          return MakePrepared(request, operators_, ProgramLimits(),
                              [](absl::string_view) { return absl::NotFoundError(""); });
        });
    EXPECT_TRUE(added.ok()) << added.status();
    return added->handle;
  }

  // Whether the run was replayed.
  bool Run(const std::string& handle, PreparedPrograms& programs, Lane& lane, bool may_capture,
           uint32_t tenant = kTenant) {
    const auto program = programs.Find(tenant, handle, absl::UnixEpoch());
    EXPECT_TRUE(program.ok()) << program.status();
    const uint64_t bytes = (*program)->program().payload_sizes.front();
    auto bound = (*program)->Bind(
        PreparedRequest(), {bytes}, [](absl::string_view) { return absl::NotFoundError(""); },
        NoSharedMemory);
    EXPECT_TRUE(bound.ok()) << bound.status();
    const std::vector<float> values(bytes / sizeof(float), 1);
    const CallState call(absl::InfiniteFuture());
    StageClock clock;
    LaneContext context{*lane.stream, *lane.plans, *pinned_, limits_, timeout_};
    context.captured = may_capture ? captured_.get() : nullptr;
    const auto result =
        RunProgram(*bound, {{bytes, {{reinterpret_cast<const char*>(values.data()), bytes}}}}, call,
                   tenant, context, clock);
    EXPECT_TRUE(result.ok()) << result.status();
    return result->is_replayed;
  }

  std::unique_ptr<CapturedRuns> captured_;
  std::vector<Lane> lanes_;
};

TEST_F(HostMemoryTest, ExecutorsAndCapturesCountOnceAndComeBackWhenTheyGo) {
  AddLane(kExecutors);
  AddLane(kExecutors);
  PreparedPrograms programs(kNoLimits);
  const std::string a = Prepare(Network(10), programs);
  const std::string b = Prepare(Network(20), programs);
  const uint64_t graphs = programs.UsageOfTenant(kTenant).bytes;
  const auto of_runs = [&](const std::string& handle) {
    const auto program = programs.Find(kTenant, handle, absl::UnixEpoch());
    return (*program)->program().host_account->bytes() - (*program)->host_bytes();
  };

  Run(a, programs, lanes_[0], /*may_capture=*/false);
  const uint64_t executors = of_runs(a);
  EXPECT_GT(executors, 0u);
  Run(a, programs, lanes_[0], /*may_capture=*/false);
  EXPECT_EQ(of_runs(a), executors);
  Run(a, programs, lanes_[1], /*may_capture=*/false);
  EXPECT_EQ(of_runs(a), 2 * executors);
  for (int i = 0; i < 2; ++i) Run(a, programs, lanes_[0], /*may_capture=*/true);
  const uint64_t capture = of_runs(a) - 2 * executors;
  EXPECT_GT(capture, 0u);

  // Another program displaces the executors; the capture keeps those of its lane.
  for (Lane& lane : lanes_) Run(b, programs, lane, /*may_capture=*/false);
  EXPECT_EQ(of_runs(a), executors + capture);
  captured_->DropAll(CapturedRuns::kDrained);
  captured_->DestroyEnded();
  EXPECT_EQ(of_runs(a), 0u);
  EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, graphs + of_runs(b));
  lanes_.clear();
  EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, graphs);
}

TEST_F(HostMemoryTest, ExecutorsOfAProgramThatHasGoneCountForTheNextThatUsesThem) {
  constexpr uint32_t kOther = kTenant + 1;
  AddLane(kExecutors);
  PreparedPrograms programs(kNoLimits);
  const std::string first = Prepare(Network(10), programs);
  const std::string second = Prepare(Network(10), programs, kOther);
  const uint64_t graph = programs.UsageOfTenant(kOther).bytes;
  Run(first, programs, lanes_[0], /*may_capture=*/false);
  Run(second, programs, lanes_[0], /*may_capture=*/false, kOther);
  const uint64_t with_executors = programs.UsageOfTenant(kTenant).bytes;
  EXPECT_GT(with_executors, graph);
  EXPECT_EQ(programs.UsageOfTenant(kOther).bytes, graph);

  programs.Release(kTenant, {first});
  EXPECT_EQ(programs.UsageOfAll().bytes, graph);
  Run(second, programs, lanes_[0], /*may_capture=*/false, kOther);
  EXPECT_EQ(programs.UsageOfTenant(kOther).bytes, with_executors);
  EXPECT_EQ(programs.UsageOfAll().bytes, with_executors);
}

TEST_F(HostMemoryTest, ExecutorsOfAProgramThatHasGoneGoUnlessAnotherUsesThem) {
  constexpr uint32_t kOther = kTenant + 1;
  for (int i = 0; i < 2; ++i) AddLane(2 * kExecutors);
  PreparedPrograms programs(kNoLimits);
  const std::string stays = Prepare(Network(12), programs);
  const std::string first = Prepare(Network(10), programs);
  const std::string second = Prepare(Network(10), programs, kOther);
  const auto drop_unused = [this] {
    for (Lane& lane : lanes_) lane.plans->DropUnused();
  };
  Run(stays, programs, lanes_[0], /*may_capture=*/false);
  const int64_t baseline = HostCount(OPSERVE_HOST_EXECUTORS);
  const uint64_t bytes = programs.UsageOfTenant(kTenant).bytes;
  for (Lane& lane : lanes_) Run(first, programs, lane, /*may_capture=*/false);
  const int64_t executors = HostCount(OPSERVE_HOST_EXECUTORS);
  ASSERT_EQ(executors, baseline + 2 * kExecutors);

  // Those of programs that are there stay, however long they are not used.
  for (int i = 0; i < 3; ++i) drop_unused();
  EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), executors);

  programs.Release(kTenant, {first});
  drop_unused();
  EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), executors);
  // The other tenant's program uses those of one lane.
  const uint64_t calls = HostCalls("aclnnReluGetWorkspaceSize");
  Run(second, programs, lanes_[0], /*may_capture=*/false, kOther);
  EXPECT_EQ(HostCalls("aclnnReluGetWorkspaceSize"), calls);
  for (int i = 0; i < 2; ++i) drop_unused();
  EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), baseline + kExecutors);

  programs.Release(kOther, {second});
  for (int i = 0; i < 2; ++i) drop_unused();
  EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), baseline);
  EXPECT_GT(programs.UsageOfTenant(kTenant).bytes, 0u);
  EXPECT_LT(programs.UsageOfTenant(kTenant).bytes, bytes);
  EXPECT_EQ(programs.UsageOfTenant(kOther).bytes, 0u);
}

TEST_F(HostMemoryTest, ExecutorsGoWhileTheirLaneRunsPrograms) {
  AddLane(2 * kExecutors);
  PreparedPrograms programs(kNoLimits);
  std::atomic<bool> is_over = false;
  std::thread other([this, &is_over] {
    EXPECT_EQ(acl_.aclrtSetDevice(0), 0);
    while (!is_over) lanes_[0].plans->DropUnused();
  });
  for (int i = 0; i < 50; ++i) {
    const std::string handle = Prepare(Network(10), programs);
    for (int run = 0; run < 3; ++run) Run(handle, programs, lanes_[0], /*may_capture=*/true);
    programs.Release(kTenant, {handle});
  }
  is_over = true;
  other.join();
  captured_->DropAll(CapturedRuns::kReleased);
  captured_->DestroyEnded();
  for (int i = 0; i < 2; ++i) lanes_[0].plans->DropUnused();

  EXPECT_EQ(HostCount(OPSERVE_HOST_EXECUTORS), 0);
  EXPECT_EQ(programs.UsageOfAll().bytes, 0u);
}

TEST_F(HostMemoryTest, WithoutRoomTheTenantsOldestExecutorsGoAndNothingIsCaptured) {
  uint64_t graph = 0;
  uint64_t executors = 0;
  {
    AddLane(3 * kExecutors);
    PreparedPrograms programs(kNoLimits);
    const std::string a = Prepare(Network(10), programs);
    graph = programs.UsageOfTenant(kTenant).bytes;
    Run(a, programs, lanes_[0], /*may_capture=*/false);
    executors = programs.UsageOfTenant(kTenant).bytes - graph;
    lanes_.clear();
  }
  const struct {
    const char* name;
    uint64_t limit;
    int kept;  // executors of so many programs, the last ones
  } kCases[] = {
      {"room for two of three", 3 * graph + 2 * executors, 2},
      {"room for one of three", 3 * graph + executors, 1},
      {"room for none", 3 * graph, 0},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    AddLane(5 * kExecutors);
    PreparedPrograms programs({.max_bytes_per_tenant = c.limit + 100});
    std::vector<std::string> handles;
    for (const int64_t width : {10, 12, 14}) {
      handles.push_back(Prepare(Network(width), programs));
    }
    const auto stage_ones = [&](const std::string& handle, uint32_t tenant = kTenant) {
      const uint64_t before = HostCalls("aclnnReluGetWorkspaceSize");
      Run(handle, programs, lanes_[0], /*may_capture=*/true, tenant);
      return HostCalls("aclnnReluGetWorkspaceSize") - before;
    };
    const std::string other = Prepare(Network(100), programs, kTenant + 1);
    stage_ones(other, kTenant + 1);
    for (const std::string& handle : handles) stage_ones(handle);

    EXPECT_LE(programs.UsageOfTenant(kTenant).bytes, c.limit + 100);
    EXPECT_EQ(captured_->runs(), 0);
    // Another tenant's stay.
    EXPECT_EQ(stage_ones(other, kTenant + 1), 0u);
    // From the newest on, which leaves the order of the others as it is.
    for (int i = 2; i >= 3 - c.kept; --i) EXPECT_EQ(stage_ones(handles[i]), 0u) << i;
    EXPECT_GT(stage_ones(handles[0]), 0u);
    EXPECT_LE(programs.UsageOfTenant(kTenant).bytes, c.limit + 100);
    EXPECT_GT(captured_->results(CapturedRuns::kTenantFull), 0u);
    captured_->DropAll(CapturedRuns::kClosed);
    captured_->DestroyEnded();
    lanes_.clear();
  }
}

TEST_F(HostMemoryTest, ExecutorsThatOnlyACaptureKeepsCountWithIt) {
  AddLane(/*plans=*/1);
  uint64_t needed = 0;
  // What it needs is found out first.
  for (const int64_t missing : {int64_t{-1} << 30, int64_t{1}, int64_t{0}}) {
    SCOPED_TRACE(missing);
    const bool has_room = missing <= 0;
    PreparedPrograms programs({.max_bytes_per_tenant = needed - static_cast<uint64_t>(missing)});
    const std::string handle = Prepare(Network(10), programs);
    Run(handle, programs, lanes_[0], /*may_capture=*/true);
    const uint64_t without = programs.UsageOfTenant(kTenant).bytes;
    Run(handle, programs, lanes_[0], /*may_capture=*/true);

    EXPECT_EQ(captured_->runs(), has_room ? 1 : 0);
    EXPECT_EQ(captured_->results(CapturedRuns::kTenantFull), has_room ? 0u : 1u);
    if (needed == 0) needed = programs.UsageOfTenant(kTenant).bytes;
    EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, has_room ? needed : without);
    // More than the capture alone: its executors, too, of which the lane keeps one.
    const auto program = programs.Find(kTenant, handle, absl::UnixEpoch());
    EXPECT_GT(needed - without, 2 * (*program)->host_bytes());
    programs.Release(kTenant, {handle});
    MakeCapturedRuns();
  }
}

TEST_F(HostMemoryTest, ExecutorsMakeRoomForANewProgramWithTheHandleThatHasThem) {
  AddLane(2 * kExecutors);
  uint64_t graph = 0;
  {
    PreparedPrograms programs(kNoLimits);
    Prepare(Network(10), programs);
    graph = programs.UsageOfTenant(kTenant).bytes;
  }
  PreparedPrograms programs({.max_bytes_per_tenant = 3 * graph});
  const std::string old = Prepare(Network(10), programs);
  Run(old, programs, lanes_[0], /*may_capture=*/false);
  EXPECT_GT(programs.UsageOfTenant(kTenant).bytes, 2 * graph);

  const std::string first = Prepare(Network(12), programs);
  const std::string second = Prepare(Network(14), programs);

  EXPECT_FALSE(programs.Find(kTenant, old, absl::UnixEpoch()).ok());
  EXPECT_TRUE(programs.Find(kTenant, first, absl::UnixEpoch()).ok());
  EXPECT_TRUE(programs.Find(kTenant, second, absl::UnixEpoch()).ok());
  EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, 2 * graph);
}

TEST_F(HostMemoryTest, WhatCountsIsAboutWhatTheProcessHolds) {
  constexpr int kPrograms = 100;
  constexpr int kLanes = 3;
  for (int i = 0; i < kLanes; ++i) AddLane(/*plans=*/kPrograms * kInvocations);
  PreparedPrograms programs(kNoLimits);
  std::vector<std::string> handles;
  // What is made once: by the libraries, the pools and this test.
  handles.push_back(Prepare(Network(1000), programs));
  for (Lane& lane : lanes_) {
    for (int i = 0; i < 2; ++i) Run(handles[0], programs, lane, /*may_capture=*/true);
  }
  int64_t held_before = LiveHeapBytes();
  uint64_t counted_before = programs.UsageOfAll().bytes;
  const auto expect_near = [&](const char* what) {
    const int64_t held = LiveHeapBytes() - held_before;
    const uint64_t counted = programs.UsageOfAll().bytes - counted_before;
    std::printf("%s: %lld bytes held, %llu counted\n", what, static_cast<long long>(held),
                static_cast<unsigned long long>(counted));
    EXPECT_EQ(programs.UsageOfTenant(kTenant).bytes, programs.UsageOfAll().bytes);
    if (kMemoryTells) {
      EXPECT_NEAR(static_cast<double>(counted), held, 0.2 * static_cast<double>(held)) << what;
    }
    held_before += held;
    counted_before += counted;
  };

  for (int i = 1; i < kPrograms; ++i) handles.push_back(Prepare(Network(2 * i), programs));
  expect_near("graphs and plans");
  for (Lane& lane : lanes_) {
    for (const std::string& handle : handles) Run(handle, programs, lane, /*may_capture=*/false);
  }
  expect_near("executors");
  for (int i = 0; i < 2; ++i) {
    for (const std::string& handle : handles) {
      EXPECT_FALSE(i > 0 && handle == handles[0] &&
                   !Run(handle, programs, lanes_[0], /*may_capture=*/true));
      Run(handle, programs, lanes_[0], /*may_capture=*/true);
    }
  }
  EXPECT_EQ(captured_->runs(), kPrograms);
  expect_near("captures");
}

}  // namespace
}  // namespace opserve::server
