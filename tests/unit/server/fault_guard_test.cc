#include "server/shared_memory/fault_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/unit/server/shared_files.h"

namespace opserve::server {
namespace {

// A file of so many pages, mapped.
class MappedFile {
 public:
  explicit MappedFile(uint64_t pages)
      : bytes_(pages * kPageBytes), file_(MemoryFile(bytes_, /*seals=*/0)) {
    data_ = static_cast<char*>(
        mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0));
  }
  ~MappedFile() { munmap(data_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  volatile char* data() const { return data_; }
  char* begin() const { return data_; }
  uint64_t bytes() const { return bytes_; }
  void CutTo(uint64_t pages) const {
    ASSERT_EQ(ftruncate(file_.get(), static_cast<off_t>(pages * kPageBytes)), 0);
  }

 private:
  const uint64_t bytes_;
  const FileDescriptor file_;
  char* data_ = nullptr;
};

TEST(FaultGuardTest, MissingBytesAreZerosAndItTells) {
  const MappedFile file(4);
  const FaultGuard guard(file.begin(), file.bytes());
  file.data()[0] = 'a';
  file.data()[3 * kPageBytes] = 'd';
  EXPECT_EQ(guard.intact_bytes(), 4 * kPageBytes);
  file.CutTo(1);
  EXPECT_EQ(guard.intact_bytes(), 4 * kPageBytes) << "nobody has looked";
  EXPECT_EQ(file.data()[3 * kPageBytes + 5], 0);
  EXPECT_EQ(guard.intact_bytes(), 3 * kPageBytes);
  file.data()[kPageBytes] = 'x';  // a write needs no file either
  EXPECT_EQ(guard.intact_bytes(), kPageBytes);
  EXPECT_EQ(file.data()[0], 'a');
  // That the file has its bytes again does not make them have been there.
  file.CutTo(4);
  EXPECT_EQ(guard.intact_bytes(), kPageBytes);
}

TEST(FaultGuardTest, EachRangeIsItsOwn) {
  const MappedFile whole(2);
  const MappedFile cut(2);
  const FaultGuard guard_of_whole(whole.begin(), whole.bytes());
  const FaultGuard guard_of_cut(cut.begin(), cut.bytes());
  whole.data()[kPageBytes] = 'w';
  cut.CutTo(0);
  EXPECT_EQ(cut.data()[0], 0);
  EXPECT_EQ(guard_of_cut.intact_bytes(), 0u);
  EXPECT_EQ(guard_of_whole.intact_bytes(), 2 * kPageBytes);
  EXPECT_EQ(whole.data()[kPageBytes], 'w');
}

// As many ranges as there are at a time, over and over: each begins anew.
TEST(FaultGuardTest, RangesComeAndGo) {
  for (int round = 0; round < 100; ++round) {
    const MappedFile file(1);
    const FaultGuard guard(file.begin(), file.bytes());
    EXPECT_EQ(guard.intact_bytes(), kPageBytes);
    file.CutTo(0);
    EXPECT_EQ(file.data()[0], 0);
    EXPECT_EQ(guard.intact_bytes(), 0u);
  }
}

// Threads run into the same holes at once, while ranges come and go beside them.
TEST(FaultGuardTest, ThreadsFaultAtTheSameTime) {
  constexpr uint64_t kPages = 64;
  for (int round = 0; round < 20; ++round) {
    const MappedFile file(kPages);
    const FaultGuard guard(file.begin(), file.bytes());
    file.CutTo(0);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        // From the end, so that each page is a fault of its own.
        for (uint64_t page = kPages; page-- > 0;) {
          if (i % 2 == 0) {
            file.data()[page * kPageBytes + static_cast<uint64_t>(i)] = 'x';
          } else {
            static_cast<void>(file.data()[page * kPageBytes + static_cast<uint64_t>(i)]);
          }
        }
      });
    }
    threads.emplace_back([] {
      for (int i = 0; i < 50; ++i) {
        const MappedFile other(1);
        const FaultGuard guard_of_other(other.begin(), other.bytes());
        EXPECT_EQ(guard_of_other.intact_bytes(), kPageBytes);
      }
    });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(guard.intact_bytes(), 0u);
  }
}

TEST(FaultGuardDeathTest, OtherFaultsEndTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const MappedFile guarded(1);
  const FaultGuard guard(guarded.begin(), guarded.bytes());
  const MappedFile file(1);
  file.CutTo(0);
  EXPECT_DEATH(file.data()[0] = 'x', "");
  // Also where a range was, and signals that were sent.
  EXPECT_DEATH(
      {
        std::optional<FaultGuard> ended(std::in_place, file.begin(), file.bytes());
        ended.reset();
        file.data()[0] = 'x';
      },
      "");
  EXPECT_DEATH(kill(getpid(), SIGBUS), "");
}

}  // namespace
}  // namespace opserve::server
