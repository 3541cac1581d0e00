// Threads that are none of a device's, but may use a lane of it between other things.
#pragma once

#include <cstdint>
#include <optional>

namespace opserve::server {

// As long as it lives, the thread that made it is visitor `number`: every device that is up has a
// lane for it. No two threads have the same number.
class Visitor {
 public:
  explicit Visitor(uint32_t number) { current_ = number; }
  ~Visitor() { current_.reset(); }
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;

  // Of the calling thread.
  static std::optional<uint32_t> Current() { return current_; }

 private:
  inline static thread_local std::optional<uint32_t> current_;
};

}  // namespace opserve::server
