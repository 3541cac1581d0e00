#include "client/cpp/resident_tensor.h"

#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::ElementsAre;

class ResidentTensorTest : public testing::Test {
 protected:
  ResidentTensorTest() : client_(*Client::Connect(server_.target())) {}

  std::string UploadOne() {
    const auto resident = client_->Upload(Tensor::Owning<float>({2}, {1, 2}));
    return resident.ok() ? resident->handle : "";
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ResidentTensorTest, AsAnInputOnlyTheHandleTravels) {
  const auto resident = client_->Upload(Tensor::Owning<float>({2}, {1, 2}));
  ASSERT_TRUE(resident.ok()) << resident.status();

  const auto response =
      client_->Execute({.operator_name = "Scale",
                        .inputs = {{"x", *resident}, {"y", Tensor::Owning<float>({}, {3})}}});

  ASSERT_TRUE(response.ok()) << response.status();
  const v1::ExecuteRequest sent = server_.last_request();
  v1::Tensor expected;
  expected.set_resident_tensor(resident->handle);
  EXPECT_EQ(sent.invocations(0).inputs(0).tensor().SerializeAsString(),
            expected.SerializeAsString());
  EXPECT_EQ(sent.payloads_size(), 1);
  EXPECT_EQ(sent.invocations(0).inputs(1).tensor().payload(), 0u);
}

TEST_F(ResidentTensorTest, LeasesAreRenewedTogetherOrNotAtAll) {
  const std::string first = UploadOne();
  const std::string second = UploadOne();

  const auto renewed = client_->Renew({first, second}, absl::Minutes(5));
  const auto unknown = client_->Renew({first, "no such"}, absl::Minutes(5));

  ASSERT_TRUE(renewed.ok()) << renewed.status();
  const absl::Time lease_end = absl::FromUnixSeconds(1700000000 + 300);
  EXPECT_THAT(*renewed, ElementsAre(lease_end, lease_end));
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
}

TEST_F(ResidentTensorTest, ReleaseCountsWhatItFreed) {
  const std::string handle = UploadOne();

  EXPECT_EQ(*client_->Release({handle, "no such"}), 1u);
  EXPECT_EQ(*client_->Release({handle}), 0u);
  EXPECT_EQ(client_->Download(handle).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace opserve
