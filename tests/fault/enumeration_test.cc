// Every ABI call that a mixed workload makes, failed once each, one per run: the step that it hits
// ends as the table says and no other step does, nothing is held, and the next workload is well.

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "proto/status/error.h"
#include "server/device/memory/pinned_pool.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/fault/workload.h"
#include "tests/fuzz/error_text.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {
namespace {

uint64_t Calls(const std::string& function) {
  return reinterpret_cast<decltype(&opserveHostCalls)>(dlsym(RTLD_DEFAULT, "opserveHostCalls"))(
      function.c_str());
}

// Every function the daemon can call, the operators' included, but those that begin and end ACL.
std::vector<std::string> Functions() {
  std::vector<std::string> functions = {
#define OPSERVE_ACL_CORE(function) #function,
#define OPSERVE_ACL_OPTIONAL OPSERVE_ACL_CORE
#include "server/device/acl/acl_functions.inc"
#undef OPSERVE_ACL_OPTIONAL
#undef OPSERVE_ACL_CORE
  };
  std::erase(functions, "aclInit");
  std::erase(functions, "aclFinalize");
  for (const catalog::OperatorDescriptor* op : catalog::AllOperators()) {
    functions.push_back(op->stage_one);
    functions.push_back(op->stage_two);
  }
  return functions;
}

// How a step ends.
struct Outcome {
  absl::StatusCode code = absl::StatusCode::kOk;
  absl::string_view reason = "";
  int number = 0;  // CANN's, in the error's detail
  bool resets_device = false;
};

constexpr Outcome kSuccess;
// The device was reset since the tensor was uploaded.
constexpr Outcome kTensorLost = {absl::StatusCode::kFailedPrecondition, "tensor_lost"};

// A code of each class, and the outcome of a step whose call fails with it: misuse by the daemon,
// memory, a runtime call that failed inside aclnn, a lost device. Each run starts the device twice,
// which takes seconds with a sanitizer; threads do the most for a lost device, and most memory is
// given back for want of memory and for a lost device.
constexpr Outcome kByCode[] = {
#ifndef ABSL_HAVE_THREAD_SANITIZER
    {absl::StatusCode::kResourceExhausted, "device_memory", 207001},
#ifndef ABSL_HAVE_ADDRESS_SANITIZER
    {absl::StatusCode::kInternal, "", 107002},
    {absl::StatusCode::kInternal, "", 361001},
#endif
#endif
    {absl::StatusCode::kUnavailable, "device_unavailable", 507010, /*resets_device=*/true},
};

// The functions whose failure has another outcome than its code's.
enum class Effect {
  kNone,      // the step succeeds
  kNoObject,  // the function gives null instead of an object and no code: kInternal for every code
  kUnbound,   // see OutcomeOf
  kMemory,    // a code for want of memory has the call repeated; any other is the step's
  kRepeated,  // the step succeeds if the call was made again in it, and else ends by its code
};
struct Exception {
  absl::string_view functions;  // the name of one, or with a '*' the beginning of several's
  Effect effect;
};
constexpr Exception kExceptions[] = {
    // The answer does not depend on freeing, and there is nothing else to do about an object or
    // block that is not freed. A lost device is noticed by the next call that needs it.
    {"aclDestroy*", Effect::kNone},
    {"aclrtFree*", Effect::kNone},
    // Gives a text, which may be null: the message is poorer.
    {"aclGetRecentErrMsg", Effect::kNone},
    // The supervisor asks it, for metrics: the figures stay those of a moment before.
    {"aclrtGetMemInfo", Effect::kNone},
    // Without an answer the stream counts as busy, and a lane's thread waits for it.
    {"aclrtStreamQuery", Effect::kNone},
    {"aclCreate*", Effect::kNoObject},
    {"aclrtSetCurrentContext", Effect::kUnbound},
    // For want of memory the pool gives idle memory back, or asks for less at once.
    {"aclrtMalloc", Effect::kMemory},
    // A visiting thread that gets no memory, not even that of another tenant, which has to be
    // overwritten first, leaves the request to a lane's thread, which tries anew.
    {"aclrtMemsetAsync", Effect::kRepeated},
};

// Of the step in which a call of `function` fails with by_code.number. `is_repeated`: the function
// was called again in it. `was_reset`: the device was.
Outcome OutcomeOf(absl::string_view function, const Outcome& by_code, bool is_repeated,
                  bool was_reset) {
  const auto* const exception = std::find_if(
      std::begin(kExceptions), std::end(kExceptions), [function](const Exception& one) {
        absl::string_view beginning = one.functions;
        return absl::ConsumeSuffix(&beginning, "*") ? absl::StartsWith(function, beginning)
                                                    : function == one.functions;
      });
  if (exception == std::end(kExceptions)) return by_code;
  switch (exception->effect) {
    case Effect::kNone:
      return kSuccess;
    case Effect::kNoObject:
      return {absl::StatusCode::kInternal, "", ACL_ERROR_FAILURE};
    case Effect::kUnbound:
      // A visiting thread leaves the request to a lane's thread. A lane's thread that cannot be
      // bound can serve nothing, for whatever reason: the device is set up anew.
      return was_reset ? Outcome{absl::StatusCode::kUnavailable, "device_unavailable", 0, true}
                       : kSuccess;
    case Effect::kMemory:
      return by_code.code == absl::StatusCode::kResourceExhausted ? kSuccess : by_code;
    case Effect::kRepeated:
      // A device that was reset calls it in its golden cases.
      return is_repeated && !was_reset ? kSuccess : by_code;
  }
  return by_code;
}

class EnumerationTest : public ::testing::Test {
 protected:
  // Without plans and idle memory from the workload before. One lane, so that a workload makes the
  // same calls each time.
  static Config OneLane() {
    Config config = InProcessDaemon::OneLane();
    config.workspace_floor_bytes = 0;
    return config;
  }
  void TearDown() override { ClearFaults(); }

