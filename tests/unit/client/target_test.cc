#include "client/cpp/target.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve {
namespace {

using testing::HasSubstr;

TEST(TargetTest, WhatUsersWriteAndWhatGrpcGets) {
  struct Case {
    const char* text;
    const char* uri;
    bool is_balanced;
    bool is_local;
    const char* authority;
  };
  const Case kCases[] = {
      {"unix:/a.sock", "unix:/a.sock", false, true, ""},
      {"unix:///a.sock", "unix:///a.sock", false, true, ""},
      {"localhost:80", "localhost:80", false, true, ""},
      {"127.3.2.1:80", "127.3.2.1:80", false, true, ""},
      {"[::1]:80", "[::1]:80", false, true, ""},
      {"npu.example:80", "npu.example:80", false, false, ""},
      {"10.0.0.1:80", "10.0.0.1:80", false, false, ""},
      {"127.example:80", "127.example:80", false, false, ""},
      {"dns:///npu.example:80", "dns:///npu.example:80", true, false, ""},
      {"dns:///localhost:80", "dns:///localhost:80", true, true, ""},
      {"unix:/a,unix:///b,unix:c", "unix:/a,/b,c", true, true, ""},
      {"127.0.0.1:80,127.0.0.2:81", "ipv4:127.0.0.1:80,127.0.0.2:81", true, true, "127.0.0.1:80"},
      {"127.0.0.1:80,10.0.0.2:81", "ipv4:127.0.0.1:80,10.0.0.2:81", true, false, "127.0.0.1:80"},
      {"[::1]:80,[fd00::2]:80", "ipv6:[::1]:80,[fd00::2]:80", true, false, "[::1]:80"},
  };
  for (const Case& c : kCases) {
    const auto target = ParseTarget(c.text);
    ASSERT_TRUE(target.ok()) << target.status();
    EXPECT_EQ(target->uri, c.uri);
    EXPECT_EQ(target->is_balanced, c.is_balanced) << c.text;
    EXPECT_EQ(target->is_local, c.is_local) << c.text;
    EXPECT_EQ(target->authority, c.authority) << c.text;
  }
}

TEST(TargetTest, WhatIsNoTargetIsExplained) {
  struct Case {
    std::string text;
    const char* why;
  };
  const Case kCases[] = {
      {"", "is neither unix:PATH nor HOST:PORT nor dns:///HOST:PORT"},
      {"nowhere", "is neither"},
      {"host:0", "is neither"},
      {"host:65536", "is neither"},
      {":80", "is neither"},
      {"http://npu7:8470", "is a URL; write HOST:PORT, here npu7:8470"},
      {"http://npu7:8470/v2", "is a URL; write HOST:PORT, here npu7:8470"},
      {"https://npu7", "is a URL; write HOST:PORT, here npu7:PORT, and ask for TLS (--tls)"},
      {"grpc://[::1]:80", "is a URL; write HOST:PORT, here [::1]:80"},
      {"/run/opserve/opserve.sock", "write unix:/run/opserve/opserve.sock"},
      {"./a", "is a path; for a Unix socket write unix:./a"},
      {"opserve.sock", "is a path; for a Unix socket write unix:opserve.sock"},
      {"dns:///host", "is neither"},
      {"unix:", "no socket path"},
      {"unix:/a,unix:", "no socket path"},
      {"unix:/a,/b", "\"/b\" is not unix:PATH, as the first is"},
      {"unix:/a,10.0.0.1:80", "\"10.0.0.1:80\" is not unix:PATH"},
      {"unix:/" + std::string(200, 'a'), "a socket's path can have 107 bytes, this has 201"},
      {"a.example:80,b.example:80", "\"a.example:80\" is none. For a name with several addresses"},
      {"10.0.0.1:80,[fd00::2]:80", "\"[fd00::2]:80\" is another"},
      {"10.0.0.1:80,", "\"\" is another"},
      {"10.0.0.1:80, 10.0.0.2:80", "\" 10.0.0.2:80\" is another"},
      {"10.0.0.1:80,unix:/a", "\"unix:/a\" is another"},
  };
  for (const Case& c : kCases) {
    const absl::Status status = ParseTarget(c.text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace opserve
