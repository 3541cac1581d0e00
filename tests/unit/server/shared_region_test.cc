#include "server/shared_memory/shared_region.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "gtest/gtest.h"
#include "proto/status/error.h"
#include "server/shared_memory/file_parts.h"
#include "tests/seed.h"
#include "tests/unit/server/acl_environment.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {
namespace {

class SharedRegionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const auto& device : devices_) ASSERT_TRUE(device->Open().ok());
    ASSERT_TRUE(devices_[0]->BindThisThread().ok());
  }
  void TearDown() override {
    ClearFaults();
    for (auto& [id, registration] : retired_) {
      ASSERT_TRUE(devices_[id]->BindThisThread().ok());
      registration.reset();
    }
    EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 0);
    acl_.aclrtHostRegister = host_register_;
  }

  absl::StatusOr<std::shared_ptr<SharedRegion>> Map(int fd, const SharedRegionSpec& spec) {
    return SharedRegion::Map(fd, spec, retire_,
                             []() -> absl::StatusOr<std::shared_ptr<void>> { return nullptr; });
  }
  std::shared_ptr<SharedRegion> MapWhole(uint64_t bytes) {
    return *Map(SealedFile(bytes).get(), {.size = bytes});
  }

  std::shared_ptr<SharedRegion> MapShrinkable(const FileDescriptor& file,
                                              const SharedRegionSpec& spec) {
    return *SharedRegion::MapShrinkable(
        file.get(), spec, retire_,
        []() -> absl::StatusOr<std::shared_ptr<void>> { return nullptr; });
  }
  static std::shared_ptr<const SharedMapping> MappingOf(SharedRegion& region) {
    return *region.MappingOf(region.size());
  }
  absl::StatusOr<std::shared_ptr<const HostRegistration>> RegistrationOn(SharedRegion& region,
                                                                         int32_t device) {
    return region.RegistrationOn(*devices_[device], MappingOf(region), absl::InfiniteFuture());
  }

  AclLibrary& acl_ = MutableTestAcl();
  decltype(acl_.aclrtHostRegister) host_register_ = acl_.aclrtHostRegister;
  std::unique_ptr<Device> devices_[2] = {std::make_unique<Device>(acl_, 0),
                                         std::make_unique<Device>(acl_, 1)};
  std::vector<std::pair<int32_t, std::shared_ptr<const HostRegistration>>> retired_;
  const SharedRegion::Retire retire_ = [this](int32_t device, auto registration) {
    retired_.emplace_back(device, std::move(registration));
  };
};

TEST_F(SharedRegionTest, IsThePartOfTheFileThatWasAskedFor) {
  const FileDescriptor file = SealedFile(3 * kPageBytes);
  ASSERT_EQ(pwrite(file.get(), "middle", 6, kPageBytes), 6);
  const auto region = Map(file.get(), {.offset = kPageBytes, .size = 100});
  ASSERT_TRUE(region.ok()) << region.status();
  char* const data = MappingOf(**region)->data();
  EXPECT_EQ(std::string(data, 6), "middle");
  std::memcpy(data, "MIDDLE", 6);
  char bytes[6];
  ASSERT_EQ(pread(file.get(), bytes, 6, kPageBytes), 6);
  EXPECT_EQ(std::string(bytes, 6), "MIDDLE");
  EXPECT_EQ((*region)->size(), 100u);
}

