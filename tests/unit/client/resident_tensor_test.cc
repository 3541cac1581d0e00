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
  ResidentTensorTest() : client_(server_.Connect()) {}

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

TEST_F(ResidentTensorTest, OutputsAreKeptBesideResultsThatAreSent) {
  server_.set_execute([](auto*, const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    for (const v1::WantedResult& wanted : request.results()) {
      v1::Result* result = response->add_results();
      result->mutable_source()->set_output(wanted.output());
      result->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
      if (wanted.has_keep()) {
        result->mutable_tensor()->set_resident_tensor("kept");
        result->mutable_kept()->mutable_lease_end()->set_seconds(1700000000);
        result->mutable_kept()->set_device(2);
      } else {
        result->mutable_tensor()->set_payload(0);
        response->add_payloads(std::string(4, '\0'));
      }
    }
    return grpc::Status::OK;
  });

  const auto response = client_->Execute({.invocations = {{.operator_name = "Scale"}},
                                          .results = {{0, "out"}},
                                          .kept = {KeptOutput{{0, "out"}, absl::Minutes(5)}}});

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->results.size(), 1u);
  ASSERT_EQ(response->kept.size(), 1u);
  EXPECT_EQ(response->kept[0].handle, "kept");
  EXPECT_EQ(response->kept[0].dtype, kFloat);
  EXPECT_EQ(response->kept[0].device, 2u);
  EXPECT_EQ(response->kept[0].lease_end, absl::FromUnixSeconds(1700000000));
  EXPECT_EQ(server_.last_request().results(1).keep().lease().seconds(), 300);
}

TEST_F(ResidentTensorTest, AKeptOutputWithoutHandleBreaksTheProtocol) {
  server_.set_execute([](auto*, const auto&, v1::ExecuteResponse* response) {
    response->add_results()->mutable_kept();
    return grpc::Status::OK;
  });

  const auto response = client_->Execute(
      {.invocations = {{.operator_name = "Scale"}}, .kept = {KeptOutput{.output = {0, "out"}}}});

  EXPECT_EQ(response.status().code(), absl::StatusCode::kInternal);
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
