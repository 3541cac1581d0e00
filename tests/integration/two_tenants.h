// A daemon's configuration with two tenants that are told apart by their tokens.
#pragma once

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "server/config/config.h"

namespace opserve::server {

// The tenants "a" and "b", whose tokens are their names: printf %s a | sha256sum, and of b.
// Callers without a token are "b".
inline constexpr char kTwoTenants[] = R"(
        tenant { name: "a"
                 token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
        tenant { name: "b"
                 token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" }
        anonymous_tenant: "b")";

inline void AddTwoTenants(Config* config) {
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(kTwoTenants, &config->values));
  config->tenants = *TenantsFrom(config->values);
}

}  // namespace opserve::server
