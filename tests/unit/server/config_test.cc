// The configuration as text: what is accepted, what is refused and how the refusal reads.

#include <unistd.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
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

// The path of a file with this text; the next one takes its place.
std::string FileOf(const std::string& text) {
  // Of this process: others of the same test may run beside it.
  const std::string path = absl::StrCat(testing::TempDir(), "/", getpid(), ".config.textproto");
  std::ofstream(path) << text;
  return path;
}

absl::StatusOr<config::ServerConfig> ReadText(const std::string& text) {
  return ReadConfigFile(FileOf(text));
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

TEST(ConfigTest, DepositsAreBetweenNamedDaemons) {
  const char* const kReceiver =
      "tls_cert: 'c' tls_key: 'k' tls_client_ca: 'a' "
      "tenant { name: 'x' certificate_name: 'x.test' uid: 7 } tenant { name: 'y' } ";
  const auto receiver =
      ConfigFrom(Parse(std::string(kReceiver) +
                       "peer { certificate_name: 'Peer.Test' tenant: 'x' tenant: "
                       "'y' max_bytes: 5 } peer { uid: 0 tenant: 'y' max_bytes: 1 }"));
  ASSERT_TRUE(receiver.ok()) << receiver.status();
  ASSERT_EQ(receiver->peers.size(), 2u);
  EXPECT_EQ(receiver->peers[0].certificate_name, "dns:peer.test");
  EXPECT_THAT(receiver->peers[0].tenants, ::testing::ElementsAre("x", "y"));
  EXPECT_EQ(receiver->peers[0].max_bytes, 5u);
  EXPECT_EQ(receiver->peers[1].uid, 0u);
  EXPECT_TRUE(ConfigFrom({})->peers.empty());
  EXPECT_FALSE(ConfigFrom({})->deposit.has_value());

  const auto sender = ConfigFrom(
      Parse("deposit { address: 'two:8470' ca: 'a' certificate: 'c' key: 'k' server_name: 's' }"));
  ASSERT_TRUE(sender.ok()) << sender.status();
  EXPECT_EQ(sender->deposit->address, "two:8470");
  EXPECT_EQ(sender->deposit->client_address, "two:8470");
  EXPECT_TRUE(ConfigFrom(Parse("deposit { address: 'unix:/x' client_address: 'y:1' }")).ok());

  struct Case {
    std::string text;
    const char* message;
  };
  const std::string peer = kReceiver;
  for (const Case& c : {
           Case{peer + "peer { tenant: 'x' max_bytes: 1 }",
                "peer[0]: needs certificate_name or uid, and not both"},
           Case{peer + "peer { uid: 1 certificate_name: 'p' tenant: 'x' max_bytes: 1 }",
                "peer[0]: needs certificate_name or uid, and not both"},
           Case{peer + "peer { uid: 1 max_bytes: 1 }", "peer[0]: tenant: is missing"},
           Case{peer + "peer { uid: 1 tenant: 'z' max_bytes: 1 }",
                "peer[0]: tenant: there is no tenant \"z\""},
           Case{peer + "peer { uid: 1 tenant: 'x' }", "peer[0]: max_bytes: must be at least 1"},
           Case{peer + "peer { uid: 7 tenant: 'x' max_bytes: 1 }",
                "peer[0]: uid 7 is that of a tenant or of another peer"},
           Case{peer + "peer { certificate_name: 'X.test' tenant: 'x' max_bytes: 1 }",
                "peer[0]: dns:x.test is that of a tenant or of another peer"},
           Case{peer + "peer { uid: 1 tenant: 'x' max_bytes: 1 } "
                       "peer { uid: 1 tenant: 'y' max_bytes: 1 }",
                "peer[1]: uid 1 is that of a tenant or of another peer"},
           Case{peer + "peer { certificate_name: 'ip:x' tenant: 'x' max_bytes: 1 }",
                "peer[0]: certificate_name: "},
           Case{"peer { certificate_name: 'p' tenant: 'default' max_bytes: 1 }",
                "peer[0]: certificate_name: needs tls_client_ca"},
           Case{"deposit { }", "deposit.address: "},
           Case{"deposit { address: 'x' }", "deposit.address: "},
           Case{"deposit { address: 'x:0' }", "deposit.address: needs a port"},
           Case{"deposit { address: 'x:1' }", "deposit: needs ca, certificate and key"},
           Case{"deposit { address: 'x:1' ca: 'a' key: 'k' }",
                "deposit: needs ca, certificate and key"},
           Case{"deposit { address: 'unix:/x' ca: 'a' }", "deposit: a Unix socket has no TLS"},
       }) {
    EXPECT_THAT(std::string(ConfigFrom(Parse(c.text)).status().message()), HasSubstr(c.message))
        << c.text;
  }
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
           Case{"max_request_work: 0",
                "max_request_work=0: must be from 1 to 18446744073709551615"},
           Case{"max_request_work: 100 queue_work_per_tenant: 99",
                "queue_work_per_tenant: must be at least max_request_work, which is 100"},
           Case{"device: -1", "-1 is not a device id"},
           Case{"device: 1 device: 0 device: 1", "device: 1 is named twice"},
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
           Case{"tenant { name: 'a' token_sha256: 'E3B0C44298fc1c149afbf4c8996fb924"
                "27ae41e4649b934ca495991b7852b855' }",
                "tenant a: token_sha256: is the digest of an empty token"},
           Case{"tenant { name: 'a' certificate_name: '' }", "certificate_name: a name is missing"},
           Case{"tenant { name: 'a' certificate_name: 'dns:a b' }", "a dns: is like"},
           Case{"tenant { name: 'a' certificate_name: 'uri:a.test' }", "a uri: is like"},
           Case{"tenant { name: 'a' certificate_name: 'email:a.test' }", "an email: is like"},
           Case{"tenant { name: 'a' certificate_name: 'ip:1.2.3' }", "an ip: is like"},
           Case{"tenant { name: 'a' certificate_name: 'a.test' }"
                "tenant { name: 'b' certificate_name: 'dns:A.test' }",
                "tenant b: certificate_name: occurs twice"},
           Case{"metrics_host: 'a:80'", "metrics_host: \"a:80\" is no host's name"},
           Case{"runbook_url: 'wiki/opserve'", "runbook_url: \"wiki/opserve\" is no address"},
           Case{"runbook_url: 'file:///runbook'", "begin with https:// or http://"},
           Case{"runbook_url: 'https://a/\\r\\nX: y'", "https://a/\\r\\nX:"},
           Case{"first_call_timeout: '1ms'", "first_call_timeout=1ms: must be at least 10ms"},
           Case{"max_connections_per_user: 1000001", "must be from 0 to 1000000"},
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
           Case{"upload_stall_timeout: '1ms'", "upload_stall_timeout=1ms: must be at least 10ms"},
           Case{"upload_min_bytes_per_second: 0",
                "upload_min_bytes_per_second=0: must be from 1 to"},
           Case{"max_anonymous_streams: 0", "max_anonymous_streams=0: must be from 1"},
           Case{"stream_resets_per_second: 0", "stream_resets_per_second=0: must be from 1"},
           Case{"tenant { name: 'a' } anonymous_tenant: 'b'", "there is no such tenant"},
           Case{"tenant { name: 'a' certificate_name: 'a.test' }",
                "tenant a: certificate_name: needs tls_client_ca"},
           Case{"tls_cert: 'c' tls_key: 'k' tenant { name: 'a' certificate_name: 'a.test' }",
                "tenant a: certificate_name: needs tls_client_ca"},
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

TEST(ConfigTest, UploadsAreHeldToWhatIsConfigured) {
  const auto config =
      ConfigFrom(Parse("upload_stall_timeout: '2s' upload_min_bytes_per_second: 1000"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->upload_stall_timeout, absl::Seconds(2));
  EXPECT_EQ(config->upload_min_bytes_per_second, 1000u);
  EXPECT_EQ(ConfigFrom({})->upload_stall_timeout, absl::Seconds(10));
  EXPECT_EQ(ConfigFrom({})->upload_min_bytes_per_second, 262144u);
}

TEST(ConfigTest, NamesOfCertificatesHaveKinds) {
  const auto config = ConfigFrom(
      Parse("tls_cert: 'c' tls_key: 'k' tls_client_ca: 'ca'"
            " tenant { name: 'a' certificate_name: 'Bare.Test' certificate_name: 'dns:*.Kind.test'"
            " certificate_name: 'uri:spiffe://a/B' certificate_name: 'email:a@b'"
            " certificate_name: 'ip:2001:DB8::0' certificate_name: 'ip:192.0.2.7' }"));
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_THAT(config->tenants.tenants[0].certificate_names,
              testing::ElementsAre("dns:bare.test", "dns:*.kind.test", "uri:spiffe://a/B",
                                   "email:a@b", "ip:2001:db8::", "ip:192.0.2.7"));
}

TEST(ConfigTest, WarnsOfNamesThatLackTheirKind) {
  const auto warnings = TenantWarnings(
      Parse("tenant { name: 'a' certificate_name: 'a.test' certificate_name: 'spiffe://a/b'"
            " certificate_name: 'uri:spiffe://a/b' certificate_name: '*.test' }"
            "tenant { name: 'b' certificate_name: 'Jane Doe' }"));
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_THAT(warnings[0],
              HasSubstr("tenant a: certificate_name: \"spiffe://a/b\" cannot be a DNS name"));
  EXPECT_THAT(warnings[1], HasSubstr("tenant b: certificate_name: \"Jane Doe\""));
}

TEST(ConfigTest, LoadsBoundsOfConnections) {
  const auto config = ConfigFrom(
      Parse("max_anonymous_streams: 1 unidentified_calls_per_second: 2 stream_resets_per_second: 3 "
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

absl::StatusOr<Config> Load(const std::string& text) {
  return LoadConfig(*CommandLine::Parse({"--config", FileOf(text).c_str()}));
}

TEST(ConfigTest, AFileWithoutASettingIsRefused) {
  for (const char* text : {"", "\n", "# listen: 'unix:/x'\n"}) {
    const auto config = Load(text);
    EXPECT_EQ(config.status().code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(config.status().message()), HasSubstr("has no setting"));
  }
  for (const char* text : {"log_level: 'info'", "allow_no_tenants: false"}) {
    EXPECT_TRUE(Load(text).ok()) << text;
  }
  EXPECT_TRUE(LoadConfig(*CommandLine::Parse({})).ok()) << "no file is named";
}

TEST(ConfigTest, AReloadKeepsTenantsOfEveryKind) {
  const std::string token = "tenant { name: 'a' token_sha256: 'x' }";
  const std::string certificate = "tenant { name: 'b' certificate_name: 'b.test' }";
  const std::string user = "tenant { name: 'c' uid: 7 }";
  const config::ServerConfig now = Parse(token + certificate + user);
  struct Case {
    std::string next;
    const char* why;
  };
  for (const Case& c :
       {Case{"", "no tenant is left of 3"}, Case{"log_level: 'info'", "no tenant is left of 3"},
        Case{"anonymous_tenant: 'default'", "no tenant is left of 3"},
        Case{certificate + user, "no tenant has a token_sha256 any more"},
        Case{token + user, "no tenant has a certificate_name any more"},
        Case{token + certificate, "no tenant has a uid any more"},
        Case{"tenant { name: 'd' }", "no tenant has a token_sha256 any more"}}) {
    const absl::Status status = CheckKeepsTenants(now, Parse(c.next));
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << c.next;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.why));
    EXPECT_THAT(std::string(status.message()), HasSubstr("allow_no_tenants: true"));
    EXPECT_TRUE(CheckKeepsTenants(now, Parse(c.next + " allow_no_tenants: true")).ok()) << c.next;
  }
  EXPECT_TRUE(CheckKeepsTenants(Parse(""), Parse("")).ok());
  EXPECT_TRUE(CheckKeepsTenants(Parse(token), Parse(token + user)).ok());
  EXPECT_TRUE(
      CheckKeepsTenants(Parse(token), Parse("tenant { name: 'z' token_sha256: 'y' }")).ok());
  EXPECT_FALSE(CheckKeepsTenants(Parse(token + "allow_no_tenants: true"), Parse("")).ok())
      << "permission of the old file does not count";
}

TEST(ConfigTest, ChangesAreToldWithoutSecrets) {
  const auto before = Parse(
      "log_level: 'info' tenant { name: 'a' weight: 1 token_sha256: 'old' } tenant { name: 'b' }");
  EXPECT_THAT(Changes(before, before), testing::IsEmpty());
  EXPECT_THAT(Changes(before, Parse("log_level: 'debug' log_sample_one_in: 5 anonymous_tenant: 'c' "
                                    "tenant { name: 'a' weight: 2 token_sha256: 'new' } "
                                    "tenant { name: 'c' }")),
              testing::UnorderedElementsAre("log_level: info -> debug", "log_sample_one_in: 0 -> 5",
                                            "anonymous_tenant: none -> c",
                                            "tenant a: changed (token_sha256, weight)",
                                            "tenant c: added", "tenant b: removed"));
  config::ServerConfig many;
  for (int i = 0; i < 150; ++i) many.add_tenant()->set_name("t" + std::to_string(i));
  EXPECT_EQ(Changes({}, many).size(), 100u);
  EXPECT_EQ(Changes({}, many).back(), "and 51 more");
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
  EXPECT_EQ(FieldsThatNeedRestart(before, Parse("deposit { address: 'unix:/x' }")), "deposit");
}

TEST(ConfigTest, ADefaultThatIsWrittenOutIsNoChange) {
  const config::ServerConfig before = Parse(
      "tenant { name: 'a' device_memory { reserved_bytes: 5 } } deposit { address: 'unix:/x' }"
      "peer { uid: 7 tenant: 'a' max_bytes: 1 }");
  const config::ServerConfig after = Parse(
      "scrub: 'cross-tenant' enable_shm: false"
      " tenant { name: 'a' weight: 1 device_memory { reserved_bytes: 5 hard_bytes: 0 } }"
      " deposit { address: 'unix:/x' server_name: '' }"
      " peer { uid: 7 tenant: 'a' max_bytes: 1 certificate_name: '' }");
  EXPECT_EQ(FieldsThatNeedRestart(before, after), "");
  EXPECT_THAT(Changes(before, after), testing::IsEmpty());
}

}  // namespace
}  // namespace opserve::server
