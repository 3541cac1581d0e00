// Every ABI call that a mixed workload makes, failed once each, one per run: whatever a call gives,
// the answers are right or a documented error, nothing is held, and the next workload is well.

#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "tests/fault/workload.h"
#include "tests/fuzz/error_text.h"
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
#include "server/device/acl_functions.inc"
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

// Codes of each class: misuse, memory, a failed runtime call, a device fault. Each run starts the
// device twice, which takes ThreadSanitizer seconds; threads do the most for the last.
#ifdef __SANITIZE_THREAD__
constexpr int kCodes[] = {507010};
#else
constexpr int kCodes[] = {107002, 207001, 361001, 507010};
#endif

bool IsDocumented(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kFailedPrecondition:  // a resident tensor that went with its device
      return true;
    default:
      return false;
  }
}

class EnumerationTest : public ::testing::Test {
 protected:
  static Config OneLane() {
    Config config =
        InProcessDaemon::OneLane();  // so that a workload makes the same calls each time
    // Each workload begins as the first did: no plans, no memory.
    config.workspace_floor_bytes = 0;
    return config;
  }
  void TearDown() override { ClearFaults(); }
};

TEST_F(EnumerationTest, EachCallMayFail) {
  InProcessDaemon daemon(OneLane());
  std::map<std::string, uint64_t> calls;
  for (const std::string& function : Functions()) calls[function] = Calls(function);
  for (const Step& step : RunWorkload(daemon.client())) {
    ASSERT_TRUE(step.status.ok()) << step.name << ": " << step.status;
  }
  for (auto& [function, count] : calls) count = Calls(function) - count;

  int runs = 0;
  for (const auto& [function, count] : calls) {
    for (int code : kCodes) {
      for (uint64_t nth = 1; nth <= count; ++nth) {
        SCOPED_TRACE(absl::StrCat(function, " call ", nth, " gives ", code));
        // Cached plans would spare calls that were counted: the device starts anew.
        daemon.daemon().scheduler().Find(0)->device().Quarantine(Fault::kDevice, "a new run");
        daemon.AwaitReady();
        InjectFaults(absl::StrCat("call=", function, ",code=", code, ",nth=", nth));
        for (const Step& step : RunWorkload(daemon.client())) {
          EXPECT_TRUE(IsDocumented(step.status)) << step.name << ": " << step.status;
          EXPECT_THAT(GivenAway(step.status.ToString()), testing::IsEmpty()) << step.name;
        }
        ClearFaults();
        daemon.AwaitReady();
        EXPECT_EQ(daemon.HeldByRequests(), 0);
        for (const Step& step : RunWorkload(daemon.client())) {
          ASSERT_TRUE(step.status.ok()) << "afterwards, " << step.name << ": " << step.status;
        }
        ++runs;
      }
    }
  }
  RecordProperty("runs", runs);
  EXPECT_GT(runs, static_cast<int>(50 * std::size(kCodes)));
}

}  // namespace
}  // namespace opserve::server
