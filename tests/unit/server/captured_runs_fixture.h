// A prepared program whose runs are captured on a lane, for tests without a daemon.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "proto/status/error.h"
#include "server/native/native_request.h"
#include "server/run/captured_runs.h"
#include "server/run/prepared_program.h"
#include "tests/adding_program.h"
#include "tests/unit/server/lane_fixture.h"
namespace opserve::server {

class CapturedRunsFixture : public LaneFixture {
 protected:
  static constexpr int64_t kNumElements = 16;
  static constexpr uint64_t kPayloadBytes = kNumElements * sizeof(float);

  void SetUp() override {
    LaneFixture::SetUp();
    captured_ = NewRuns(1 << 20);
    weights_ = NewTensor(100);
  }
  void TearDown() override {
    captured_.reset();
    weights_.reset();
    kept_.reset();
    program_.reset();
    LaneFixture::TearDown();
  }

  std::unique_ptr<CapturedRuns> NewRuns(uint64_t max_bytes, size_t runs_per_program = 1) {
    return std::make_unique<CapturedRuns>(
        acl_, max_bytes, runs_per_program,
        [this](uint32_t, uint64_t bytes) -> absl::StatusOr<std::shared_ptr<void>> {
          if (!has_room_) return MakeError(Reason::kTenantMemory, "full", /*pushback_ms=*/1);
          booked_ += bytes;
          return std::shared_ptr<void>(this, [this, bytes](void*) { booked_ -= bytes; });
        });
  }

  std::shared_ptr<ResidentTensor> NewTensor(float value) {
    auto tensor = std::make_shared<ResidentTensor>();
    tensor->spec = {v1::DATA_TYPE_FLOAT, {kNumElements}};
    tensor->device_generation = device_->generation();
    auto memory = device_->memory().Allocate({.bytes = kPayloadBytes});
    EXPECT_TRUE(memory.ok()) << memory.status();
    const std::vector<float> values(kNumElements, value);
    acl_.aclrtMemcpy(memory->data(), kPayloadBytes, values.data(), kPayloadBytes,
                     ACL_MEMCPY_HOST_TO_DEVICE);
    tensor->content->memory = *std::move(memory);
    return tensor;
  }

  // The use that a program makes of its sum: it may replace the resident tensor, which is worked in
  // if it is donated, or stay as a new one.
  enum class Sum { kReturned, kReplaces, kReplacesDonated, kKept };
  // Adds the payload of each call `adds` times to the resident tensor and gives the sum.
  void Prepare(int adds, Sum use = Sum::kReturned) {
    v1::PrepareRequest request = AddingProgram("Add", adds, kNumElements);
    v1::ExecuteRequest* program = request.mutable_program();
    program->add_results()->set_invocation(adds - 1);
    if (use != Sum::kReturned) {
      v1::WantedResult* result = program->add_results();
      result->set_invocation(adds - 1);
      if (use == Sum::kKept) {
        result->mutable_keep();
      } else {
        result->mutable_replace()->set_program_input(1);
      }
    }
    if (use == Sum::kReplacesDonated) program->add_donated_inputs(1);
    auto made =
        MakePrepared(request, operators_, ProgramLimits(),
                     [](absl::string_view) -> absl::StatusOr<std::shared_ptr<ResidentTensor>> {
                       return absl::NotFoundError("none");
                     });
    ASSERT_TRUE(made.ok()) << made.status();
    program_ = std::make_unique<PreparedProgram>(*std::move(made));
  }

  struct Outcome {
    absl::Status status;
    std::vector<float> sum;
    bool is_replayed = false;
    int64_t charged = 0;  // launches
    ProgramResult result;
  };
  ProgramCall Bind() {
    v1::PreparedCall message;
    message.add_residents("w");
    auto bound = program_->Bind(
        TranslateCall(message), {kPayloadBytes},
        [this](absl::string_view) -> absl::StatusOr<std::shared_ptr<ResidentTensor>> {
          return weights_;
        },
        NoSharedMemory);
    EXPECT_TRUE(bound.ok()) << bound.status();
    for (std::shared_ptr<ResidentTensor>& kept : bound->kept) {
      kept = std::make_shared<ResidentTensor>();
      kept->device_generation = device_->generation();
    }
    return *std::move(bound);
  }
  static std::vector<codec::Payload> PayloadsOf(const std::vector<float>& values) {
    return {{kPayloadBytes, {{reinterpret_cast<const char*>(values.data()), kPayloadBytes}}}};
  }
  // A call with `value` in every element of the payload.
  Outcome Run(float value, const CallState& call) {
    const ProgramCall bound = Bind();
    const std::vector<float> values(kNumElements, value);
    const std::vector<codec::Payload> payloads = PayloadsOf(values);
    StageClock clock;
    LaneContext lane = context();
    lane.captured = captured_.get();
    const int64_t charged = HostCount(OPSERVE_HOST_CHARGED_LAUNCHES);
    auto result = RunProgram(bound, payloads, call, /*tenant=*/0, lane, clock);
    Outcome outcome;
    outcome.status = result.status();
    outcome.charged = HostCount(OPSERVE_HOST_CHARGED_LAUNCHES) - charged;
    if (!result.ok()) return outcome;
    outcome.is_replayed = result->is_replayed;
    const auto* sum = static_cast<const float*>(result->outputs[0].data.data());
    outcome.sum.assign(sum, sum + kNumElements);
    outcome.result = *std::move(result);
    if (bound.kept.empty()) return outcome;
    if (bound.program->kept[0].replaced) {
      weights_->content = bound.kept[0]->content;
    } else {
      kept_ = bound.kept[0];
    }
    return outcome;
  }
  Outcome Run(float value) {
    const CallState call(absl::Now() + absl::Seconds(60));
    return Run(value, call);
  }
  // Until as many were captured, none of which is in use.
  void Warm(int64_t runs = 1) {
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(Run(1).status.ok());
    const ProgramCall call = Bind();
    std::vector<std::unique_ptr<CapturedRun>> taken;
    for (int64_t i = 1; i < runs; ++i) {
      taken.push_back(captured_->Take(call, absl::Now()));
      ASSERT_NE(taken.back(), nullptr);
      ASSERT_TRUE(Run(1).status.ok());
    }
    for (auto& run : taken) captured_->Put(call, std::move(run), absl::Now());
    ASSERT_EQ(captured_->runs(), runs);
  }
  static std::vector<float> ElementsOf(const ResidentTensor& tensor) {
    std::vector<float> elements(kNumElements);
    TestAcl().aclrtMemcpy(elements.data(), kPayloadBytes, tensor.content->memory.data(),
                          kPayloadBytes, ACL_MEMCPY_DEVICE_TO_HOST);
    return elements;
  }
  void ExpectSum(const Outcome& outcome, float sum) {
    ASSERT_TRUE(outcome.status.ok()) << outcome.status;
    EXPECT_THAT(outcome.sum, ::testing::Each(sum));
  }

  bool has_room_ = true;
  uint64_t booked_ = 0;
  std::unique_ptr<CapturedRuns> captured_;
  std::shared_ptr<ResidentTensor> weights_;
  std::shared_ptr<ResidentTensor> kept_;  // by the last run
  std::unique_ptr<PreparedProgram> program_;
};

}  // namespace opserve::server
