// What may be registered as shared memory, and by whom.
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/requests.h"
#include "tests/integration/shared_memory_calls.h"
#include "tests/integration/shared_memory_requests.h"
#include "tests/process_memory.h"

namespace opserve::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_SEAL;

absl::StatusCode CodeOf(const v1::SharedMemoryResponse& response) {
  return static_cast<absl::StatusCode>(response.error().code());
}
std::string ReasonIn(const v1::SharedMemoryResponse& response) {
  return DetailOf(response.error()).reason();
}

int64_t OpenDescriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

std::vector<uint64_t> Ids(const v1::SharedMemoryResponse& response) {
  std::vector<uint64_t> ids;
  for (const v1::SharedRegionStatus& region : response.regions()) ids.push_back(region.region());
  return ids;
}

class RegistrationTest : public ::testing::Test {
 protected:
  // The daemon has accepted the connection.
  void SetUp() override { EXPECT_FALSE(socket_.List().has_error()); }

  InProcessDaemon daemon_{WithSharedMemory()};
  SharedMemorySocket socket_{daemon_.target()};
};

TEST_F(RegistrationTest, ASealedMemoryFileIsTaken) {
  const v1::SharedMemoryResponse response = socket_.Register({.id = 7, .size = 5000});
  EXPECT_FALSE(response.has_error()) << response.DebugString();
  EXPECT_EQ(response.connection().size(), 16u);
  EXPECT_THAT(Ids(socket_.List()), ElementsAre(7));
  EXPECT_FALSE(socket_.Unregister(7).has_error());
  EXPECT_THAT(Ids(socket_.List()), ElementsAre());
  EXPECT_EQ(CodeOf(socket_.Unregister(7)), absl::StatusCode::kNotFound);
}

TEST_F(RegistrationTest, EveryConnectionHasAKeyOfItsOwn) {
  SharedMemorySocket other(daemon_.target());
  socket_.List();
  other.List();
  EXPECT_EQ(socket_.key().size(), 16u);
  EXPECT_NE(socket_.key(), other.key());
}

// S1. The socket does not exist, and tensors in shared memory are refused, before anything is
// looked at.
TEST(SharedMemoryIsOffTest, ByDefault) {
  InProcessDaemon daemon;
  EXPECT_FALSE(std::filesystem::exists(daemon.target().substr(5) + ".shm"));
  Request request = OnesRequest(10);
  request.destinations = {SharedRange{.connection = std::string(16, 'k'), .size = 40}};
  const absl::Status refused = daemon.client().Execute(request).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReasonOf(refused), "shm_disabled");
  EXPECT_EQ(
      MetricValue(daemon.daemon(), "opserve_shm_rejections_total", {{"reason", "shm_disabled"}}),
      1);
}

TEST(SharedMemoryIsOffTest, OverTcp) {
  Config config = WithSharedMemory();
  config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
  InProcessDaemon daemon(config);
  const auto memory = *SharedMemory::Open(daemon.target());
  const auto region = *memory->CreateRegion(4096);
  const auto client = *Client::Connect(daemon.daemon().addresses()[1]);
  Request request = OnesRequest(10);
  for (const SharedRange& range : {region->Range(0, 40), SharedRange{.size = 40}}) {
    request.destinations = {range};
    const absl::Status refused = client->Execute(request).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
    EXPECT_EQ(ReasonOf(refused), "forbidden");
  }
}

TEST(SharedMemoryIsOffTest, OnADaemonThatIsNotReachedByUnixSockets) {
  config::ServerConfig values;
  values.set_enable_shm(true);
  values.add_listen("127.0.0.1:0");
  EXPECT_THAT(std::string(ConfigFrom(values).status().message()), HasSubstr("Unix socket"));
  values.set_admin_listen("none");
  values.set_listen(0, absl::StrCat("unix:/", std::string(105, 'p')));
  EXPECT_THAT(std::string(ConfigFrom(values).status().message()), HasSubstr("enable_shm"));
  values.set_listen(0, "unix:/run/x.sock");
  EXPECT_TRUE(ConfigFrom(values).ok());
}

// S2.
TEST(SharedMemoryMessagesTest, NothingIsRegisteredByANameAPathOrAKey) {
  const google::protobuf::Descriptor& message = *v1::RegisterRegion::descriptor();
  for (int i = 0; i < message.field_count(); ++i) {
    EXPECT_THAT(message.field(i)->cpp_type(),
                ::testing::AnyOf(google::protobuf::FieldDescriptor::CPPTYPE_UINT64,
                                 google::protobuf::FieldDescriptor::CPPTYPE_BOOL))
        << message.field(i)->name();
  }
}

