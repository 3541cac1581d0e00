// Parts of the daemon too small for a test program each.

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpc/support/log.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "opserve/v1/error.pb.h"
#include "proto/status/error.h"
#include "server/config/listen_address.h"
#include "server/device/acl/acl_status.h"
#include "server/device/acl/runtime_text.h"
#include "server/device/host_registration.h"
#include "server/grpc/grpc_log.h"
#include "server/grpc/status_conversion.h"
#include "server/observability/line_limiter.h"
#include "server/observability/log.h"
#include "tests/fuzz/error_text.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ListenAddressTest, WhatItReadsItWrites) {
  for (const char* text :
       {"unix:/run/opserve/a.sock", "127.0.0.1:8470", "[::1]:0", "host.example:1"}) {
    const auto address = ParseListenAddress(text);
    ASSERT_TRUE(address.ok()) << address.status();
    EXPECT_EQ(address->ToString(), text);
  }
}

TEST(ListenAddressTest, KnowsWhatOthersCanReach) {
  for (const char* text : {"unix:/x", "127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(ParseListenAddress(text)->is_local()) << text;
  }
  for (const char* text : {"0.0.0.0:1", "10.0.0.1:1", "[::]:1", "example.org:1",
                           "127.example.com:1", "127.0.0.1.example.com:1"}) {
    EXPECT_FALSE(ParseListenAddress(text)->is_local()) << text;
  }
}

TEST(ListenAddressTest, SaysWhatIsWrong) {
  const std::vector<std::pair<std::string, const char*>> cases = {
      {"", "expected unix:PATH or HOST:PORT"},
      {"unix:", "the path after unix: is missing"},
      {absl::StrCat("unix:/", std::string(120, 'x')), "at most 107 bytes"},
      {"localhost", "expected unix:PATH or HOST:PORT"},
      {":8470", "the host is missing"},
      {"localhost:http", "from 0 to 65535"},
      {"localhost:65536", "from 0 to 65535"},
      {"localhost:-1", "from 0 to 65535"},
      {"[::1:80", "] is missing"},
  };
  for (const auto& [text, problem] : cases) {
    const auto address = ParseListenAddress(text);
    EXPECT_EQ(address.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(address.status().message()), HasSubstr(problem)) << text;
  }
}

TEST(RuntimeTextTest, KeepsWhatHelpsAndLeavesOutInternals) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {"the tensor self has dtype INT8", "the tensor self has dtype INT8"},
      {"shape [2,3] and/or rank 1/2, code 0x7f, 50% /",
       "shape [2,3] and/or rank 1/2, code 0x7f, 50% /"},
      {"address 0x12c0a80ff000 is not aligned", "address 0x... is not aligned"},
      {"0XABCDEF0", "0x..."},
      {"[PID: 4711] 2026-01-02-03:04:05 EZ9999: Inner Error!",
       "[PID: ...] 2026-01-02-03:04:05 EZ9999: Inner Error!"},
      {"tid=12, pid 3", "tid=..., pid ..."},
      {"rapid 7, PIDs", "rapid 7, PIDs"},
      {"[FILE:/usr/local/Ascend/runtime/src/stream.cc][LINE:42]", "[FILE:stream.cc][LINE:42]"},
      {"cannot load /opt/cann/", "cannot load ..."},
      {"/lib/libx.so: no such file", "libx.so: no such file"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(WithoutInternals(text), expected);
    EXPECT_THAT(GivenAway(WithoutInternals(text)), testing::IsEmpty()) << text;
  }
}

TEST(RuntimeTextTest, WhatTheRuntimeSaysReachesNobodyWithInternals) {
  AclLibrary& acl = MutableTestAcl();
  const auto before = std::exchange(acl.aclGetRecentErrMsg, []() -> const char* {
    return "EZ9999: [PID: 17] copy to 0x12c041000000 failed [FILE:/home/build/copy.cc][LINE:9]";
  });
  const absl::Status status = AclCallStatus(acl, "aclrtMemcpy", 507899);
  acl.aclGetRecentErrMsg = before;

  const v1::StatusDetails details = ToStatusDetails(status);
  EXPECT_THAT(details.message(), HasSubstr("EZ9999: [PID: ...] copy to 0x... failed"));
  EXPECT_THAT(GivenAway(details.message()), testing::IsEmpty());
  EXPECT_THAT(GivenAway(details.SerializeAsString()), testing::IsEmpty());
}

