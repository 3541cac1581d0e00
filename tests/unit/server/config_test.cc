// The configuration as text: what is accepted, what is refused and how the refusal reads.

#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/config/config.h"
#include "server/config/config_text.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

config::ServerConfig Parse(const std::string& text) {
  config::ServerConfig values;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &values)) << text;
  return values;
}

absl::StatusOr<config::ServerConfig> ReadText(const std::string& text) {
  const std::string path = testing::TempDir() + "/config.textproto";
  std::ofstream(path) << text;
  return ReadConfigFile(path);
}

TEST(ConfigTest, NothingIsNeeded) {
  const auto config = ConfigFrom({});
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->listen.at(0).is_unix);
  EXPECT_EQ(config->max_deadline, absl::Seconds(300));
  EXPECT_EQ(config->metrics_max_tenants, 200u);
  EXPECT_EQ(config->shadow_check_ratio, 0);
  EXPECT_EQ(ConfigFrom(Parse("shadow_check_ratio: 0.25"))->shadow_check_ratio, 0.25);
  EXPECT_EQ(config->tenants.tenants.at(0).name, "default");
  EXPECT_EQ(config->tenants.anonymous, "default");
}

TEST(ConfigTest, WrongValuesAreRefusedWithWhatIsValid) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {
           Case{"streams_per_device: 0", "streams_per_device=0: must be from 1 to 64"},
           Case{"metrics_max_tenants: 0", "metrics_max_tenants=0: must be from 1 to 200"},
           Case{"metrics_max_tenants: 201", "metrics_max_tenants=201: must be from 1 to 200"},
           Case{"shadow_check_ratio: 1.5", "shadow_check_ratio=1.5: must be from 0 to 1"},
           Case{"shadow_check_ratio: -0.1", "shadow_check_ratio=-0.1: must be from 0 to 1"},
           Case{"shadow_check_ratio: nan", "shadow_check_ratio=nan: must be from 0 to 1"},
           Case{"max_message_bytes: 5", "must be from 1048576 to 2147483647"},
           Case{"drain_delay: 'soon'", "drain_delay=soon: must be a duration such as"},
           Case{"drain_delay: '-1s'", "must be at least 0"},
           Case{"drain_delay: 'inf'", "must be at least 0"},
           Case{"execution_timeout: '2h'", "must be at most 1h"},
           Case{"scrub: 'sometimes'", "must be one of cross-tenant, always, never"},
           Case{"recovery_wait: '2s' longest_recovery_wait: '1s'",
                "must be at least recovery_wait"},
           Case{"device: -1", "-1 is not a device id"},
           Case{"listen: '0.0.0.0:1'", "other machines can reach 0.0.0.0:1, without encryption"},
           Case{"listen: '0.0.0.0:1' tls_cert: 'c' tls_key: 'k'", "would need no credentials"},
           Case{"tls_cert: 'c'", "tls_cert: needs tls_key"},
           Case{"tls_client_ca: 'c'", "tls_client_ca: needs tls_cert"},
           Case{"tls_cert: 'c' tls_key: 'k' tls_crl: 'r'", "tls_crl: needs tls_client_ca"},
           Case{"admin_listen: '127.0.0.1:1'", "admin_listen: must be unix:PATH or none"},
           Case{"tenant { name: 'a b' }", "letters, digits"},
           Case{"tenant { }", "must have 1 to 63"},
           Case{"tenant { name: 'a' weight: 1001 }",
                "tenant[0].weight=1001: must be from 1 to 1000"},
           Case{"tenant { name: 'a' } tenant { name: 'a' }", "tenant a: name: occurs twice"},
           Case{"tenant { name: 'a' uid: 1 } tenant { name: 'b' uid: 1 }", "tenant b: uid"},
           Case{"tenant { name: 'a' token_sha256: 'secret' }", "64 hexadecimal digits"},
           Case{"tenant { name: 'a' device_memory { reserved_bytes: 2 hard_bytes: 1 } }",
                "device_memory: reserved_bytes <= soft_bytes <= hard_bytes"},
           Case{"tenant { name: 'a' pinned_memory { reserved_bytes: 2 hard_bytes: 1 } }",
                "pinned_memory: reserved_bytes <= soft_bytes <= hard_bytes"},
           Case{"tenant { name: 'a' shared_memory { max_regions: 1025 } }",
                "tenant[0].shared_memory.max_regions=1025: must be from 0 to 1024"},
           Case{"enable_shm: true listen: '127.0.0.1:1'",
                "enable_shm: only works over Unix sockets"},
           Case{"keepalive_time: '1ms'", "keepalive_time=1ms: must be at least 1s"},
           Case{"keepalive_timeout: 'no'", "keepalive_timeout=no: must be a duration such as"},
           Case{"write_stall_timeout: '2h'", "write_stall_timeout=2h: must be at most 1h"},
           Case{"max_anonymous_streams: 0", "max_anonymous_streams=0: must be from 1"},
           Case{"stream_resets_per_second: 0", "stream_resets_per_second=0: must be from 1"},
           Case{"tenant { name: 'a' } anonymous_tenant: 'b'", "there is no such tenant"},
       }) {
    const auto config = ConfigFrom(Parse(c.text));
    ASSERT_FALSE(config.ok()) << c.text;
    EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(config.status().message()), HasSubstr(c.message)) << c.text;
  }
}

