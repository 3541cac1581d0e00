#include "client/cli/top/live_screen.h"

#include <fcntl.h>
#include <sys/wait.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/pseudo_terminal.h"

namespace opserve::cli {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

bool Echoes(int fd) {
  termios state{};
  EXPECT_EQ(tcgetattr(fd, &state), 0);
  return (state.c_lflag & ECHO) != 0;
}

TEST(LiveScreenTest, TheTerminalIsBorrowed) {
  PseudoTerminal terminal;
  {
    LiveScreen screen(terminal.fd(), terminal.fd());
    EXPECT_EQ(terminal.ReadUntil("l"), "\x1b[?1049h\x1b[?25l");
    EXPECT_FALSE(Echoes(terminal.fd()));
  }
  EXPECT_EQ(terminal.ReadUntil("1049l"), kLeave);
  EXPECT_TRUE(Echoes(terminal.fd()));
}

TEST(LiveScreenTest, DrawsOverWhatWasThere) {
  PseudoTerminal terminal;
  LiveScreen screen(terminal.fd(), terminal.fd());
  terminal.ReadUntil(kEnter);

  screen.Draw("one\n\ntwo\n");

  // The terminal itself puts a carriage return before a line break.
  EXPECT_EQ(terminal.ReadUntil("\x1b[J"), "\x1b[Hone\x1b[K\r\r\n\x1b[K\r\r\ntwo\x1b[K\x1b[J");
}

TEST(LiveScreenTest, GivesEachKeyAtOnce) {
  PseudoTerminal terminal;
  LiveScreen screen(terminal.fd(), terminal.fd());

  EXPECT_EQ(screen.WaitForKey(absl::ZeroDuration()), std::nullopt);
  terminal.Type("pq");
  EXPECT_EQ(screen.WaitForKey(absl::Hours(1)), 'p');
  EXPECT_EQ(screen.WaitForKey(absl::Hours(1)), 'q');
}

TEST(LiveScreenTest, KnowsTheSizeAsItIsNow) {
  PseudoTerminal terminal;
  LiveScreen screen(terminal.fd(), terminal.fd());
  EXPECT_EQ(screen.size().width, 100u);
  terminal.Resize(60, 20);
  EXPECT_EQ(screen.size().width, 60u);
  EXPECT_EQ(screen.size().height, 20u);
  terminal.Resize(0, 0);  // a serial line does not know
  EXPECT_EQ(screen.size().width, 80u);
  EXPECT_EQ(screen.size().height, 24u);
}

TEST(LiveScreenTest, WithoutAKeyboardThereAreNoKeys) {
  PseudoTerminal terminal;
  const int nothing = open("/dev/null", O_RDONLY);
  {
    LiveScreen screen(nothing, terminal.fd());
    EXPECT_EQ(screen.WaitForKey(absl::Milliseconds(1)), std::nullopt);
  }
  close(nothing);
}

TEST(LiveScreenTest, ASignalRestoresTheTerminalAndEndsTheProgram) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    PseudoTerminal terminal;
    const pid_t child = fork();
    if (child == 0) {
      LiveScreen screen(terminal.fd(), terminal.fd());
      std::raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(WTERMSIG(status), signal);
    EXPECT_EQ(terminal.ReadUntil(kLeave), std::string(kEnter) + kLeave);
    EXPECT_TRUE(Echoes(terminal.fd()));
  }
}

}  // namespace
}  // namespace opserve::cli
