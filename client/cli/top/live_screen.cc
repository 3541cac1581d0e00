#include "client/cli/top/live_screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace opserve::cli {
namespace {

constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";  // alternate screen, no cursor
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

// State for the signal handlers; written before they are installed.
struct {
  int in = -1;
  int out = -1;
  bool has_keys = false;
  termios before = {};
} screen;

// Safe in a signal handler.
void WriteAll(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // the terminal is gone
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

// Safe in a signal handler.
void Restore() {
  WriteAll(screen.out, kLeave, std::strlen(kLeave));
  if (screen.has_keys) tcsetattr(screen.in, TCSANOW, &screen.before);
}

// Ends the program as the signal would have without a handler: it waits until this one returns.
void RestoreAndDie(int signal) {
  Restore();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

// poll() ends for any signal that is handled.
void WakeUp(int /*signal*/) {}

}  // namespace

LiveScreen::LiveScreen(int in, int out) : in_(in), out_(out) {
  screen.in = in;
  screen.out = out;
  has_keys_ = tcgetattr(in, &screen.before) == 0;
  screen.has_keys = has_keys_;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) Handle(signal, &RestoreAndDie);
  Handle(SIGWINCH, &WakeUp);
  if (has_keys_) {
    termios keys = screen.before;
    // Keys come one by one, without Enter, and are not shown.
    keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    keys.c_cc[VSUSP] = _POSIX_VDISABLE;  // would leave the shell with this screen
    tcsetattr(in, TCSANOW, &keys);
  }
  WriteAll(out_, kEnter, std::strlen(kEnter));
}

LiveScreen::~LiveScreen() {
  Restore();
  for (const OldAction& old : old_actions_) sigaction(old.signal, &old.action, nullptr);
}

void LiveScreen::Handle(int signal, void (*handler)(int)) {
  OldAction old{.signal = signal, .action = {}};
  sigaction(signal, nullptr, &old.action);
  // SIGWINCH is ignored by default, which is not SIG_IGN.
  if (old.action.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = handler;
  // Calls other than poll go on after a window has changed its size.
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
  old_actions_.push_back(old);
}

ScreenSize LiveScreen::size() const {
  winsize size{};
  if (ioctl(out_, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {.width = 80, .height = 24};
  }
  return {.width = size.ws_col, .height = size.ws_row};
}

void LiveScreen::Draw(absl::string_view text) {
  // A line break after the last line would scroll a full screen. Written over instead of erased
  // first, the screen does not flicker.
  absl::ConsumeSuffix(&text, "\n");
  const std::string frame =
      absl::StrCat("\x1b[H", absl::StrReplaceAll(text, {{"\n", "\x1b[K\r\n"}}), "\x1b[K\x1b[J");
  WriteAll(out_, frame.data(), frame.size());
}

std::optional<char> LiveScreen::WaitForKey(absl::Duration timeout) {
  pollfd keyboard{.fd = has_keys_ ? in_ : -1, .events = POLLIN, .revents = 0};
  // Rounded up: a caller that waits for a moment would otherwise spin through its last millisecond.
  const absl::Duration rounded = absl::Ceil(timeout, absl::Milliseconds(1));
  // A signal ends the wait too: the window has another size then.
  if (poll(&keyboard, 1, static_cast<int>(absl::ToInt64Milliseconds(rounded))) <= 0) {
    return std::nullopt;
  }
  char key = kQuitKey;
  if (read(in_, &key, 1) != 1) return kQuitKey;
  return key;
}

}  // namespace opserve::cli
