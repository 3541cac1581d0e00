// The registry of resident tensors: quotas, leases, who may use a handle, restarts and resets. Time
// is what the tests say it is.
#include "server/run/resident_tensors.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "tests/seed.h"
#include "tests/unit/server/error_detail.h"
#include "tests/unit/server/leases.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr ResidentLimits kLimits = {.max_bytes_per_tenant = 1000,
                                    .max_tensors_per_tenant = 4,
                                    .default_lease = absl::Seconds(100),
                                    .max_lease = absl::Seconds(500),
                                    .grace = absl::Seconds(10)};

std::shared_ptr<ResidentTensor> TensorOn(int32_t device, uint64_t generation = 0) {
  auto tensor = std::make_shared<ResidentTensor>();
  tensor->device = device;
  tensor->device_generation = generation;
  return tensor;
}

// Adds one tensor.
absl::StatusOr<ResidentTensors::Added> AddTo(ResidentTensors& tensors,
                                             ResidentTensors::Reservation reservation,
                                             std::shared_ptr<ResidentTensor> tensor,
                                             absl::Duration lease, absl::Time now) {
  std::vector<ResidentTensors::New> one(1);
  one[0] = {std::move(reservation), std::move(tensor), lease};
  auto added = tensors.Add(std::move(one), now);
  if (!added.ok()) return added.status();
  return added->front();
}

class ResidentTensorsTest : public ::testing::Test {
 protected:
  // Its handle; "" if it was refused.
  std::string Add(uint64_t bytes, uint32_t tenant = kTenant, int32_t device = 0,
                  absl::Duration lease = absl::ZeroDuration(), absl::Time now = At(0)) {
    auto reservation = tensors_.Reserve(tenant, device, bytes);
    if (!reservation.ok()) return "";
    auto added = AddTo(tensors_, *std::move(reservation), TensorOn(device), lease, now);
    return added.ok() ? added->handle : "";
  }

  absl::Status Find(const std::string& handle, absl::Time now = At(0), uint32_t tenant = kTenant) {
    return tensors_.Find(tenant, handle, now).status();
  }

  uint64_t BytesOf(uint32_t tenant) { return tensors_.UsageOfTenant(tenant).bytes; }

  ResidentTensors tensors_{kLimits};
};

TEST_F(ResidentTensorsTest, ALeaseEndsAfterItsGrace) {
  const std::string handle = Add(10);
  struct Case {
    int64_t second;
    absl::StatusCode expected;
  };
  for (const Case& c : {Case{0, absl::StatusCode::kOk}, Case{100, absl::StatusCode::kOk},
                        Case{109, absl::StatusCode::kOk}, Case{110, absl::StatusCode::kNotFound}}) {
    EXPECT_EQ(Find(handle, At(c.second)).code(), c.expected) << c.second;
  }
}

TEST_F(ResidentTensorsTest, ALeaseCanBeRenewedUntilTheEndOfItsGrace) {
  const std::string handle = Add(10);

  EXPECT_TRUE(tensors_.Renew(kTenant, {&handle, 1}, absl::Seconds(20), At(109)).ok());

  EXPECT_TRUE(Find(handle, At(138)).ok());
  EXPECT_EQ(DetailOf(Find(handle, At(139))).reason(), "tensor_unknown");
  EXPECT_FALSE(tensors_.Renew(kTenant, {&handle, 1}, absl::Seconds(20), At(139)).ok());
}

TEST_F(ResidentTensorsTest, ExpireForgetsWhatHasPassedItsGraceOnly) {
  const std::string passed = Add(10);
  const std::string still = Add(20, kTenant, 0, absl::Seconds(101));

  tensors_.Expire(At(109));
  EXPECT_EQ(BytesOf(kTenant), 30u);
  tensors_.Expire(At(110));

  EXPECT_EQ(BytesOf(kTenant), 20u);
  EXPECT_EQ(DetailOf(Find(passed)).reason(), "tensor_unknown");
  EXPECT_TRUE(Find(still).ok());
}

