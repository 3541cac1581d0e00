// Every error code of CANN's, once each: what it is taken for, what the caller is told, and what
// becomes of the device.

#include <fstream>
#include <future>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "server/device/acl/acl_status.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/sanitized.h"

namespace opserve::server {
namespace {

struct Row {
  int code = 0;
  std::string name;
  std::string outcome;
};

std::vector<Row> Rows() {
  std::ifstream file(OPSERVE_TEST_DATA_DIR "/acl_error_codes.txt");
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    rows.push_back({std::stoi(words[0]), words[1], words[3]});
  }
  return rows;
}

struct Expected {
  AclFault fault;
  absl::StatusCode status;
  absl::string_view reason;
  bool resets_device;
};

// By the names of the table.
const std::map<std::string, Expected>& Outcomes() {
  static const auto* const outcomes = new std::map<std::string, Expected>{
      {"none", {AclFault::kNone, absl::StatusCode::kOk, "", false}},
      {"caller", {AclFault::kCaller, absl::StatusCode::kInvalidArgument, "invalid", false}},
      {"unsupported", {AclFault::kUnsupported, absl::StatusCode::kUnimplemented, "", false}},
      {"resource",
       {AclFault::kResource, absl::StatusCode::kResourceExhausted, "device_memory", false}},
      {"kernel", {AclFault::kKernel, absl::StatusCode::kInternal, "", false}},
      {"link", {AclFault::kLink, absl::StatusCode::kUnavailable, "device_unavailable", false}},
      {"device", {AclFault::kDevice, absl::StatusCode::kUnavailable, "device_unavailable", true}},
      {"internal", {AclFault::kInternal, absl::StatusCode::kInternal, "", false}},
  };
  return *outcomes;
}

bool IsAclnn(int code) { return code / 1000 == 161 || code / 1000 == 361 || code / 1000 == 561; }

class ErrorCodesTest : public ::testing::TestWithParam<Door> {
 protected:
  void TearDown() override { ClearFaults(); }

  static uint64_t Quarantines(InProcessDaemon& daemon) {
    return daemon.client().GetServerStatus()->devices(0).quarantines();
  }

  // Injects `faults`, which give `row`'s code to one request, and looks at all that follows.
  void ExpectOutcome(InProcessDaemon& daemon, DoorCaller& caller, const Row& row,
                     const std::string& faults) {
    SCOPED_TRACE(absl::StrCat(row.name, ": ", faults));
    const Expected& expected = Outcomes().at(row.outcome);
    const uint64_t before = Quarantines(daemon);
    InjectFaults(faults);

    const grpc::Status status = caller.ExecuteOnes(10);

    EXPECT_EQ(static_cast<absl::StatusCode>(status.error_code()), expected.status)
        << status.error_message();
    if (!status.ok()) {
      const v1::ErrorDetail detail = DetailOf(status);
      EXPECT_EQ(detail.reason(), expected.reason) << status.error_message();
      // What ran out may be there when the queue has been served.
      EXPECT_EQ(detail.retry_pushback_ms() > 0,
                expected.status == absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(IsAclnn(row.code) ? detail.aclnn_status() : detail.acl_error(), row.code)
          << status.error_message();
    }
    ClearFaults();
    daemon.AwaitReady();
    EXPECT_EQ(Quarantines(daemon) - before, expected.resets_device ? 1u : 0u);
    EXPECT_EQ(daemon.HeldByRequests(), 0);
    EXPECT_TRUE(caller.ExecuteOnes(10).ok());
  }
};

TEST(ErrorClassesTest, EachIsTakenForWhatTheTableSays) {
  const std::vector<Row> rows = Rows();
  EXPECT_GT(rows.size(), 200u);
  for (const Row& row : rows) {
    EXPECT_EQ(ClassifyAclCode(row.code), Outcomes().at(row.outcome).fault)
        << row.code << " " << row.name;
  }
}

TEST_P(ErrorCodesTest, EachOfStageOneEndsItsRequestAsTheTableSays) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  const std::vector<Row> rows = Rows();
  for (size_t i = 0; i < rows.size(); i += kStride) {
    Row row = rows[i];
    if (row.outcome == "none") row.outcome = "internal";  // stage one did nothing, after all
    ExpectOutcome(daemon, caller, row,
                  absl::StrCat("call=aclnnL1LossBackwardGetWorkspaceSize,code=", row.code));
    // Plans are kept: the next request would not run stage one.
    daemon.daemon().scheduler().Find(0)->device().Quarantine(Fault::kDevice, "the next code");
    daemon.AwaitReady();
  }
}

// A task's error comes when the stream is waited for, and says nothing of which kernel failed.
TEST_P(ErrorCodesTest, EachOfATaskEndsItsRequestAsTheTableSays) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  for (const Row& row : Rows()) {
    if (IsAclnn(row.code)) continue;
    // Those say that the wait ended and the task did not: a test of its own.
    if (row.code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) continue;
    ExpectOutcome(daemon, caller, row, absl::StrCat("kernel=aclnnL1LossBackward,code=", row.code));
  }
}