TEST_F(SharedRegionTest, AChargeIsTakenAfterTheChecksAndGoesWithTheRegion) {
  int charges = 0;
  const auto take = [&]() -> absl::StatusOr<std::shared_ptr<void>> {
    ++charges;
    return std::shared_ptr<void>(&charges, [](int* count) { --*count; });
  };
  const FileDescriptor file = SealedFile(kPageBytes);
  EXPECT_FALSE(SharedRegion::Map(file.get(), {.size = 2 * kPageBytes}, retire_, take).ok());
  EXPECT_EQ(charges, 0);
  auto region = SharedRegion::Map(file.get(), {.size = kPageBytes}, retire_, take);
  EXPECT_TRUE(region.ok());
  EXPECT_EQ(charges, 1);
  region = absl::UnknownError("");
  EXPECT_EQ(charges, 0);
  // And when the mapping fails.
  const FileDescriptor read_only = ReadOnly(file);
  EXPECT_EQ(SharedRegion::Map(read_only.get(), {.size = 1}, retire_, take).status().code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(charges, 0);
  const auto refuse = []() -> absl::StatusOr<std::shared_ptr<void>> {
    return absl::ResourceExhaustedError("full");
  };
  EXPECT_EQ(SharedRegion::Map(file.get(), {.size = 1}, retire_, refuse).status().message(), "full");
}

TEST_F(SharedRegionTest, IsRegisteredOncePerDevice) {
  auto region = MapWhole(kPageBytes);
  const auto first = RegistrationOn(*region, 0);
  ASSERT_TRUE(first.ok() && *first != nullptr) << first.status();
  EXPECT_EQ(*RegistrationOn(*region, 0), *first);
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 1);
  ASSERT_TRUE(devices_[1]->BindThisThread().ok());
  EXPECT_NE(*RegistrationOn(*region, 1), *first);
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 2);

  region.reset();
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 2) << "until the devices' threads do it";
  EXPECT_EQ(retired_.size(), 2u);
}

// The memory is unmapped after the device has let go of it, or kernels could run into a hole.
TEST_F(SharedRegionTest, StaysMappedAsLongAsADeviceHasIt) {
  auto region = MapWhole(kPageBytes);
  volatile char* const data = MappingOf(*region)->data();
  ASSERT_TRUE(RegistrationOn(*region, 0).ok());
  region.reset();
  data[0] = 'x';
  EXPECT_EQ(data[0], 'x');
  EXPECT_EQ(CountMemoryMappings(), 1);
  retired_.clear();
  EXPECT_EQ(CountMemoryMappings(), 0);
}

TEST_F(SharedRegionTest, LanesOfOneDeviceWaitForOneRegistration) {
  const auto region = MapWhole(kPageBytes);
  std::vector<std::shared_ptr<const HostRegistration>> seen(8);
  std::vector<std::thread> lanes;
  for (auto& registration : seen) {
    lanes.emplace_back([&] {
      ASSERT_TRUE(devices_[0]->BindThisThread().ok());
      registration = *RegistrationOn(*region, 0);
    });
  }
  for (std::thread& lane : lanes) lane.join();
  for (const auto& registration : seen) {
    EXPECT_NE(registration, nullptr);
    EXPECT_EQ(registration, seen[0]);
  }
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 1);
}

TEST_F(SharedRegionTest, WhatADeviceCannotMapIsNotAskedForAgainUntilItsReset) {
  const auto region = MapWhole(kPageBytes);
  InjectFaults("call=aclrtHostRegister,code=207000");
  for (int i = 0; i < 3; ++i) {
    const auto registration = RegistrationOn(*region, 0);
    ASSERT_TRUE(registration.ok()) << registration.status();
    EXPECT_EQ(*registration, nullptr);
  }
  ASSERT_TRUE(devices_[0]->Reset().ok());
  EXPECT_NE(*RegistrationOn(*region, 0), nullptr);
}

TEST_F(SharedRegionTest, AnAbiThatCannotMapHostMemoryIsCopiedTo) {
  acl_.aclrtHostRegister = nullptr;
  const auto registration = RegistrationOn(*MapWhole(kPageBytes), 0);
  ASSERT_TRUE(registration.ok()) << registration.status();
  EXPECT_EQ(*registration, nullptr);
}