TEST_F(RegistrationTest, TheSocketIsForItsOwnerAndGroup) {
  const auto status = std::filesystem::status(daemon_.target().substr(5) + ".shm");
  EXPECT_EQ(status.type(), std::filesystem::file_type::socket);
  EXPECT_EQ(static_cast<int>(status.permissions()), 0660);
}

// S3 and S4.
TEST_F(RegistrationTest, OtherFilesAreRefused) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets), 0);
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  char disk_file[] = "/var/tmp/opserve-test-XXXXXX";
  struct Case {
    const char* name;
    FileDescriptor fd;
  };
  std::vector<Case> cases;
  const auto add = [&cases](const char* name, int fd) {
    cases.push_back({name, FileDescriptor(fd)});
  };
  add("socket", sockets[0]);
  add("socket", sockets[1]);
  add("pipe", pipes[0]);
  add("pipe", pipes[1]);
  add("device", open("/dev/zero", O_RDWR | O_CLOEXEC));
  add("directory", open("/tmp", O_RDONLY | O_CLOEXEC));
  add("disk file", mkstemp(disk_file));
  ASSERT_EQ(ftruncate(cases.back().fd.get(), kPageBytes), 0);
  unlink(disk_file);
  add("/proc", open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  add("/proc/self/mem", open("/proc/self/mem", O_RDWR | O_CLOEXEC));
  add("eventfd", eventfd(0, EFD_CLOEXEC));
  add("path", open("/tmp", O_PATH | O_CLOEXEC));
  cases.push_back({"no seals", MemoryFile(kPageBytes, 0)});
  cases.push_back({"may shrink", MemoryFile(kPageBytes, F_SEAL_SEAL | F_SEAL_GROW)});
  cases.push_back({"seals may be added", MemoryFile(kPageBytes, F_SEAL_SHRINK)});
  if (const int huge = memfd_create("huge", MFD_HUGETLB | MFD_ALLOW_SEALING | MFD_CLOEXEC);
      huge >= 0) {
    add("huge pages", huge);
    fcntl(huge, F_ADD_SEALS, kSeals);
  }
  const int64_t before = OpenDescriptors();
  for (const Case& c : cases) {
    ASSERT_GE(c.fd.get(), 0) << c.name;
    const v1::SharedMemoryResponse response = socket_.Register({}, c.fd.get());
    EXPECT_EQ(CodeOf(response), absl::StatusCode::kInvalidArgument) << c.name;
    EXPECT_EQ(ReasonIn(response), "shm_invalid") << c.name;
  }
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_THAT(Ids(socket_.List()), ElementsAre());
}

// S5.
TEST_F(RegistrationTest, PartsThatAreNotInTheFileAreRefused) {
  const FileDescriptor fd = SealedFile(3 * kPageBytes);
  const int64_t before = OpenDescriptors();
  constexpr uint64_t kHalf = uint64_t{1} << 63;
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0},
           {kPageBytes, 0},
           {1, kPageBytes},
           {kPageBytes / 2, kPageBytes},
           {0, 3 * kPageBytes + 1},
           {kPageBytes, 2 * kPageBytes + 1},
           {3 * kPageBytes, 1},
           {4 * kPageBytes, kPageBytes},
           {0, kHalf},
           {0, UINT64_MAX},
           {kHalf, kHalf},
           {kPageBytes, UINT64_MAX - kPageBytes + 1},
           {UINT64_MAX - kPageBytes + 1, kPageBytes},
           {UINT64_MAX - kPageBytes + 1, 2 * kPageBytes},
       }) {
    const auto response = socket_.Register({.offset = offset, .size = size}, fd.get());
    EXPECT_EQ(CodeOf(response), absl::StatusCode::kInvalidArgument) << offset << " " << size;
    EXPECT_EQ(ReasonIn(response), "shm_invalid") << offset << " " << size;
  }
  EXPECT_FALSE(socket_.Register({.offset = 2 * kPageBytes, .size = 1}, fd.get()).has_error());
  EXPECT_EQ(OpenDescriptors(), before);
}

// S6.
TEST(SharedMemoryQuotaTest, ATenantHasSoManyBytesAndRegions) {
  Config config = WithSharedMemory();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(tenant { name: "t" shared_memory { hard_bytes: 10000 max_regions: 3 } }
         anonymous_tenant: "t")",
      &config.values));
  config.tenants = *TenantsFrom(config.values);
  InProcessDaemon daemon(config);
  SharedMemorySocket socket(daemon.target());
  SharedMemorySocket other(daemon.target());
  const auto expect_full = [](const v1::SharedMemoryResponse& response) {
    EXPECT_EQ(CodeOf(response), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(ReasonIn(response), "tenant_memory");
    EXPECT_EQ(DetailOf(response.error()).retry_pushback_ms(), -1);
  };

  expect_full(socket.Register({.id = 1, .size = 10001}));
  EXPECT_FALSE(socket.Register({.id = 1, .size = 9000}).has_error());
  expect_full(other.Register({.id = 1, .size = 1001}));
  EXPECT_FALSE(other.Register({.id = 1, .size = 1}).has_error());
  EXPECT_FALSE(other.Register({.id = 2, .size = 1}).has_error());
  expect_full(socket.Register({.id = 2, .size = 1}));
  // What is unregistered is there for others at once.
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(socket.Unregister(1).has_error());
    EXPECT_FALSE(socket.Register({.id = 1, .size = 9998}).has_error());
  }
  other.Close();
  EXPECT_TRUE(Await([&] { return !socket.Register({.id = 3, .size = 2}).has_error(); }));
}