  Device& device() { return daemon_.daemon().scheduler().Find(0)->device(); }

  void ExpectSuccess() {
    RunWorkload(daemon_.client(), [](const Step& step) {
      ASSERT_TRUE(step.status.ok()) << step.name << ": " << step.status;
    });
  }

  static void ExpectOutcome(const Step& step, const Outcome& expected) {
    SCOPED_TRACE(absl::StrCat(step.name, ": ", step.status.ToString()));
    EXPECT_EQ(step.status.code(), expected.code);
    const v1::ErrorDetail detail = DetailOf(step.status);
    EXPECT_EQ(detail.reason(), expected.reason);
    EXPECT_EQ(detail.acl_error() != 0 ? detail.acl_error() : detail.aclnn_status(),
              expected.number);
    // Memory may be there when the queue has been served.
    EXPECT_EQ(detail.retry_pushback_ms() > 0,
              expected.code == absl::StatusCode::kResourceExhausted);
    EXPECT_THAT(GivenAway(step.status.ToString()), testing::IsEmpty());
  }

  // A workload whose `nth` call of `function` fails with by_code.number. Whether there was one.
  bool RunWithFault(const std::string& function, uint64_t nth, const Outcome& by_code) {
    const uint64_t hit_at = Calls(function) + nth;
    bool is_hit = false;
    bool is_lost = false;  // the tensor that was uploaded
    uint64_t resets = device().quarantines().total();
    InjectFaults(absl::StrCat("call=", function, ",code=", by_code.number, ",nth=", nth));
    RunWorkload(daemon_.client(), [&](const Step& step) {
      const bool was_reset = device().quarantines().total() != resets;
      Outcome expected = kSuccess;
      if (!is_hit && Calls(function) >= hit_at) {
        is_hit = true;
        expected = OutcomeOf(function, by_code, Calls(function) > hit_at, was_reset);
      } else if (is_lost && step.name == "download") {
        expected = kTensorLost;
      }
      ExpectOutcome(step, expected);
      EXPECT_EQ(was_reset, expected.resets_device) << step.name;
      // So that the fault hits no step but its own.
      if (was_reset) daemon_.AwaitReady();
      is_lost |= was_reset && step.name == "use";
      resets += was_reset;
    });
    ClearFaults();
    return is_hit;
  }

  InProcessDaemon daemon_{OneLane()};
};

TEST_F(EnumerationTest, EachCallMayFail) {
  std::map<std::string, uint64_t> calls;
  for (const std::string& function : Functions()) calls[function] = Calls(function);
  // Until requests of this kind are known to be short, and visiting threads take them.
  for (int i = 0; i < 6; ++i) ExpectSuccess();
  std::erase_if(calls, [](const auto& call) { return Calls(call.first) == call.second; });

  int hits = 0;
  for (const auto& [function, before] : calls) {
    for (const Outcome& by_code : kByCode) {
      bool is_hit = true;
      for (uint64_t nth = 1; is_hit; ++nth) {
        SCOPED_TRACE(absl::StrCat(function, " call ", nth, " gives ", by_code.number));
        // Cached plans and idle memory would spare calls: the device starts anew.
        device().Quarantine(Fault::kDevice, "a new run");
        daemon_.daemon().pinned().Close();
        daemon_.AwaitReady();
        is_hit = RunWithFault(function, nth, by_code);
        EXPECT_EQ(daemon_.HeldByRequests(), 0);
        ExpectSuccess();
        if (HasFailure()) return;
        hits += is_hit;
      }
    }
  }
  RecordProperty("hits", hits);
  EXPECT_GT(hits, static_cast<int>(100 * std::size(kByCode)));
}

}  // namespace
}  // namespace opserve::server
