#include "server/identity/tenants.h"

#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/unit/server/error_detail.h"

namespace opserve::server {
namespace {

// printf %s secret | sha256sum
constexpr char kSecretDigest[] = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

TenantsConfig TenantsOf(const std::string& text) {
  config::ServerConfig values;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &values)) << text;
  const auto tenants = TenantsFrom(values);
  EXPECT_TRUE(tenants.ok()) << tenants.status();
  return *tenants;
}

TEST(TenantsTest, WithoutTenantsEverybodyIsTheDefaultOne) {
  const Tenants tenants(TenantsOf(""));
  EXPECT_EQ((*tenants.Identify({}))->name(), "default");
}

TEST(TenantsTest, ACallerBelongsToWhomItsCredentialsSay) {
  const Tenants tenants(TenantsOf(std::string("tenant { name: 'token' token_sha256: '") +
                                  kSecretDigest +
                                  "' } tenant { name: 'certificate' certificate_name: 'a.test' }"
                                  "tenant { name: 'user' uid: 7 }"));
  const std::vector<std::string> known = {"uri:a.test", "dns:a.test"};
  const std::vector<std::string> unknown = {"dns:b.test", "uri:a.test", "email:a.test"};
  struct Case {
    Credentials credentials;
    const char* tenant;  // empty: nobody's
  };
  for (const Case& c : {
           Case{{.token = "secret"}, "token"},
           Case{{.certificate_names = known}, "certificate"},
           Case{{.uid = 7}, "user"},
           Case{{.token = "secret", .certificate_names = known, .uid = 7}, "token"},
           Case{{.certificate_names = known, .uid = 7}, "certificate"},
           Case{{.certificate_names = unknown, .uid = 7}, "user"},
           // A wrong token is not made up for by anything else.
           Case{{.token = "Secret", .certificate_names = known, .uid = 7}, ""},
           Case{{.token = ""}, ""},
           Case{{.certificate_names = unknown}, ""},
           Case{{.uid = 8}, ""},
           Case{{}, ""},
       }) {
    const auto tenant = tenants.Identify(c.credentials);
    EXPECT_EQ(tenant.ok() ? (*tenant)->name() : "", c.tenant);
    if (!tenant.ok()) {
      EXPECT_EQ(tenant.status().code(), absl::StatusCode::kUnauthenticated);
      EXPECT_EQ(ReasonOf(tenant.status()), "unauthenticated");
    }
  }
}

TEST(TenantsTest, AnonymousCallersMayHaveATenant) {
  const Tenants tenants(
      TenantsOf("tenant { name: 'a' uid: 7 } tenant { name: 'guest' } anonymous_tenant: 'guest'"));
  EXPECT_EQ((*tenants.Identify({.uid = 8}))->name(), "guest");
  EXPECT_FALSE(tenants.Identify({.token = "x"}).ok());
}

TEST(TenantsTest, CredentialsDecideNothingOnlyWhereNobodyIsNamed) {
  Tenants tenants(TenantsOf(""));
  EXPECT_EQ(tenants.OnlyAnonymous(), *tenants.Identify({.uid = 8}));
  for (const char* config :
       {"tenant { name: 'a' uid: 7 }", "tenant { name: 'a' token_sha256: '%s' }",
        "tenant { name: 'a' certificate_name: 'a.example' }",
        "tenant { name: 'a' uid: 7 } tenant { name: 'guest' } "
        "anonymous_tenant: 'guest'"}) {
    ASSERT_TRUE(
        tenants.Set(TenantsOf(absl::StrReplaceAll(config, {{"%s", std::string(64, 'a')}}))).ok());
    EXPECT_EQ(tenants.OnlyAnonymous(), nullptr) << config;
  }
}

TEST(TenantsTest, AReloadKeepsWhoTheyAre) {
  Tenants tenants(TenantsOf("tenant { name: 'a' uid: 1 } tenant { name: 'b' uid: 2 weight: 3 }"));
  Tenant* b = *tenants.Identify({.uid = 2});
  ASSERT_TRUE(b->BeginRequest(1, absl::Now()).ok());
  ASSERT_TRUE(
      tenants.Set(TenantsOf("tenant { name: 'c' uid: 1 } tenant { name: 'b' uid: 4 }")).ok());
  EXPECT_EQ(*tenants.Identify({.uid = 4}), b);
  EXPECT_EQ(b->pending(), 1);
  EXPECT_EQ(b->config()->weight, 1);
  EXPECT_EQ((*tenants.Identify({.uid = 1}))->name(), "c");
  EXPECT_FALSE(tenants.Identify({.uid = 2}).ok());
  EXPECT_THAT(tenants.Names(), testing::ElementsAre("a", "b", "c"));
  // "a" is no more: it gets what everybody gets.
  EXPECT_EQ(tenants.Settings().size(), 3);
}