TEST_F(SharedRegionTest, ALostDeviceIsAnErrorAndNotRemembered) {
  const auto region = MapWhole(kPageBytes);
  InjectFaults("call=aclrtHostRegister,code=507010");
  EXPECT_EQ(RegistrationOn(*region, 0).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(*RegistrationOn(*region, 0), nullptr);
}

TEST_F(SharedRegionTest, ARegistrationIsVoidAfterTheDevicesReset) {
  auto region = MapWhole(kPageBytes);
  const auto before = *RegistrationOn(*region, 0);
  ASSERT_TRUE(devices_[0]->Reset().ok());
  EXPECT_TRUE(before->is_void());
  const auto after = *RegistrationOn(*region, 0);
  EXPECT_NE(after, before);
  EXPECT_FALSE(after->is_void());
  EXPECT_EQ(HostCount(OPSERVE_HOST_REGISTERED_REGIONS), 1);
}

TEST_F(SharedRegionTest, WhatADeviceKeepsGoesWithItsReset) {
  auto region = MapWhole(kPageBytes);
  devices_[0]->KeepUntilReset(*RegistrationOn(*region, 0));
  region.reset();
  retired_.clear();
  EXPECT_EQ(CountMemoryMappings(), 1);
  ASSERT_TRUE(devices_[0]->Reset().ok());
  EXPECT_EQ(CountMemoryMappings(), 0);
}

TEST_F(SharedRegionTest, InPlaceAreAlignedRangesWithMappedMemoryBehindThem) {
  const auto mapping = MappingOf(*MapWhole(kPageBytes + 10));  // two pages
  EXPECT_TRUE(mapping->FitsInPlace(0, kPageBytes));
  EXPECT_TRUE(mapping->FitsInPlace(32, 10));
  EXPECT_TRUE(mapping->FitsInPlace(0, kPageBytes + 10));
  for (const uint64_t offset : {1, 4, 16, 31, 33}) EXPECT_FALSE(mapping->FitsInPlace(offset, 4));
  const auto whole = MappingOf(*MapWhole(kPageBytes));
  EXPECT_TRUE(whole->FitsInPlace(0, kPageBytes - 32));
  EXPECT_FALSE(whole->FitsInPlace(0, kPageBytes - 31));
  EXPECT_FALSE(whole->FitsInPlace(0, kPageBytes));
}

// Clients of other protocols make files that just fit, and choose any offset.
TEST_F(SharedRegionTest, AShrinkableRegionLiesAnywhereAndHasRoomBehindIt) {
  const FileDescriptor file = MemoryFile(2 * kPageBytes, /*seals=*/0);
  ASSERT_EQ(pwrite(file.get(), "middle", 6, kPageBytes - 4), 6);
  const auto region = MapShrinkable(file, {.offset = kPageBytes - 4, .size = kPageBytes + 4});
  EXPECT_TRUE(region->may_shrink());
  const auto mapping = MappingOf(*region);
  EXPECT_EQ(std::string(mapping->data(), 6), "middle");
  EXPECT_TRUE(mapping->FitsInPlace(4, kPageBytes));  // the file's last page, whole
  EXPECT_FALSE(mapping->FitsInPlace(0, 4));          // as addresses count
  std::memcpy(mapping->data(), "MIDDLE", 6);
  char bytes[6];
  ASSERT_EQ(pread(file.get(), bytes, 6, kPageBytes - 4), 6);
  EXPECT_EQ(std::string(bytes, 6), "MIDDLE");
}

TEST_F(SharedRegionTest, WhatIsMissingIsToldToThoseWhoUseIt) {
  constexpr uint64_t kBytes = 3 * kPageBytes;
  const FileDescriptor file = MemoryFile(kBytes, /*seals=*/0);
  const auto region = MapShrinkable(file, {.size = kBytes});
  const auto mapping = MappingOf(*region);
  EXPECT_TRUE(region->CheckIntact(*mapping, kBytes).ok());
  ASSERT_EQ(ftruncate(file.get(), kPageBytes), 0);
  // Nobody has looked yet.
  for (const absl::Status& status :
       {region->CheckIntact(*mapping, kBytes), region->MappingOf(kBytes).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(), "the shared memory has become smaller");
  }
  EXPECT_TRUE(region->CheckIntact(*mapping, kPageBytes).ok());
  EXPECT_EQ(*region->MappingOf(kPageBytes), mapping);
  // Whoever looks finds zeros, and that stays known when the file is large again.
  EXPECT_EQ(mapping->data()[kPageBytes], 0);
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);
  EXPECT_FALSE(region->CheckIntact(*mapping, kBytes).ok());
  EXPECT_FALSE(region->CheckIntact(*mapping, kPageBytes + 1).ok());
  EXPECT_TRUE(region->CheckIntact(*mapping, kPageBytes).ok());
}