TEST_F(ResidentTensorsTest, LeasesHaveADefaultAndAnEnd) {
  struct Case {
    absl::Duration asked;
    int64_t lease_end;
  };
  for (const Case& c :
       {Case{absl::ZeroDuration(), 100}, Case{absl::Seconds(1), 1}, Case{absl::Seconds(500), 500},
        Case{absl::Hours(1), 500}, Case{absl::InfiniteDuration(), 500}}) {
    ResidentTensors tensors(kLimits);
    const auto added = AddTo(tensors, *tensors.Reserve(kTenant, 0, 1), TensorOn(0), c.asked, At(0));
    EXPECT_EQ(added->lease_end, At(c.lease_end)) << c.asked;
  }
}

TEST_F(ResidentTensorsTest, RenewingCountsFromNowAndNeverShortens) {
  const std::vector<std::string> handles = {Add(1, kTenant, 0, absl::Seconds(50)),
                                            Add(1, kTenant, 0, absl::Seconds(300))};

  const auto lease_ends = tensors_.Renew(kTenant, handles, absl::ZeroDuration(), At(30));

  ASSERT_TRUE(lease_ends.ok()) << lease_ends.status();
  EXPECT_THAT(*lease_ends, ElementsAre(At(130), At(300)));
  EXPECT_TRUE(Find(handles[0], At(139)).ok());
}

TEST_F(ResidentTensorsTest, RenewingChangesNothingIfOneHandleIsUnknown) {
  const std::string known = Add(1);
  const std::string unknown = Add(1);
  tensors_.Release(kTenant, {&unknown, 1});
  const std::vector<std::string> handles = {known, unknown};

  const auto renewed = tensors_.Renew(kTenant, handles, absl::Seconds(400), At(0));

  EXPECT_EQ(renewed.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(renewed.status().message()), HasSubstr("handles[1]"));
  EXPECT_EQ(DetailOf(renewed.status()).reason(), "tensor_unknown");
  EXPECT_FALSE(Find(known, At(110)).ok());
}

TEST_F(ResidentTensorsTest, AForeignHandleIsAnsweredLikeOneThatNeverWas) {
  const std::string foreign = Add(10, kOtherTenant);
  std::string never = foreign;
  never.front() ^= 1;

  EXPECT_EQ(Find(foreign), Find(never));
  EXPECT_EQ(DetailOf(Find(foreign)).reason(), "tensor_unknown");
  EXPECT_EQ(tensors_.Renew(kTenant, {&foreign, 1}, absl::ZeroDuration(), At(0)).status(),
            tensors_.Renew(kTenant, {&never, 1}, absl::ZeroDuration(), At(0)).status());
  EXPECT_EQ(tensors_.Release(kTenant, {&foreign, 1}), 0u);

  tensors_.DeviceWasReset(0, 1);
  EXPECT_EQ(Find(foreign), Find(never));
  EXPECT_EQ(DetailOf(Find(foreign)).reason(), "tensor_unknown");
  EXPECT_EQ(DetailOf(Find(foreign, At(0), kOtherTenant)).reason(), "tensor_lost");
}

TEST_F(ResidentTensorsTest, WhatIsNoHandleIsUnknown) {
  const std::string handle = Add(1);
  for (const std::string& no_handle :
       {std::string(), std::string("x"), handle.substr(1), handle + "x", handle.substr(0, 14),
        std::string(29, 'x'), std::string(31, 'x')}) {
    EXPECT_EQ(DetailOf(Find(no_handle)).reason(), "tensor_unknown") << no_handle.size();
  }
}

TEST_F(ResidentTensorsTest, AHandleFromBeforeARestartIsLost) {
  ResidentTensors restarted(kLimits);
  const absl::Status status = restarted.Find(kTenant, Add(1), At(0)).status();

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(status).reason(), "tensor_lost");
}

TEST_F(ResidentTensorsTest, AResetLosesTheTensorsOfItsDeviceOnly) {
  const std::string lost = Add(10, kTenant, 0);
  const std::string other = Add(20, kTenant, 1);

  tensors_.DeviceWasReset(0, 1);

  EXPECT_EQ(Find(lost).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(Find(lost)).reason(), "tensor_lost");
  EXPECT_TRUE(Find(other).ok());
  EXPECT_EQ(BytesOf(kTenant), 20u);
  EXPECT_EQ(tensors_.UsageOfDevice(0).tensors, 0u);

  // One of the new generation is well, and what is released of it is unknown, not lost.
  const auto added =
      AddTo(tensors_, *tensors_.Reserve(kTenant, 0, 1), TensorOn(0, 1), absl::Seconds(9), At(0));
  ASSERT_TRUE(added.ok()) << added.status();
  EXPECT_EQ(tensors_.Release(kTenant, {&added->handle, 1}), 1u);
  EXPECT_EQ(DetailOf(Find(added->handle)).reason(), "tensor_unknown");
}

