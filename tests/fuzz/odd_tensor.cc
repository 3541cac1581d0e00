#include "tests/fuzz/odd_tensor.h"

#include <algorithm>
#include <array>

namespace opserve::host_cann {

void Spoil(Rng& rng, TensorSpec& spec) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const size_t axis = spec.shape.empty() ? 0 : Below(rng, spec.shape.size());
  switch (Below(rng, 17)) {
    case 0:
      spec.handle = TensorSpec::Handle::kNull;
      break;
    case 1:
      spec.handle = TensorSpec::Handle::kDestroyed;
      break;
    case 2:
      spec.handle = TensorSpec::Handle::kMadeUp;
      break;
    case 3:
      spec.address = TensorSpec::Address::kNull;
      break;
    case 4:
      spec.address = TensorSpec::Address::kOther;
      break;
    case 5:
      spec.address = TensorSpec::Address::kMisaligned;
      break;
    case 6:
      spec.address = TensorSpec::Address::kFreed;
      break;
    case 7:
      spec.address = TensorSpec::Address::kNowhere;
      break;
    case 8:
      spec.allocated_bytes /= 2;
      break;
    case 9:
      spec.dtype = Pick(rng, std::array{ACL_DT_UNDEFINED, ACL_INT8, ACL_STRING, ACL_COMPLEX64,
                                        ACL_BF16, ACL_FLOAT16, ACL_DOUBLE, ACL_FLOAT4_E1M2});
      break;
    case 10:
      spec.format = Pick(rng, std::array{ACL_FORMAT_UNDEFINED, ACL_FORMAT_NCHW,
                                         ACL_FORMAT_FRACTAL_NZ, ACL_FORMAT_NC1HWC0});
      break;
    case 11:
      spec.shape.resize(Below(rng, 30), 1);
      spec.strides.reset();
      break;
    case 12:
      if (!spec.shape.empty()) {
        spec.shape[axis] = Pick(rng, std::array<int64_t, 6>{-1, 0, 5, kHuge, INT64_MIN, INT64_MAX});
      }
      spec.strides.reset();
      break;
    case 13:
      spec.strides = Dims(spec.shape.size(),
                          Pick(rng, std::array<int64_t, 5>{-1, 3, kHuge, INT64_MIN, INT64_MAX}));
      break;
    case 14:
      spec.offset = Pick(rng, kOddNumbers);
      break;
    case 15:
      spec.storage = {Pick(rng, kOddNumbers), Pick(rng, kOddNumbers)};
      break;
    case 16:  // overlaps itself
      if (std::all_of(spec.shape.begin(), spec.shape.end(), [](int64_t n) { return n <= 5; })) {
        spec.strides = Dims(spec.shape.size(), 0);
      }
      break;
  }
}

}  // namespace opserve::host_cann
