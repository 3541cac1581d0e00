// Threads that are none of a device's, but may use a lane of it between other things.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

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

// The calling thread's of `each`, which has one for each visitor by number; null: it is no visitor.
template <typename T>
T* OfThisVisitor(const std::vector<std::unique_ptr<T>>& each) {
  const std::optional<uint32_t> visitor = Visitor::Current();
  return visitor && *visitor < each.size() ? each[*visitor].get() : nullptr;
}

}  // namespace opserve::server