TEST(ConfigTest, ConnectionsAreHeldToWhatIsConfigured) {
  const auto config = ConfigFrom(
      Parse("keepalive_time: '5m' keepalive_timeout: '3s' write_stall_timeout: '250ms'"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->keepalive_time, absl::Minutes(5));
  EXPECT_EQ(config->keepalive_timeout, absl::Seconds(3));
  EXPECT_EQ(config->write_stall_timeout, absl::Milliseconds(250));
  EXPECT_EQ(ConfigFrom({})->keepalive_time, absl::Seconds(60));
  EXPECT_EQ(ConfigFrom({})->keepalive_timeout, absl::Seconds(20));
  EXPECT_EQ(ConfigFrom({})->write_stall_timeout, absl::Seconds(60));
}

TEST(ConfigTest, LoadsBoundsOfConnections) {
  const auto config = ConfigFrom(Parse(
      "max_anonymous_streams: 1 unidentified_calls_per_second: 2 stream_resets_per_second: 3 "
      "control_frames_per_second: 4"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->max_anonymous_streams, 1);
  EXPECT_EQ(config->unidentified_calls_per_second, 2);
  EXPECT_EQ(config->stream_resets_per_second, 3);
  EXPECT_EQ(config->control_frames_per_second, 4);
  EXPECT_EQ(ConfigFrom({})->max_anonymous_streams, 256);
}

TEST(ConfigTest, SharedMemoryIsLimitedForEveryTenant) {
  EXPECT_FALSE(ConfigFrom({})->enable_shm);
  const auto config =
      ConfigFrom(Parse("enable_shm: true tenant { name: 'a' } "
                       "tenant { name: 'b' shared_memory { hard_bytes: 5 max_regions: 2 } }"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->enable_shm);
  for (const TenantConfig& tenant :
       {config->tenants.tenants[0], ConfigFrom({})->tenants.tenants[0]}) {
    EXPECT_EQ(tenant.shared_memory_bytes, uint64_t{4} << 30);
    EXPECT_EQ(tenant.shared_memory_regions, 256u);
  }
  EXPECT_EQ(config->tenants.tenants[1].shared_memory_bytes, 5u);
  EXPECT_EQ(config->tenants.tenants[1].shared_memory_regions, 2u);
}

TEST(ConfigTest, NoErrorRepeatsASecret) {
  const auto config = ConfigFrom(Parse("tenant { name: 'a' token_sha256: 'hunter2' }"));
  EXPECT_THAT(std::string(config.status().message()), testing::Not(HasSubstr("hunter2")));
}

TEST(ConfigTest, AFileWithAnErrorSaysWhere) {
  EXPECT_THAT(std::string(ReadText("listen: 'unix:/x'\nqueues: 3\n").status().message()),
              HasSubstr("config.textproto:2:7: "));
  EXPECT_EQ(ReadText("listen: 3").status().code(), absl::StatusCode::kInvalidArgument);
  for (const char* path : {"/nonexistent", "/"}) {
    EXPECT_EQ(ReadConfigFile(path).status().code(), absl::StatusCode::kNotFound) << path;
  }
  EXPECT_TRUE(ReadText("").ok()) << ReadText("").status();
}

TEST(ConfigTest, WhatIsPrintedCanBeReadAgain) {
  config::ServerConfig values = Parse("listen: 'unix:/x' tenant { name: 'a' uid: 7 }");
  FillDefaults(&values);
  EXPECT_THAT(ToText(values), HasSubstr("max_deadline: \"300s\""));
  EXPECT_THAT(ToText(values), HasSubstr("weight: 1"));
  const auto again = ReadText(ToText(values));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(ToText(*again), ToText(values));
  EXPECT_TRUE(ConfigFrom(*again).ok());
}

TEST(ConfigTest, OnlySomeValuesChangeWithoutARestart) {
  const config::ServerConfig before = Parse("tenant { name: 'a' } log_level: 'info'");
  EXPECT_EQ(FieldsThatNeedRestart(before, Parse("tenant { name: 'b' } log_level: 'debug'")), "");
  EXPECT_EQ(FieldsThatNeedRestart(before, Parse("scrub: 'never' stream_window: 3")),
            "stream_window, scrub");
}

}  // namespace
}  // namespace opserve::server