struct CodeCase {
  int acl;
  absl::StatusCode status;
  const char* reason;
};

TEST(AclCallStatusTest, TranslatesByWhoIsAtFault) {
  const std::vector<CodeCase> cases = {
      {161001, absl::StatusCode::kInvalidArgument, "invalid"},
      {161002, absl::StatusCode::kInvalidArgument, "invalid"},
      {207001, absl::StatusCode::kResourceExhausted, "device_memory"},
      {207018, absl::StatusCode::kResourceExhausted, "device_memory"},
      {507010, absl::StatusCode::kUnavailable, "device_unavailable"},
      {507899, absl::StatusCode::kUnavailable, "device_unavailable"},
      {507035, absl::StatusCode::kInternal, ""},
      {107002, absl::StatusCode::kInternal, ""},
      {561003, absl::StatusCode::kInternal, ""},
  };
  for (const CodeCase& c : cases) {
    const absl::Status status = AclCallStatus(TestAcl(), "aclFunction", c.acl);
    EXPECT_EQ(status.code(), c.status) << c.acl;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("aclFunction returned ", c.acl)));
    EXPECT_EQ(ErrorDetailOf(status)->reason(), c.reason) << c.acl;
  }
  EXPECT_TRUE(AclCallStatus(TestAcl(), "aclFunction", 0).ok());
}

// aclnn says no more than that a call of the runtime failed; the runtime knows which way.
TEST(AclCallStatusTest, AFailedRuntimeCallInsideAclnnCountsAsWhatItIs) {
  InjectFaults("call=aclrtGetDeviceCount,code=507010");
  uint32_t count = 0;
  ASSERT_EQ(TestAcl().aclrtGetDeviceCount(&count), 507010);

  const absl::Status status = AclCallStatus(TestAcl(), "aclnnFunction", 361001);

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("aclnnFunction returned 361001 (507010)"));
  EXPECT_EQ(ErrorDetailOf(status)->aclnn_status(), 361001);
  EXPECT_EQ(ErrorDetailOf(status)->acl_error(), 507010);
  EXPECT_TRUE(IsDeviceLoss(status));
  // Taken and gone: it does not count for the next one.
  EXPECT_FALSE(IsDeviceLoss(AclCallStatus(TestAcl(), "aclnnFunction", 361001)));
}

TEST(AclLibraryTest, LimitsHowLongKernelsRunByWhatTheLibrariesHave) {
  AclLibrary& acl = MutableTestAcl();
  // The next of the product's steps.
  const absl::StatusOr<absl::Duration> precise = acl.SetExecutionLimit(absl::Seconds(60));
  ASSERT_TRUE(precise.ok());
  EXPECT_GE(*precise, absl::Seconds(60));
  EXPECT_LT(*precise, absl::Seconds(65));

  const auto newer = std::exchange(acl.aclrtSetOpExecuteTimeOutV2, nullptr);
  EXPECT_EQ(*acl.SetExecutionLimit(absl::Milliseconds(1500)), absl::Seconds(2));
  const auto older = std::exchange(acl.aclrtSetOpExecuteTimeOut, nullptr);
  EXPECT_EQ(acl.SetExecutionLimit(absl::Seconds(60)).status().code(),
            absl::StatusCode::kUnimplemented);
  acl.aclrtSetOpExecuteTimeOutV2 = newer;
  acl.aclrtSetOpExecuteTimeOut = older;
}

TEST(KernelMapsHostMemoryTest, SinceLinux511) {
  const std::pair<const char*, bool> cases[] = {
      {"6.1.0-18-amd64", true},
      {"5.11.0", true},
      {"5.10.0-60.18.0.50.oe2203.aarch64", false},
      {"4.19.90", false},
      {"10.0-rc1", true},
      {"5.4.0-150-generic", false},
      {"", false},
      {"something", false},
  };
  for (const auto& [release, maps] : cases)
    EXPECT_EQ(KernelMapsHostMemory(release), maps) << release;
}

