// Tensor arguments for random calls of the C ABI: right ones, and ways to spoil them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <random>
#include <vector>

#include "acl/acl.h"

namespace opserve::host_cann {

using Dims = std::vector<int64_t>;
using Rng = std::mt19937_64;

// A number in [0, bound).
inline uint64_t Below(Rng& rng, uint64_t bound) { return rng() % bound; }

template <typename Choices>
auto Pick(Rng& rng, const Choices& choices) {
  return choices[Below(rng, std::size(choices))];
}

inline constexpr int64_t kOddNumbers[] = {-1, 0, 1, 2, 3, 4, 7, 100, INT64_MIN, INT64_MAX};

// A tensor argument before it is a descriptor.
struct TensorSpec {
  Dims shape;
  std::optional<Dims> strides;
  int64_t offset = 0;
  aclDataType dtype = ACL_FLOAT;
  aclFormat format = ACL_FORMAT_ND;
  Dims storage;
  size_t allocated_bytes = 0;

  enum class Address { kOwn, kOther, kNull, kMisaligned, kFreed, kNowhere };
  Address address = Address::kOwn;
  enum class Handle { kLive, kNull, kDestroyed, kMadeUp };
  Handle handle = Handle::kLive;
};

// Makes the argument odd in one of many ways. None gives more than a few elements a stride of 0:
// that is legal, but takes as long as it has elements.
void Spoil(Rng& rng, TensorSpec& spec);

}  // namespace opserve::host_cann
