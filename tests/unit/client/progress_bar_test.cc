#include "client/cli/text/progress_bar.h"

#include <sstream>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/bytes.h"

namespace opserve::cli {
namespace {

using testing::EndsWith;
using testing::IsEmpty;

class ProgressBarTest : public testing::Test {
 protected:
  // What is written by a bar that is told of these times after its start, a quarter further each.
  std::string Show(std::vector<absl::Duration> times, bool is_terminal, size_t width = 70) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{.out = out, .err = err, .width = width, .err_is_terminal = is_terminal};
    const absl::Time start = absl::FromUnixSeconds(1700000000);
    ProgressBar bar(terminal, "upload", start);
    uint64_t done = 0;
    for (const absl::Duration time : times) bar.Update(done += 2 * kMiB, 8 * kMiB, start + time);
    return err.str();
  }
};

TEST_F(ProgressBarTest, ALongTransferIsShown) {
  EXPECT_EQ(Show({absl::Seconds(2)}, /*is_terminal=*/true),
            "\r\x1b[Kupload  25 %  2 MiB of 8 MiB  1 MiB/s  [#######                     ]");
  EXPECT_EQ(Show({absl::ZeroDuration(), absl::Seconds(4)}, /*is_terminal=*/true),
            "\r\x1b[Kupload  50 %  4 MiB of 8 MiB  1 MiB/s  [##############              ]");
}

TEST_F(ProgressBarTest, AShortOneIsNot) {
  EXPECT_THAT(Show({absl::ZeroDuration(), absl::Milliseconds(999)}, /*is_terminal=*/true),
              IsEmpty());
}

TEST_F(ProgressBarTest, NorOneThatIsNotWatched) {
  EXPECT_THAT(Show({absl::Seconds(2)}, /*is_terminal=*/false), IsEmpty());
}

TEST_F(ProgressBarTest, IsWrittenOverAtMostTenTimesASecond) {
  const std::string once = Show({absl::Seconds(2)}, /*is_terminal=*/true);

  EXPECT_EQ(Show({absl::Seconds(2), absl::Seconds(2) + absl::Milliseconds(99)},
                 /*is_terminal=*/true),
            once);
  EXPECT_GT(Show({absl::Seconds(2), absl::Seconds(2) + absl::Milliseconds(100)},
                 /*is_terminal=*/true)
                .size(),
            once.size());
}

TEST_F(ProgressBarTest, FitsANarrowTerminal) {
  EXPECT_EQ(Show({absl::Seconds(2)}, /*is_terminal=*/true, /*width=*/40),
            "\r\x1b[Kupload  25 %  2 MiB of 8 MiB  1 MiB/s");
  EXPECT_EQ(Show({absl::Seconds(2)}, /*is_terminal=*/true, /*width=*/20),
            "\r\x1b[Kupload  25 %  2 MiB");
}

TEST_F(ProgressBarTest, ShowsWhateverFactsThereAre) {
  std::ostringstream out;
  std::ostringstream err;
  Terminal terminal{.out = out, .err = err, .width = 50, .err_is_terminal = true};
  ProgressBar bar(terminal, "load", absl::UnixEpoch());
  bar.Update(0.5, "12 answered", absl::UnixEpoch() + absl::Seconds(2));
  EXPECT_EQ(err.str(), "\r\x1b[Kload  50 %  12 answered  [###########           ]");
}

TEST_F(ProgressBarTest, IsErasedAtTheEndIfItWasShown) {
  for (const absl::Duration time : {absl::Seconds(2), absl::Milliseconds(1)}) {
    std::ostringstream out;
    std::ostringstream err;
    Terminal terminal{.out = out, .err = err, .err_is_terminal = true};
    {
      ProgressBar bar(terminal, "upload", absl::UnixEpoch());
      bar.Update(1, 2, absl::UnixEpoch() + time);
    }
    if (time > absl::Seconds(1)) {
      EXPECT_THAT(err.str(), EndsWith("]\r\x1b[K"));
    } else {
      EXPECT_THAT(err.str(), IsEmpty());
    }
  }
}

}  // namespace
}  // namespace opserve::cli