TEST_F(SharedRegionTest, AFileThatIsLargeAgainIsMappedAgain) {
  constexpr uint64_t kBytes = 2 * kPageBytes;
  const FileDescriptor file = MemoryFile(kBytes, /*seals=*/0);
  const auto region = MapShrinkable(file, {.size = kBytes});
  const auto torn = MappingOf(*region);
  const auto registration = *RegistrationOn(*region, 0);
  ASSERT_EQ(ftruncate(file.get(), 0), 0);
  torn->data()[0] = 'x';  // goes astray
  ASSERT_EQ(ftruncate(file.get(), kBytes), 0);

  const auto fresh = MappingOf(*region);
  EXPECT_NE(fresh, torn);
  EXPECT_EQ(MappingOf(*region), fresh);
  EXPECT_EQ(fresh->data()[0], 0);
  fresh->data()[0] = 'y';
  char byte = 0;
  ASSERT_EQ(pread(file.get(), &byte, 1, 0), 1);
  EXPECT_EQ(byte, 'y');
  EXPECT_TRUE(region->CheckIntact(*fresh, kBytes).ok());
  EXPECT_FALSE(region->CheckIntact(*torn, kBytes).ok());
  // The device lets go of the old one.
  ASSERT_EQ(retired_.size(), 1u);
  EXPECT_EQ(retired_[0].second, registration);
  EXPECT_NE(*RegistrationOn(*region, 0), registration);
  EXPECT_EQ(*RegistrationOn(*region, 0), *RegistrationOn(*region, 0));
  // One that uses the torn mapping still can have it shown, and keeps it alone.
  ASSERT_TRUE(devices_[1]->BindThisThread().ok());
  const auto late = *region->RegistrationOn(*devices_[1], torn, absl::InfiniteFuture());
  EXPECT_EQ(late.use_count(), 1);
}

TEST_F(SharedRegionTest, PartsWithCommonBytesAreFoundWhateverRegionShowsThem) {
  const FileDescriptor file = SealedFile(4 * kPageBytes);
  const auto a = *Map(file.get(), {.offset = 0, .size = 2 * kPageBytes});
  const auto b = *Map(file.get(), {.offset = kPageBytes, .size = 2 * kPageBytes});
  const auto other = MapWhole(4 * kPageBytes);
  const struct {
    const char* name;
    FilePart one, another;
    bool do_overlap;
  } kCases[] = {
      {"the last byte", a->PartOf(0, 10), a->PartOf(9, 10), true},
      {"side by side", a->PartOf(0, 10), a->PartOf(10, 10), false},
      {"inside", a->PartOf(0, 100), a->PartOf(10, 10), true},
      {"of two regions", a->PartOf(kPageBytes + 9, 1), b->PartOf(0, 10), true},
      {"of two regions, side by side", a->PartOf(kPageBytes + 10, 1), b->PartOf(0, 10), false},
      {"at the same offset of two regions", a->PartOf(0, 10), b->PartOf(0, 10), false},
      {"of two files", a->PartOf(0, 10), other->PartOf(0, 10), false},
      {"without bytes", a->PartOf(5, 0), a->PartOf(0, 10), false},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.name);
    for (const auto& [added, asked] : {std::pair(c.one, c.another), std::pair(c.another, c.one)}) {
      FileParts parts;
      EXPECT_FALSE(parts.Overlap(asked));
      parts.Add(added);
      EXPECT_EQ(parts.Overlap(asked), c.do_overlap);
    }
  }
}

// Beside a set of bytes that is plainly right.
TEST(FilePartsTest, RandomPartsOverlapAsTheirBytesDo) {
  std::mt19937 random(TestSeed());
  const auto below = [&random](uint64_t most) { return random() % most; };
  for (int round = 0; round < 200; ++round) {
    FileParts parts;
    bool bytes[2][200] = {};  // by file
    for (int i = 0; i < 30; ++i) {
      const uint64_t file = below(2);
      const uint64_t begin = below(180);
      const FilePart part = {.inode = file, .begin = begin, .end = begin + below(20)};
      bool* const first = bytes[file] + part.begin;
      bool* const last = bytes[file] + part.end;
      ASSERT_EQ(parts.Overlap(part), std::find(first, last, true) != last) << round << ", " << i;
      if (below(2) == 0) continue;
      parts.Add(part);
      std::fill(first, last, true);
    }
  }
}

}  // namespace
}  // namespace opserve::server
