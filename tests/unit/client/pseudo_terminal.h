// A terminal without a person.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace opserve::cli {

// Has 100 columns and 30 lines. What a program writes is there to read before it is destroyed, as
// long as it is less than what the kernel holds, 4 KiB.
class PseudoTerminal {
 public:
  PseudoTerminal() : person_(posix_openpt(O_RDWR | O_NOCTTY)) {
    if (person_ < 0 || grantpt(person_) != 0 || unlockpt(person_) != 0) std::abort();
    program_ = open(ptsname(person_), O_RDWR | O_NOCTTY);
    if (program_ < 0) std::abort();
    Resize(100, 30);
  }
  ~PseudoTerminal() {
    close(program_);
    close(person_);
  }
  PseudoTerminal(const PseudoTerminal&) = delete;
  PseudoTerminal& operator=(const PseudoTerminal&) = delete;

  // The program's end, for reading and writing.
  int fd() const { return program_; }

  void Resize(unsigned short width, unsigned short height) {
    const winsize size{.ws_row = height, .ws_col = width, .ws_xpixel = 0, .ws_ypixel = 0};
    if (ioctl(person_, TIOCSWINSZ, &size) != 0) std::abort();
  }

  void Type(const std::string& keys) {
    if (write(person_, keys.data(), keys.size()) != static_cast<ssize_t>(keys.size())) std::abort();
  }

  // Everything that was written up to and with `end`; waits for it, for a minute at most.
  std::string ReadUntil(const std::string& end) {
    std::string text;
    char byte = 0;
    while (text.size() < end.size() ||
           text.compare(text.size() - end.size(), end.size(), end) != 0) {
      pollfd next = {.fd = person_, .events = POLLIN, .revents = 0};
      if (poll(&next, 1, 60000) != 1 || read(person_, &byte, 1) != 1) {
        ADD_FAILURE() << "expected \"" << end << "\", found \"" << text << "\"";
        return text;
      }
      text.push_back(byte);
    }
    return text;
  }

 private:
  const int person_;
  int program_ = -1;
};

}  // namespace opserve::cli
