// A daemon that deposits much at another one over TLS, both processes: all of it arrives unchanged.
//
// OPSERVE_DEPOSIT_BYTES: how much, in bytes (default 16 MiB).
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "proto/codec/crc32c.h"
#include "tests/bytes.h"
#include "tests/integration/certificates.h"
#include "tests/integration/cutting_proxy.h"
#include "tests/integration/daemon_process.h"
#include "tests/integration/two_tenant_processes.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

constexpr uint64_t kTensorsOfATenant = 32;

uint64_t BytesToDeposit() {
  const char* text = std::getenv("OPSERVE_DEPOSIT_BYTES");
  uint64_t bytes = 16 * kMiB;
  EXPECT_TRUE(text == nullptr || absl::SimpleAtoi(text, &bytes)) << text;
  return bytes;
}

uint32_t ChecksumOf(absl::Span<const int64_t> elements) {
  return codec::Crc32c(absl::string_view(reinterpret_cast<const char*>(elements.data()),
                                         elements.size() * sizeof(int64_t)));
}

// A tensor that its owner has uploaded.
struct Uploaded {
  std::string tenant;  // and its token
  std::string handle;
  uint32_t checksum = 0;
};

class LargeDepositsTest : public ::testing::Test {
 protected:
  LargeDepositsTest() { certificates_.Sign("peer", "ca", 2, "DNS:peer.test"); }

  const Certificates certificates_;
  const TwoTenantProcesses processes_{"1800s"};
};

TEST_F(LargeDepositsTest, AllTensorsOfTwoTenantsArriveUnchanged) {
  const uint64_t bytes = BytesToDeposit();
  const uint64_t count = bytes / 2 / kTensorsOfATenant / sizeof(int64_t);  // of a tensor's elements
  // A daemon lends half of its one device, and half of that to each tenant; with room for rounding.
  setenv("OPSERVE_HOST_DEVICES", "1", 1);
  setenv("OPSERVE_HOST_DEVICE_MEMORY", absl::StrCat(3 * bytes + 128 * kMiB).c_str(), 1);
  const std::string address = CuttingProxy(0).address();  // free, a moment ago
  DaemonProcess receiver(processes_.Arguments(
      "receiver",
      absl::StrCat(
          "listen: '", address, "' tls_cert: '", certificates_.File("server"), "' tls_key: '",
          certificates_.Key("server"), "' tls_client_ca: '", certificates_.File("ca"),
          "' peer { certificate_name: 'peer.test' tenant: 'a' tenant: 'b' max_bytes: ", bytes,
          " }")));
  DaemonProcess sender(processes_.Arguments(
      "sender", absl::StrCat("deposit { address: '", address, "' ca: '", certificates_.File("ca"),
                             "' certificate: '", certificates_.File("peer"), "' key: '",
                             certificates_.Key("peer"), "' server_name: 'daemon.test' }")));
  for (const char* name : {"receiver", "sender"}) processes_.AwaitService(name);
  std::mt19937_64 random(TestSeed());
  std::vector<Uploaded> tensors;
  for (const char* tenant : {"a", "b"}) {
    const auto client = *Client::Connect(processes_.Target("sender"), {.token = tenant});
    for (uint64_t i = 0; i < kTensorsOfATenant; ++i) {
      std::vector<int64_t> elements(count);
      for (int64_t& element : elements) element = static_cast<int64_t>(random());
      const uint32_t checksum = ChecksumOf(elements);
      const auto uploaded = client->Upload(
          Tensor::Owning<int64_t>({static_cast<int64_t>(count)}, std::move(elements)),
          {.lease = absl::Hours(1)});
      ASSERT_TRUE(uploaded.ok()) << uploaded.status();
      tensors.push_back({tenant, uploaded->handle, checksum});
    }
  }

  sender.End(SIGTERM);

  for (const Uploaded& uploaded : tensors) {
    const auto client = *Client::Connect(processes_.Target("receiver"), {.token = uploaded.tenant});
    const auto tensor = client->Download(uploaded.handle);
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    const absl::Span<const int64_t> elements = *tensor->values<int64_t>();
    EXPECT_EQ(elements.size(), count);
    EXPECT_EQ(ChecksumOf(elements), uploaded.checksum);
  }
}

}  // namespace
}  // namespace opserve::server