TEST_F(ResidentTensorsTest, TheOldestOfManyLostHandlesAreUnknown) {
  const std::string first = Add(1);
  const std::string second = Add(1);
  uint64_t generation = 0;
  tensors_.DeviceWasReset(0, ++generation);
  // The first and second are in the books of lost handles in any order.
  const auto are_lost = [&] {
    return (DetailOf(Find(first)).reason() == "tensor_lost") +
           (DetailOf(Find(second)).reason() == "tensor_lost");
  };
  for (size_t lost = 2; lost < ResidentTensors::kMaxGoneHandles; ++lost) {
    ASSERT_TRUE(AddTo(tensors_, *tensors_.Reserve(kTenant, 0, 1), TensorOn(0, generation),
                      absl::ZeroDuration(), At(0))
                    .ok());
    tensors_.DeviceWasReset(0, ++generation);
  }
  EXPECT_EQ(are_lost(), 2);

  const auto last = AddTo(tensors_, *tensors_.Reserve(kTenant, 0, 1), TensorOn(0, generation),
                          absl::ZeroDuration(), At(0));
  tensors_.DeviceWasReset(0, ++generation);

  EXPECT_EQ(are_lost(), 1);
  EXPECT_EQ(DetailOf(Find(last->handle)).reason(), "tensor_lost");
}