TEST(TenantsTest, TooManyThatThereEverWereAreFoundBeforeTheyAreSet) {
  Tenants tenants(TenantsOf(""));
  const auto config = [](int first) {
    TenantsConfig tenants;
    for (int i = 0; i < 8000; ++i) {
      tenants.tenants.emplace_back().name = absl::StrCat("t", first + i);
    }
    return tenants;
  };
  ASSERT_TRUE(tenants.Set(config(0)).ok());
  ASSERT_TRUE(tenants.CheckCanSet(config(8000)).ok());
  ASSERT_TRUE(tenants.Set(config(8000)).ok());
  EXPECT_EQ(tenants.CheckCanSet(config(16000)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(tenants.Set(config(16000)).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(tenants.Find("t8000"), nullptr);
}

TEST(TenantsTest, ATenantSendsNoMoreThanItMay) {
  const absl::Time now = absl::FromUnixSeconds(1000);
  Tenants tenants(
      TenantsOf("tenant { name: 'rate' uid: 1 requests_per_second: 2 }"
                "tenant { name: 'bytes' uid: 2 bytes_per_second: 100 }"
                "tenant { name: 'pending' uid: 3 max_pending_requests: 1 }"));
  Tenant& rate = **tenants.Identify({.uid = 1});
  EXPECT_TRUE(rate.BeginRequest(1, now).ok());
  EXPECT_TRUE(rate.BeginRequest(1, now).ok());
  const absl::Status limited = rate.BeginRequest(1, now);
  EXPECT_EQ(limited.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(limited), "rate_limited");
  EXPECT_EQ(ErrorDetailOf(limited)->retry_pushback_ms(), 500);
  EXPECT_EQ(rate.pending(), 2);
  EXPECT_TRUE(rate.BeginRequest(1, now + absl::Milliseconds(500)).ok());

  Tenant& bytes = **tenants.Identify({.uid = 2});
  EXPECT_TRUE(bytes.BeginRequest(60, now).ok());
  EXPECT_EQ(ReasonOf(bytes.BeginRequest(60, now)), "rate_limited");
  const absl::Status never = bytes.BeginRequest(101, now + absl::Hours(1));
  EXPECT_EQ(never.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ErrorDetailOf(never)->retry_pushback_ms(), -1);

  Tenant& pending = **tenants.Identify({.uid = 3});
  EXPECT_TRUE(pending.BeginRequest(1, now).ok());
  EXPECT_EQ(ReasonOf(pending.BeginRequest(1, now)), "tenant_queue_full");
  pending.EndRequest();
  EXPECT_TRUE(pending.BeginRequest(1, now).ok());
}

TEST(TenantsTest, AddsUpTheRequestsOfATenant) {
  Tenants tenants(TenantsOf("tenant { name: 'a' uid: 1 }"));
  Tenant& tenant = **tenants.Identify({.uid = 1});

  tenant.CountEnded(/*is_ok=*/true, absl::Milliseconds(250), /*request_bytes=*/10,
                    /*response_bytes=*/3);
  tenant.CountEnded(/*is_ok=*/true, absl::Milliseconds(500), 20, 4);
  tenant.CountEnded(/*is_ok=*/false, absl::Seconds(9), 40, 0);

  const RequestTotals totals = tenant.totals();
  EXPECT_EQ(totals.requests, 3u);
  EXPECT_EQ(totals.failed, 1u);
  EXPECT_EQ(totals.success_seconds, 0.75);
  EXPECT_EQ(totals.request_bytes, 70u);
  EXPECT_EQ(totals.response_bytes, 7u);
}

TEST(TenantsTest, ATenantCallsOnlyWhatItMay) {
  Tenants tenants(
      TenantsOf("tenant { name: 'a' uid: 1 operator: 'L1LossBackward' }"
                "tenant { name: 'b' uid: 2 }"));
  const Tenant& a = **tenants.Identify({.uid = 1});
  EXPECT_TRUE(a.CheckMayCall("L1LossBackward").ok());
  const absl::Status refused = a.CheckMayCall("KlDivBackward");
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(refused), "forbidden");
  EXPECT_TRUE((*tenants.Identify({.uid = 2}))->CheckMayCall("KlDivBackward").ok());
}

}  // namespace
}  // namespace opserve::server