TEST(AclLibraryTest, SaysWhatIsMissingWhere) {
  const auto nothing = AclLibrary::Load("/nonexistent");

  EXPECT_EQ(nothing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(nothing.status().message()),
              HasSubstr("no libacl_rt.so or libascendcl.so in /nonexistent"));
}

TEST(ToGrpcStatusTest, CarriesTheDetailInTheFormOfGoogleRpcStatus) {
  const absl::Status status = InvalidCall("KlDivBackward", "self", "is wrong");
  grpc::ServerContext context;

  const grpc::Status converted = ToGrpcStatus(status, &context);

  EXPECT_EQ(converted.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(converted.error_message(), "KlDivBackward: self: is wrong");
  v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(converted.error_details()));
  EXPECT_EQ(details.code(), 3);
  v1::ErrorDetail detail;
  ASSERT_TRUE(details.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.argument(), "self");
}

TEST(ToGrpcStatusTest, NothingAClientSentMakesTrailersTooLarge) {
  std::string name;
  for (int i = 0; i < 10000; ++i) name += "\xc3\xa4";  // an umlaut, two bytes
  grpc::ServerContext context;

  const grpc::Status converted =
      ToGrpcStatus(InvalidCall(name, name, "no such operator"), &context);

  EXPECT_LT(converted.error_message().size() + converted.error_details().size(), 4096u);
  v1::StatusDetails details;
  EXPECT_TRUE(details.ParseFromString(converted.error_details()));  // also checks the UTF-8
}

TEST(ErrorTest, NothingAClientSentMakesAnErrorLarge) {
  const std::string huge(50 << 20, 'x');
  for (const absl::Status& status :
       {InvalidCall(huge, "self", "is missing"), InvalidCall("Op", huge, huge),
        MakeError(Reason::kInvalid, absl::StatusCode::kNotFound, huge),
        MakeError(Reason::kDraining, huge, 10)}) {
    EXPECT_LE(status.message().size(), 1100u);
    EXPECT_LE(ErrorDetailOf(status)->ByteSizeLong(), 400u);
  }
  EXPECT_EQ(InvalidCall(huge, "self", "is missing").message(),
            absl::StrCat(std::string(128, 'x'), "...: self: is missing"));
}

TEST(GrpcLogTest, ItsMessagesAreLinesOfTheLogAndFew) {
  LogGrpcMessages();
  gpr_set_log_verbosity(GPR_LOG_SEVERITY_ERROR);  // as gRPC does when it is first used
  ::testing::internal::CaptureStderr();

  const uint64_t left_out_before = LeftOutLogLines(LimitedEvent::kGrpc);

  for (int i = 0; i < 300; ++i) gpr_log(GPR_ERROR, "Handshake failed: \"%d\"\n", i);
  // Another place has lines of its own.
  gpr_log(GPR_INFO, "not wanted by gRPC's own level");
  gpr_log(GPR_ERROR, "Another message");

  FlushLog();
  gpr_set_log_function(nullptr);
  std::istringstream text(::testing::internal::GetCapturedStderr());
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  // As many as a place has at once; a machine may be so slow that ten seconds have passed.
  ASSERT_GE(lines.size(), 4u);
  EXPECT_LE(lines.size(), 6u);
  EXPECT_EQ(lines.back()["message"], "Another message");
  EXPECT_FALSE(lines.back().contains("left_out"));
  lines.pop_back();
  EXPECT_EQ(LeftOutLogLines(LimitedEvent::kGrpc) - left_out_before, 300 - lines.size());
  EXPECT_EQ(lines[2]["message"], "Handshake failed: \"2\"\n");
  for (const nlohmann::json& line : lines) {
    EXPECT_EQ(line["event"], "grpc");
    EXPECT_EQ(line["level"], "warning");
    EXPECT_THAT(line["source"].get<std::string>(), StartsWith("small_parts_test.cc:"));
  }
}

TEST(ToGrpcStatusTest, AnErrorAlwaysHasAMessage) {
  grpc::ServerContext context;

  EXPECT_EQ(ToGrpcStatus(absl::InternalError(""), &context).error_message(), "INTERNAL");
}

}  // namespace
}  // namespace opserve::server