// S7.
TEST_F(RegistrationTest, AnIdIsTakenOnce) {
  SharedMemorySocket other(daemon_.target());
  EXPECT_FALSE(socket_.Register({.id = 5}).has_error());
  EXPECT_EQ(CodeOf(socket_.Register({.id = 5})), absl::StatusCode::kAlreadyExists);
  EXPECT_FALSE(other.Register({.id = 5}).has_error());
  EXPECT_FALSE(socket_.Unregister(5).has_error());
  EXPECT_FALSE(socket_.Register({.id = 5}).has_error());
}

// S10, of the file itself.
TEST_F(RegistrationTest, WhatMayNotBeWrittenToCanBeReadOnly) {
  const FileDescriptor fd = SealedFile(kPageBytes);
  const FileDescriptor read_only = ReadOnly(fd);
  const auto refused = socket_.Register({.id = 1}, read_only.get());
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonIn(refused), "forbidden");
  EXPECT_FALSE(socket_.Register({.id = 1, .read_only = true}, read_only.get()).has_error());
}

// S12. The seal is what keeps the daemon from dying of SIGBUS.
TEST_F(RegistrationTest, AFileThatIsRegisteredCannotShrink) {
  const FileDescriptor fd = SealedFile(4 * kPageBytes);
  EXPECT_FALSE(socket_.Register({.id = 1, .size = 4 * kPageBytes}, fd.get()).has_error());
  EXPECT_NE(ftruncate(fd.get(), 0), 0);
  EXPECT_NE(ftruncate(fd.get(), kPageBytes), 0);
  // Holes are zeros.
  EXPECT_EQ(fallocate(fd.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4 * kPageBytes), 0);
  Request request = OnesRequest(10);
  const SharedRange range{.connection = socket_.key(), .region = 1, .offset = 64, .size = 40};
  request.invocations[0].inputs[2].value = SharedTensor{v1::DATA_TYPE_FLOAT, {10}, range};
  EXPECT_TRUE(IsAllOnes(daemon_.client().Execute(request), 10));
}