TEST_F(ResidentTensorsTest, AResetDuringAnUploadRefusesItAndGivesTheQuotaBack) {
  auto reservation = tensors_.Reserve(kTenant, 0, 500);
  tensors_.DeviceWasReset(0, 3);

  const auto added =
      AddTo(tensors_, *std::move(reservation), TensorOn(0, 2), absl::ZeroDuration(), At(0));

  EXPECT_EQ(added.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(DetailOf(added.status()).reason(), "tensor_lost");
  EXPECT_EQ(tensors_.UsageOfTenant(kTenant).tensors, 0u);
}

TEST_F(ResidentTensorsTest, AMoveChangesWhereTensorsAreAndCountAndNothingElse) {
  const std::string handle = Add(300, kTenant, 0);
  const std::string released = Add(200, kTenant, 0);
  Add(100, kTenant, 1);
  Add(50, kOtherTenant, 0);
  const auto held = *tensors_.Find(kTenant, released, At(0));
  tensors_.Release(kTenant, {&released, 1});
  // One that a request holds still goes with the others.
  std::vector<ResidentTensors::Moving> moving = tensors_.TensorsOn(0, kTenant);
  ASSERT_EQ(moving.size(), 2u);
  const auto content = std::make_shared<ResidentContent>();
  for (ResidentTensors::Moving& one : moving) one.content = content;

  ASSERT_TRUE(tensors_.Move(absl::MakeSpan(moving), 1, 5).ok());

  const auto moved = *tensors_.Find(kTenant, handle, At(0));
  for (const auto& tensor : {moved, held}) {
    EXPECT_EQ(tensor->device, 1);
    EXPECT_EQ(tensor->device_generation, 5u);
    EXPECT_EQ(tensor->content, content);
    EXPECT_EQ(tensor->version, 1u);
  }
  EXPECT_EQ(tensors_.UsageOn(0, kTenant).tensors, 0u);
  EXPECT_EQ(tensors_.UsageOn(1, kTenant).tensors, 2u);
  EXPECT_EQ(tensors_.UsageOn(1, kTenant).bytes, 400u);
  EXPECT_EQ(BytesOf(kTenant), 400u);
  EXPECT_EQ(tensors_.UsageOfDevice(0).bytes, 50u);
  EXPECT_THAT(tensors_.TensorsOn(0, kTenant), ::testing::IsEmpty());
  tensors_.DeviceWasReset(0, 1);  // where it was
  EXPECT_TRUE(Find(handle).ok());
  tensors_.DeviceWasReset(1, 6);
  EXPECT_EQ(DetailOf(Find(handle)).reason(), "tensor_lost");
}

TEST_F(ResidentTensorsTest, AMoveFromOrToADeviceThatWasResetDoesNothing) {
  for (const int32_t device : {0, 1}) {
    ResidentTensors tensors(kLimits);
    const auto added =
        AddTo(tensors, *tensors.Reserve(kTenant, 0, 10), TensorOn(0), absl::ZeroDuration(), At(0));
    std::vector<ResidentTensors::Moving> moving = tensors.TensorsOn(0, kTenant);
    moving.at(0).content = std::make_shared<ResidentContent>();
    tensors.DeviceWasReset(device, 1);

    const absl::Status status = tensors.Move(absl::MakeSpan(moving), 1, 0);

    EXPECT_EQ(DetailOf(status).reason(), "tensor_lost");
    EXPECT_EQ(moving[0].tensor->device, 0);
    EXPECT_EQ(tensors.Find(kTenant, added->handle, At(0)).ok(), device == 1);
    EXPECT_EQ(tensors.UsageOn(1, kTenant).tensors, 0u);
  }
}

TEST_F(ResidentTensorsTest, WhatIsGivenAwayIsAtTheOtherPlaceForItsOwner) {
  ResidentTensors tensors(kLimits, "there:1");
  const auto add = [&](uint64_t bytes) {
    return AddTo(tensors, *tensors.Reserve(kTenant, 0, bytes), TensorOn(0), absl::ZeroDuration(),
                 At(0))
        ->handle;
  };
  const std::string stays = add(5);
  const std::string goes = add(7);
  const std::string broken = add(9);
  tensors.Find(kTenant, broken, At(0)).value()->is_broken = true;
  EXPECT_TRUE(tensors.Find(kTenant, goes, At(1)).ok());
  std::vector<ResidentTensors::Departing> departing = tensors.TensorsToDeposit(At(1));
  ASSERT_EQ(departing.size(), 2u);
  EXPECT_EQ(departing[0].handle, goes);
  EXPECT_EQ(departing[0].lease_end, At(100));
  EXPECT_EQ(tensors.Release(kTenant, {&stays, 1}), 1u);

  EXPECT_THAT(tensors.GiveAway(departing), ElementsAre(0u));

  const absl::Status moved = tensors.Find(kTenant, goes, At(1)).status();
  EXPECT_EQ(DetailOf(moved).reason(), "tensor_moved");
  EXPECT_EQ(DetailOf(moved).moved_to(), "there:1");
  EXPECT_EQ(DetailOf(CheckNotBroken(*departing[0].tensor)).moved_to(), "there:1");
  EXPECT_EQ(DetailOf(tensors.Find(kOtherTenant, goes, At(1)).status()).reason(), "tensor_unknown");
  EXPECT_EQ(DetailOf(tensors.Find(kTenant, stays, At(1)).status()).reason(), "tensor_unknown");
  EXPECT_FALSE(tensors.Has(kTenant, goes));
  EXPECT_EQ(tensors.Total().bytes, 9u);
}

TEST_F(ResidentTensorsTest, ATensorOfAnotherRunArrivesUnderItsHandle) {
  ResidentTensors other(kLimits);
  const std::string handle = std::string(22, 'h') + other.run();
  EXPECT_TRUE(ResidentTensors::IsHandleOf(handle, other.run()));
  EXPECT_FALSE(ResidentTensors::IsHandleOf(handle, tensors_.run()));
  EXPECT_FALSE(ResidentTensors::IsHandleOf(other.run(), other.run()));
  EXPECT_EQ(DetailOf(Find(handle)).reason(), "tensor_lost");
  {
    const ResidentTensors::Expectation first = tensors_.Expect(other.run());
    ResidentTensors::Expectation second = tensors_.Expect(other.run());
    second = ResidentTensors::Expectation();
    EXPECT_EQ(DetailOf(Find(handle)).reason(), "tensor_arriving");
    EXPECT_GT(DetailOf(Find(handle)).retry_pushback_ms(), 0);
    EXPECT_EQ(DetailOf(Find(std::string(30, 'x'))).reason(), "tensor_lost");
  }
  EXPECT_EQ(DetailOf(Find(handle)).reason(), "tensor_lost");
  const auto adopt = [&](uint64_t generation) {
    std::vector<ResidentTensors::Arrived> arrived(1);
    arrived[0] = {.handle = handle,
                  .reservation = *tensors_.Reserve(kTenant, 0, 30),
                  .tensor = TensorOn(0, generation),
                  .lease_end = At(900)};
    return tensors_.Adopt(std::move(arrived), At(10));
  };

  EXPECT_EQ(adopt(0), absl::OkStatus());

  EXPECT_TRUE(Find(handle, At(519)).ok());
  EXPECT_FALSE(Find(handle, At(520)).ok());  // the longest lease and the grace are over
  EXPECT_EQ(DetailOf(Find(handle, At(10), kOtherTenant)).reason(), "tensor_lost");
  EXPECT_TRUE(tensors_.Has(kTenant, handle));
  EXPECT_EQ(BytesOf(kTenant), 30u);
  EXPECT_EQ(adopt(0).code(), absl::StatusCode::kAlreadyExists);
  tensors_.DeviceWasReset(0, 1);
  EXPECT_EQ(DetailOf(adopt(0)).reason(), "tensor_lost");
  EXPECT_EQ(BytesOf(kTenant), 0u);
  // It may come a second time.
  EXPECT_EQ(adopt(1), absl::OkStatus());
  EXPECT_TRUE(Find(handle).ok());
}

TEST_F(ResidentTensorsTest, TheLastUserOfADeviceComesFirst) {
  const std::string first = Add(1, kTenant);
  const std::string second = Add(1, kOtherTenant);
  auto coming = tensors_.Reserve(3, 0, 1);
  EXPECT_TRUE(Find(second, At(1), kOtherTenant).ok());
  EXPECT_TRUE(Find(first, At(2)).ok());
  EXPECT_THAT(tensors_.TenantsOn(0), ElementsAre(kTenant, kOtherTenant, 3u));
  EXPECT_TRUE(Find(second, At(3), kOtherTenant).ok());
  EXPECT_THAT(tensors_.TenantsOn(0), ElementsAre(kOtherTenant, kTenant, 3u));
  EXPECT_THAT(tensors_.TenantsOn(1), ::testing::IsEmpty());
}

TEST_F(ResidentTensorsTest, ListsTheTenantsOwnInTheOrderOfHandlesAndPartByPart) {
  const std::vector<std::string> added = {Add(10), Add(30), Add(20)};
  Add(40, kOtherTenant);
  Add(50, kTenant, /*device=*/0, /*lease=*/absl::Seconds(1));
  std::vector<std::string> expected = added;
  std::sort(expected.begin(), expected.end());

  const auto first = tensors_.List(kTenant, "", 2, At(20));
  ASSERT_EQ(first.size(), 2u);
  const auto rest = tensors_.List(kTenant, first.back().handle, 2, At(20));
  ASSERT_EQ(rest.size(), 1u);

  EXPECT_THAT((std::vector{first[0].handle, first[1].handle, rest[0].handle}),
              ::testing::ElementsAreArray(expected));
  EXPECT_EQ(first[0].creation, At(0));
  EXPECT_EQ(first[0].lease_end, At(100));
}

TEST_F(ResidentTensorsTest, ListsTheLargestOfOneTenantOrOfAll) {
  Add(10);
  Add(30);
  Add(20, kOtherTenant);

  const auto all = tensors_.ListLargest(std::nullopt, 2, At(0));
  EXPECT_EQ(all.all.tensors, 3u);
  EXPECT_EQ(all.all.bytes, 60u);
  ASSERT_EQ(all.tensors.size(), 2u);
  EXPECT_EQ(all.tensors[0].bytes, 30u);
  EXPECT_EQ(all.tensors[1].tenant, kOtherTenant);
  const auto one = tensors_.ListLargest(kTenant, 10, At(0));
  EXPECT_EQ(one.tensors.size(), 2u);
  EXPECT_EQ(one.all.bytes, 40u);
}

// Their first digits name them on the command line.
TEST_F(ResidentTensorsTest, HandlesDifferInTheirFirstBytes) {
  EXPECT_NE(Add(1).substr(0, 8), Add(1).substr(0, 8));
}

TEST_F(ResidentTensorsTest, TheQuotaBoundsBytesAndTensors) {
  EXPECT_NE(Add(1000), "");
  EXPECT_EQ(Add(1), "");
  EXPECT_NE(Add(0), "");
  EXPECT_NE(Add(1000, kOtherTenant), "");
  EXPECT_NE(Add(0), "");
  EXPECT_NE(Add(0), "");
  EXPECT_EQ(Add(0), "");  // a fifth

  const absl::Status status = tensors_.Reserve(kTenant, 0, 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(DetailOf(status).reason(), "tenant_memory");
  EXPECT_GT(DetailOf(status).retry_pushback_ms(), 0);
}

TEST_F(ResidentTensorsTest, WhatAloneExceedsTheQuotaIsNeverToBeTriedAgain) {
  for (uint64_t bytes : {uint64_t{1001}, UINT64_MAX}) {
    const absl::Status status = tensors_.Reserve(kTenant, 0, bytes).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(DetailOf(status).reason(), "tenant_memory");
    EXPECT_EQ(DetailOf(status).retry_pushback_ms(), -1);
  }
}

TEST_F(ResidentTensorsTest, AReservationCountsUntilItIsDropped) {
  auto reservation = *tensors_.Reserve(kTenant, 1, 600);
  EXPECT_EQ(tensors_.UsageOfDevice(1).bytes, 600u);
  EXPECT_EQ(Add(500), "");

  auto moved = std::move(reservation);
  reservation = ResidentTensors::Reservation();
  EXPECT_EQ(BytesOf(kTenant), 600u);
  moved = *tensors_.Reserve(kTenant, 1, 300);

  EXPECT_EQ(BytesOf(kTenant), 300u);
  EXPECT_EQ(tensors_.UsageOfTenant(kTenant).tensors, 1u);
}

TEST_F(ResidentTensorsTest, AReleasedTensorLivesAsLongAsSomebodyHoldsItButCountsNoMore) {
  const std::string handle = Add(10);
  auto held = *tensors_.Find(kTenant, handle, At(0));
  const std::weak_ptr<ResidentTensor> observed = held;

  EXPECT_EQ(tensors_.Release(kTenant, std::vector<std::string>{handle, handle}), 1u);

  EXPECT_EQ(tensors_.UsageOfTenant(kTenant).tensors, 0u);
  EXPECT_EQ(DetailOf(Find(handle)).reason(), "tensor_unknown");
  EXPECT_FALSE(observed.expired());
  held.reset();
  EXPECT_TRUE(observed.expired());
}

TEST_F(ResidentTensorsTest, TheDeviceOfATenantHasMostOfItsBytes) {
  EXPECT_EQ(tensors_.DeviceOf(kTenant), std::nullopt);
  Add(100, kTenant, 5);
  const std::string large = Add(300, kTenant, 2);
  Add(250, kTenant, 5);
  Add(1000, kOtherTenant, 7);

  EXPECT_EQ(tensors_.DeviceOf(kTenant), 5);
  const auto reservation = tensors_.Reserve(kTenant, 2, 100);
  EXPECT_EQ(tensors_.DeviceOf(kTenant), 2);
  tensors_.Release(kTenant, {&large, 1});
  EXPECT_EQ(tensors_.DeviceOf(kTenant), 5);
  tensors_.DeviceWasReset(5, 1);
  EXPECT_EQ(tensors_.DeviceOf(kTenant), 2);  // that of the upload
  tensors_.DeviceWasReset(7, 1);
  EXPECT_EQ(tensors_.DeviceOf(kOtherTenant), std::nullopt);
}

// What a registry should know, kept as plainly as possible.
struct Model {
  struct Tensor {
    uint32_t tenant;
    int32_t device;
    uint64_t bytes;
    int64_t lease_end;
  };
  std::map<std::string, Tensor> tensors;
  std::map<std::string, uint32_t> lost;  // with their tenants

  template <typename Counts>
  uint64_t Bytes(Counts counts) const {
    uint64_t bytes = 0;
    for (const auto& [handle, tensor] : tensors) bytes += counts(tensor) ? tensor.bytes : 0;
    return bytes;
  }
  template <typename Goes>
  void Erase(Goes goes) {
    std::erase_if(tensors, [&](const auto& entry) { return goes(entry.second); });
  }
};

TEST_F(ResidentTensorsTest, RandomOperationsAgreeWithAModel) {
  std::mt19937 random(TestSeed());
  const auto below = [&](uint32_t n) { return random() % n; };
  Model model;
  int64_t now = 0;
  uint64_t generations[2] = {};
  // Any handle there ever was; often one that is known.
  const auto some_handle = [&]() -> std::string {
    if (!model.tensors.empty() && below(4) != 0) {
      return std::next(model.tensors.begin(), below(model.tensors.size()))->first;
    }
    if (model.lost.empty()) return "";
    return std::next(model.lost.begin(), below(model.lost.size()))->first;
  };

  for (int step = 0; step < 20000; ++step) {
    const uint32_t tenant = 1 + below(3);
    const auto device = static_cast<int32_t>(below(2));
    const auto is_tenants = [&](const Model::Tensor& t) { return t.tenant == tenant; };
    switch (below(7)) {
      case 0:
      case 1: {
        const uint64_t bytes = below(400);
        auto reservation = tensors_.Reserve(tenant, device, bytes);
        const auto count =
            std::count_if(model.tensors.begin(), model.tensors.end(),
                          [&](const auto& entry) { return is_tenants(entry.second); });
        ASSERT_EQ(reservation.ok(), count < 4 && model.Bytes(is_tenants) + bytes <= 1000);
        if (!reservation.ok() || below(5) == 0) break;  // an upload that ends early
        const int64_t lease = 1 + below(600);
        const auto added =
            AddTo(tensors_, *std::move(reservation), TensorOn(device, generations[device]),
                  absl::Seconds(lease), At(now));
        ASSERT_TRUE(added.ok());
        const bool is_new =
            model.tensors
                .emplace(added->handle,
                         Model::Tensor{tenant, device, bytes, now + std::min<int64_t>(lease, 500)})
                .second;
        ASSERT_TRUE(is_new);
        break;
      }
      case 2: {
        const std::string handle = some_handle();
        const auto known = model.tensors.find(handle);
        ASSERT_EQ(tensors_.Find(tenant, handle, At(now)).ok(),
                  known != model.tensors.end() && known->second.tenant == tenant &&
                      now < known->second.lease_end + 10);
        break;
      }
      case 3: {
        const std::string handle = some_handle();
        const auto known = model.tensors.find(handle);
        const int64_t lease = 1 + below(500);
        if (tensors_.Renew(tenant, {&handle, 1}, absl::Seconds(lease), At(now)).ok()) {
          ASSERT_NE(known, model.tensors.end());
          known->second.lease_end = std::max(known->second.lease_end, now + lease);
        }
        break;
      }
      case 4: {
        const std::string handle = some_handle();
        const auto known = model.tensors.find(handle);
        const bool goes = known != model.tensors.end() && known->second.tenant == tenant;
        ASSERT_EQ(tensors_.Release(tenant, {&handle, 1}), goes ? 1u : 0u);
        if (goes) model.tensors.erase(known);
        break;
      }
      case 5:
        now += below(60);
        tensors_.Expire(At(now));
        model.Erase([&](const Model::Tensor& t) { return now >= t.lease_end + 10; });
        break;
      case 6:
        if (below(20) != 0) break;
        tensors_.DeviceWasReset(device, ++generations[device]);
        for (const auto& [handle, tensor] : model.tensors) {
          if (tensor.device == device) model.lost.emplace(handle, tensor.tenant);
        }
        model.Erase([&](const Model::Tensor& t) { return t.device == device; });
        break;
    }
    ASSERT_EQ(BytesOf(tenant), model.Bytes(is_tenants)) << step;
    ASSERT_EQ(tensors_.UsageOfDevice(device).bytes, model.Bytes([&](const Model::Tensor& t) {
      return t.device == device;
    })) << step;
  }
  for (const auto& [handle, tenant] : model.lost) {
    ASSERT_EQ(DetailOf(Find(handle, At(now), tenant)).reason(), "tensor_lost");
  }
}

}  // namespace
}  // namespace opserve::server