TEST_P(ErrorCodesTest, AFaultyLinkResetsTheDeviceAtTheThirdTimeInARow) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  InjectFaults("kernel=aclnnL1LossBackward,code=507056,count=3");
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Quarantines(daemon), 0u);
    EXPECT_EQ(caller.ExecuteOnes(10).error_code(), grpc::StatusCode::UNAVAILABLE);
  }
  daemon.AwaitReady();
  EXPECT_EQ(Quarantines(daemon), 1u);
  EXPECT_TRUE(caller.ExecuteOnes(10).ok());
}

// The driver keeps the fault of one task and gives it to every call, until the device is reset.
TEST_P(ErrorCodesTest, AStickyFaultIsEndedByAReset) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  InjectFaults("kernel=aclnnL1LossBackward,code=507015,sticky");

  EXPECT_FALSE(caller.ExecuteOnes(10).ok());
  daemon.AwaitReady();
  EXPECT_EQ(Quarantines(daemon), 1u);
  EXPECT_TRUE(caller.ExecuteOnes(10).ok());
}

uint64_t Calls(const char* function) {
  return reinterpret_cast<decltype(&opserveHostCalls)>(dlsym(RTLD_DEFAULT, "opserveHostCalls"))(
      function);
}

// What the driver can repair it is asked to, once its device's work has been stopped.
TEST_P(ErrorCodesTest, MemoryErrorsAreRepairedWhereTheDriverSaysSo) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  const std::map<int, uint64_t> repairs = {{507053, 1}, {507054, 0}, {507010, 0}};
  for (const auto& [code, expected] : repairs) {
    const uint64_t before = Calls("aclrtRepairError");
    const uint64_t aborts = Calls("aclrtDeviceTaskAbort");
    InjectFaults(absl::StrCat("kernel=aclnnL1LossBackward,code=", code));
    EXPECT_FALSE(caller.ExecuteOnes(10).ok());
    daemon.AwaitReady();
    EXPECT_EQ(Calls("aclrtRepairError") - before, expected) << code;
    EXPECT_EQ(Calls("aclrtDeviceTaskAbort") - aborts, 1u) << code;
  }
}

TEST_P(ErrorCodesTest, ADeviceWhoseWorkCannotBeStoppedIsResetAllTheSame) {
  InProcessDaemon daemon(InProcessDaemon::OneLane());
  DoorCaller caller(daemon.target(), GetParam());
  InjectFaults("call=aclrtDeviceTaskAbort,code=107020;kernel=aclnnL1LossBackward,code=507010");
  EXPECT_FALSE(caller.ExecuteOnes(10).ok());
  daemon.AwaitReady();
  EXPECT_TRUE(caller.ExecuteOnes(10).ok());
}

// Nobody waits for a kernel that hangs on a device that is lost: callers may go elsewhere at once.
TEST_P(ErrorCodesTest, WhatRunsOnALostDeviceIsUnavailable) {
  Config config = InProcessDaemon::DefaultConfig();
  config.devices = {0};
  config.execution_timeout = absl::Hours(1);
  InProcessDaemon daemon(config);
  DoorCaller caller(daemon.target(), GetParam());
  ASSERT_TRUE(caller.ExecuteOnes(10).ok());
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  InjectFaults("kernel=aclnnL1LossBackward,hang");
  std::future<grpc::Status> hanging =
      std::async(std::launch::async, [&caller] { return caller.ExecuteOnes(10); });
  ASSERT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  InjectFaults("kernel=aclnnL1LossBackward,code=507010");

  DoorCaller another(daemon.target(), GetParam());
  EXPECT_EQ(another.ExecuteOnes(10).error_code(), grpc::StatusCode::UNAVAILABLE);

  EXPECT_EQ(hanging.get().error_code(), grpc::StatusCode::UNAVAILABLE);
  daemon.AwaitReady();
  EXPECT_TRUE(caller.ExecuteOnes(10).ok());
}

TEST_P(ErrorCodesTest, ADeviceThatDoesNotComeBackSaysWhatHelps) {
  Config config = InProcessDaemon::OneLane();
  config.recovery_wait = absl::Milliseconds(1);
  config.longest_recovery_wait = absl::Milliseconds(1);
  InProcessDaemon daemon(config);
  DoorCaller caller(daemon.target(), GetParam());
  InjectFaults("device=0,lost,resets=1000");
  EXPECT_FALSE(caller.ExecuteOnes(10).ok());

  std::string reason;
  EXPECT_TRUE(Await([&] {
    reason = daemon.client().GetServerStatus()->devices(0).state_reason();
    return absl::StrContains(reason, "restart the daemon");
  })) << reason;
  EXPECT_TRUE(absl::StrContains(reason, "attempts to bring it back failed")) << reason;
}

INSTANTIATE_TEST_SUITE_P(Doors, ErrorCodesTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