// S16.
TEST_F(RegistrationTest, FailuresLeaveNothingBehind) {
  const FileDescriptor good = SealedFile(kPageBytes);
  const FileDescriptor bad = MemoryFile(kPageBytes, 0);
  const auto fail = [&](int i) {
    switch (i % 4) {
      case 0:
        return socket_.Register({}, bad.get());
      case 1:
        return socket_.Register({.size = 2 * kPageBytes}, good.get());
      case 2:
        return socket_.Send("\xff\xff", {good.get(), bad.get()});
      default:
        return socket_.Register({.id = 99}, good.get());
    }
  };
  EXPECT_FALSE(socket_.Register({.id = 99}, good.get()).has_error());
  for (int i = 0; i < 1000; ++i) fail(i);  // what is allocated once
  const int64_t descriptors = OpenDescriptors();
  const int64_t resident = ResidentBytesOf(getpid());
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(fail(i).has_error());
  EXPECT_EQ(OpenDescriptors(), descriptors);
  if (kMemoryTells) {
    EXPECT_LE(ResidentBytesOf(getpid()) - resident, 1 << 20);
  }
  EXPECT_THAT(Ids(socket_.List()), ElementsAre(99));
  EXPECT_EQ(
      MetricValue(daemon_.daemon(), "opserve_shm_rejections_total", {{"reason", "shm_invalid"}}),
      11'000);
}

// S17.
TEST_F(RegistrationTest, AListHasTheOwnRegionsAndNothingOfTheSystem) {
  SharedMemorySocket other(daemon_.target());
  socket_.Register({.id = 1, .size = 100});
  socket_.Register({.id = 1 << 20, .size = 5000, .read_only = true});
  other.Register({.id = 3});
  const v1::SharedMemoryResponse list = socket_.List();
  EXPECT_THAT(Ids(list), ElementsAre(1, 1 << 20));
  EXPECT_EQ(list.regions(0).size(), 100u);
  EXPECT_EQ(list.regions(1).size(), 5000u);
  EXPECT_TRUE(list.regions(1).read_only());
  EXPECT_THAT(Ids(other.List()), ElementsAre(3));
  EXPECT_EQ(v1::SharedRegionStatus::descriptor()->field_count(), 3);
}

TEST_F(RegistrationTest, MalformedPacketsAreAnsweredAndHarmless) {
  const FileDescriptor fd = SealedFile(kPageBytes);
  const std::vector<int> many(10, fd.get());
  const int64_t before = OpenDescriptors();
  v1::SharedMemoryRequest list;
  list.mutable_list_regions();
  const std::string list_bytes = list.SerializeAsString();
  v1::SharedMemoryRequest registration;
  registration.mutable_register_region()->set_size(1);
  const std::string registration_bytes = registration.SerializeAsString();
  SharedMemorySocket fresh(daemon_.target());
  for (SharedMemorySocket* const socket : {&fresh, &socket_}) {
    for (const auto& [packet, descriptors] : std::vector<std::pair<std::string, std::vector<int>>>{
             {"\xff\xff\xff", {}},
             {std::string(4096, 'x'), {}},
             {std::string(5000, '\n'), {}},
             {std::string(5000, '\n'), {fd.get()}},
             {registration_bytes, {}},
             {registration_bytes, {fd.get(), fd.get()}},
             {registration_bytes, many},
             {list_bytes, {fd.get()}},
         }) {
      const auto response = socket->Send(packet, descriptors);
      EXPECT_EQ(CodeOf(response), absl::StatusCode::kInvalidArgument) << packet.substr(0, 10);
      EXPECT_FALSE(socket->is_closed());
    }
    EXPECT_FALSE(socket->Send(list).has_error());
  }
  EXPECT_EQ(OpenDescriptors(), before + 2) << "both ends of the fresh connection";
}

TEST(SharedMemoryTenantsTest, AConnectionBelongsToTheTenantOfItsFirstRequest) {
  Config config = WithSharedMemory();
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(
      absl::StrCat(R"(tenant { name: "user" uid: )", geteuid(), R"( }
         tenant { name: "a" token_sha256:
                    "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" })"),
      &config.values));
  config.tenants = *TenantsFrom(config.values);
  InProcessDaemon daemon(config);
  const auto bytes = [&](const char* tenant) {
    return MetricValue(daemon.daemon(), "opserve_shm_bytes", {{"tenant", tenant}});
  };

  SharedMemorySocket by_uid(daemon.target());
  EXPECT_FALSE(by_uid.Register({.id = 1, .size = 11}).has_error());
  EXPECT_EQ(bytes("user"), 11);
  SharedMemorySocket by_token(daemon.target());
  EXPECT_FALSE(by_token.Register({.id = 1, .size = 22, .token = "a"}).has_error());
  EXPECT_EQ(bytes("a"), 22);
  EXPECT_EQ(CodeOf(by_token.Register({.id = 2, .token = "a"})), absl::StatusCode::kInvalidArgument);

  SharedMemorySocket stranger(daemon.target());
  const auto refused = stranger.Register({.id = 1, .token = "guess"});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kUnauthenticated);
  EXPECT_TRUE(refused.connection().empty());
  stranger.List();
  EXPECT_TRUE(stranger.is_closed());
}

TEST(SharedMemoryConnectionsTest, TheirNumberIsBounded) {
  Config config = WithSharedMemory();
  config.max_connections = 4;
  config.max_connections_per_user = 4;
  InProcessDaemon daemon(config);
  std::vector<std::unique_ptr<SharedMemorySocket>> sockets;
  for (int i = 0; i < 4; ++i) {
    sockets.push_back(std::make_unique<SharedMemorySocket>(daemon.target()));
    EXPECT_FALSE(sockets.back()->Register({.id = 1}).has_error());
  }
  SharedMemorySocket refused(daemon.target());
  refused.List();
  EXPECT_TRUE(refused.is_closed());
  sockets.pop_back();
  EXPECT_TRUE(Await([&] {
    SharedMemorySocket next(daemon.target());
    next.List();
    return !next.is_closed();
  }));
  EXPECT_FALSE(sockets[0]->List().has_error());
}

// A peer that takes no answers is disconnected, and keeps nobody waiting.
TEST_F(RegistrationTest, APeerThatReadsNothingHarmsNobody) {
  SharedMemorySocket lazy(daemon_.target());
  v1::SharedMemoryRequest list;
  list.mutable_list_regions();
  const std::string packet = list.SerializeAsString();
  int error = 0;
  EXPECT_TRUE(Await([&] {
    EXPECT_FALSE(socket_.List().has_error());
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    error = send(lazy.fd(), packet.data(), packet.size(), flags) < 0 ? errno : 0;
    return error != 0 && error != EAGAIN;
  }));
  EXPECT_THAT(error, ::testing::AnyOf(EPIPE, ECONNRESET));
}

}  // namespace
}  // namespace opserve::server
