// A bounded row of large objects of which a task makes only as many as it needs.
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace opserve::kernels {

// At most kCapacity objects, made one after the other. Unlike an array of std::optional, which
// clears the memory of all, this touches none that is not used: a reader or a writer of tiles has
// a buffer of 4 KiB, and most calls are small. Not thread-safe.
template <typename T, size_t kCapacity>
class Slots {
 public:
  Slots() = default;
  ~Slots() {
    while (size_ > 0) (*this)[--size_].~T();
  }
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;

  // Requires that there is room.
  template <typename... Arguments>
  void Add(Arguments&&... arguments) {
    new (storage_ + size_ * sizeof(T)) T(std::forward<Arguments>(arguments)...);
    ++size_;
  }

  // Requires i to be below the number of objects.
  T& operator[](size_t i) { return *std::launder(reinterpret_cast<T*>(storage_ + i * sizeof(T))); }

 private:
  size_t size_ = 0;
  alignas(T) std::byte storage_[kCapacity * sizeof(T)];
};

}  // namespace opserve::kernels
