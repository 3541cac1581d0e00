// Files that are read while other programs write them.
#include "server/config/read_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

std::string Path() { return testing::TempDir() + "/read_file_test"; }

void Append(const std::string& path, const std::string& text, int flags) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | flags, 0600);
  ASSERT_GE(descriptor, 0);
  ASSERT_EQ(write(descriptor, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  close(descriptor);
}

TEST(ReadFileTest, AFileIsReadWhole) {
  for (const size_t size : {0u, 1u, 100000u}) {
    std::ofstream(Path(), std::ios::trunc) << std::string(size, 'x');
    const auto text = ReadFileAtRest(Path());
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_EQ(*text, std::string(size, 'x'));
  }
}

// What other programs do happens while the reader waits for the file to come to rest.
TEST(ReadFileTest, AFileThatIsBeingWrittenIsReadAgain) {
  Append(Path(), "", O_TRUNC);
  int waits = 0;
  const auto text = ReadFileAtRest(Path(), [&waits](absl::Duration) {
    if (++waits <= 3) Append(Path(), "part ", O_APPEND);
  });
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "part part part ");
  EXPECT_EQ(waits, 4);
}

TEST(ReadFileTest, AFileThatIsReplacedIsReadAnew) {
  const std::string next = Path() + ".next";
  Append(Path(), "old", O_TRUNC);
  Append(next, "new", O_TRUNC);
  const auto text = ReadFileAtRest(Path(), [&next](absl::Duration) {
    std::error_code there_is_none;
    std::filesystem::rename(next, Path(), there_is_none);
  });
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "new");
}

TEST(ReadFileTest, AFileThatNeverRestsIsRefused) {
  Append(Path(), "", O_TRUNC);
  absl::Duration waited;
  const absl::Status status = ReadFileAtRest(Path(), [&waited](absl::Duration wait) {
                                waited += wait;
                                Append(Path(), "x", O_APPEND);
                              }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(status.message()), HasSubstr("written all the time"));
  EXPECT_LE(waited, absl::Seconds(5));
}

TEST(ReadFileTest, AFileThatHasBeenAtRestIsNotWaitedFor) {
  Append(Path(), "old", O_TRUNC);
  std::filesystem::last_write_time(
      Path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  const auto text =
      ReadFileAtRest(Path(), [](absl::Duration wait) { EXPECT_EQ(wait, absl::ZeroDuration()); });
  EXPECT_EQ(*text, "old");
}

TEST(ReadFileTest, WhatIsNoFileIsReadOnceOrRefused) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "piped", 5), 5);
  close(ends[1]);
  const auto text = ReadFileAtRest("/dev/fd/" + std::to_string(ends[0]));
  close(ends[0]);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, "piped");
  for (const char* path : {"/nonexistent", "/"}) {
    EXPECT_EQ(ReadFileAtRest(path).status().code(), absl::StatusCode::kNotFound) << path;
  }
}

}  // namespace
}  // namespace opserve::server
