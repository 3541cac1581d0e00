// Resident tensors of two tenants, before and after they are deposited at another daemon.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "client/cpp/client.h"
#include "gtest/gtest.h"

namespace opserve::server {

// A resident tensor and its owner's client at the daemon that has it first.
struct Owned {
  std::string tenant;  // and its token
  std::vector<float> values;
  std::string handle;
};

// Of both tenants; one of them has no elements, and one has several chunks.
inline std::vector<Owned> UploadSome(const std::string& target, bool has_large) {
  std::vector<Owned> tensors;
  for (const char* tenant : {"a", "b"}) {
    const auto client = *Client::Connect(target, {.token = tenant});
    for (const int64_t count : {int64_t{100}, int64_t{0}, int64_t{has_large ? 600'000 : 1000}}) {
      Owned& owned = tensors.emplace_back();
      owned.tenant = tenant;
      owned.values.assign(static_cast<size_t>(count), static_cast<float>(tensors.size()));
      if (count > 1) owned.values.back() = tenant[0];
      const auto uploaded = client->Upload(Tensor::Of<float>({count}, owned.values), {.device = 0});
      EXPECT_TRUE(uploaded.ok()) << uploaded.status();
      owned.handle = uploaded->handle;
    }
  }
  return tensors;
}

// Whether the owner has the tensor, with its elements, at the daemon there.
inline absl::Status FindAt(const std::string& target, const Owned& owned) {
  const auto client =
      *Client::Connect(target, {.token = owned.tenant, .retry = {.max_attempts = 1}});
  const auto result = client->Download(owned.handle);
  if (!result.ok()) return result.status();
  const auto values = *result->values<float>();
  EXPECT_TRUE(std::equal(values.begin(), values.end(), owned.values.begin(), owned.values.end()));
  return absl::OkStatus();
}

}  // namespace opserve::server
