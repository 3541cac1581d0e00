// A terminal that a program draws on and reads keys from.
#pragma once

#include <termios.h>

#include <csignal>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/top/top_view.h"

namespace opserve::cli {

// Has the terminal's alternate screen from construction to destruction; also a signal that ends the
// program leaves the terminal as it was. One at a time in a process; not thread-safe.
class LiveScreen {
 public:
  // File descriptors of the keyboard and the screen, which outlive this. Without a terminal as
  // `in` there are no keys.
  LiveScreen(int in, int out);
  ~LiveScreen();
  LiveScreen(const LiveScreen&) = delete;
  LiveScreen& operator=(const LiveScreen&) = delete;

  // As it is now; people change it. 80 x 24 if the terminal does not know.
  ScreenSize size() const;

  // Replaces the screen's contents by `text`; its lines must fit the screen.
  void Draw(absl::string_view text);

  // Waits for at most `timeout`. Nothing: no key was pressed, or the size of the screen changed
  // before. A keyboard that went away is kQuitKey.
  std::optional<char> WaitForKey(absl::Duration timeout);

 private:
  struct OldAction {
    int signal;
    struct sigaction action;
  };

  // Has `signal` call `handler`, unless it is ignored.
  void Handle(int signal, void (*handler)(int));

  const int in_;
  const int out_;
  bool has_keys_ = false;
  std::vector<OldAction> old_actions_;
};

}  // namespace opserve::cli
