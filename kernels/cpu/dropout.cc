// Dropout, and its masks.
//
// Random numbers are those of Philox 4x32 with ten rounds (Salmon et al., SC 2011), keyed by the
// seed: element i has word i % 4 of the block at counter offset + i / 4. It stays if its word is
// below (1 - p) * 2^32. So equal seeds and offsets give equal bits, and no task needs another's.
// The bit of element i of the row-major order is bit i % 8 of byte i / 8; those behind the last
// element are 0.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Words of blocks, one in the lower half of each lane: products are as wide as a lane, and leave
// the upper half with bits that nothing reads.
typedef uint64_t Words __attribute__((vector_size(sizeof(FloatVector))));
typedef int64_t SignedWords __attribute__((vector_size(sizeof(FloatVector))));
constexpr int kWordLanes = sizeof(Words) / sizeof(uint64_t);

constexpr int kRounds = 10;

// The products of the lanes' lower halves.
[[gnu::always_inline]] inline Words ProductsOf(Words a, Words b) {
#if defined(__AVX512F__)
  return std::bit_cast<Words>(
      _mm512_mul_epu32(std::bit_cast<__m512i>(a), std::bit_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return std::bit_cast<Words>(
      _mm256_mul_epu32(std::bit_cast<__m256i>(a), std::bit_cast<__m256i>(b)));
#elif defined(__SSE4_1__)
  return std::bit_cast<Words>(_mm_mul_epu32(std::bit_cast<__m128i>(a), std::bit_cast<__m128i>(b)));
#else
  return (a & 0xFFFFFFFF) * (b & 0xFFFFFFFF);
#endif
}

// The random words of a seed.
class Philox {
 public:
  explicit Philox(uint64_t seed) {
    auto low = static_cast<uint32_t>(seed);
    auto high = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round) {
      keys_[round][0] = low;
      keys_[round][1] = high;
      low += 0x9E3779B9;
      high += 0xBB67AE85;
    }
  }

  // bytes[i] = the bits of blocks `counter` + 2i and + 2i + 1, a bit for each word: whether it is
  // below `limit`. For kWordLanes bytes.
  void Compare(uint64_t counter, uint64_t limit, uint8_t* bytes) const {
    Words even;
    for (int i = 0; i < kWordLanes; ++i) even[i] = counter + 2 * static_cast<uint64_t>(i);
    const Words bits = BitsOf(even, limit) | BitsOf(even + 1, limit) << 4;
    for (int i = 0; i < kWordLanes; ++i) bytes[i] = static_cast<uint8_t>(bits[i]);
  }

 private:
  // Of the blocks at `counters`: bit j of a lane is set if word j is below `limit`.
  [[gnu::always_inline]] Words BitsOf(Words counters, uint64_t limit) const {
    Words words[4] = {counters, counters >> 32, Words{}, Words{}};
#pragma GCC unroll 10
    for (const auto& key : keys_) {
      const Words a = ProductsOf(Words{} + 0xD2511F53, words[0]);
      const Words b = ProductsOf(Words{} + 0xCD9E8D57, words[2]);
      words[0] = (b >> 32) ^ words[1] ^ key[0];
      words[1] = b;
      words[2] = (a >> 32) ^ words[3] ^ key[1];
      words[3] = a;
    }
    Words bits = {};
    for (int j = 0; j < 4; ++j) {
      // Signed, as vectors have no other comparison.
      const auto word = reinterpret_cast<SignedWords>(words[j] & 0xFFFFFFFF);
      const auto is_below = reinterpret_cast<Words>(word < static_cast<int64_t>(limit));
      bits |= is_below & (uint64_t{1} << j);
    }
    return bits;
  }

  uint64_t keys_[kRounds][2];
};

struct MaskPlan {
  TensorRef mask;
  int64_t count = 0;  // elements that are masked
  uint64_t limit = 0;
  uint64_t seed = 0;
  uint64_t offset = 0;
};

// `probability`, `seed`: their attributes; the offset follows the seed.
MaskPlan PlanMask(const Call& call, const TensorRef& mask, int64_t count, size_t probability,
                  size_t seed) {
  MaskPlan plan;
  plan.mask = mask;
  plan.count = count;
  const double kept = std::clamp(1 - RealAttribute(call, probability), 0.0, 1.0);
  plan.limit = static_cast<uint64_t>(std::nearbyint(kept * 4294967296.0));
  plan.seed = static_cast<uint64_t>(IntAttribute(call, seed));
  plan.offset = static_cast<uint64_t>(IntAttribute(call, seed + 1));
  return plan;
}

void DrawMask(const MaskPlan& plan, void* const* outputs, TaskRunner& runner) {
  const int64_t num_bytes = NumElements(plan.mask.layout);
  const int64_t stride = plan.mask.layout.rank == 0 ? 0 : plan.mask.layout.strides[0];
  auto* bytes = static_cast<uint8_t*>(outputs[plan.mask.address]);
  const Philox philox(plan.seed);
  constexpr int64_t kTaskBytes = kTaskElements / 8;
  RunTasks(runner, CeilDivide(num_bytes, kTaskBytes), [&](int64_t task) {
    const int64_t end = std::min((task + 1) * kTaskBytes, num_bytes);
    for (int64_t i = task * kTaskBytes; i < end; i += kWordLanes) {
      const uint64_t counter = plan.offset + static_cast<uint64_t>(2 * i);
      if (stride == 1 && i + kWordLanes <= std::min(end, plan.count / 8)) {
        philox.Compare(counter, plan.limit, bytes + i);
        continue;
      }
      uint8_t drawn[kWordLanes];
      philox.Compare(counter, plan.limit, drawn);
      const int64_t num_bytes_here = std::min<int64_t>(kWordLanes, end - i);
      for (int64_t k = 0; k < num_bytes_here; ++k) {
        const int64_t num_bits = std::clamp<int64_t>(plan.count - 8 * (i + k), 0, 8);
        bytes[(i + k) * stride] = static_cast<uint8_t>(drawn[k] & ((1U << num_bits) - 1));
      }
    }
  });
}

std::unique_ptr<Kernel> MakeGenMask(const Call& call) {
  int64_t count = 1;
  for (const int64_t extent : IntsAttribute(call, 0)) count *= extent;
  const MaskPlan plan = PlanMask(call, OutputRef(call, 0), count, 1, 2);
  return MakePlannedKernel(
      count, 0,
      [plan](const void* const* /*inputs*/, void* const* outputs, void* /*workspace*/,
             TaskRunner& runner) { DrawMask(plan, outputs, runner); });
}

// Multiplies eight numbers by `scale` where the bit is set, the others by 0: even NaN becomes 0.
void MaskEight(uint32_t bits, float scale, float* numbers) {
  typedef uint32_t Bits __attribute__((vector_size(32)));
  typedef float Floats __attribute__((vector_size(32)));
  constexpr Bits kPlaces = {1, 2, 4, 8, 16, 32, 64, 128};
  Floats values;
  std::memcpy(&values, numbers, sizeof(values));
  // Casts, since functions that give such vectors have another ABI without AVX.
  const auto is_kept = reinterpret_cast<Bits>((kPlaces & bits) != 0);
  values = reinterpret_cast<Floats>(reinterpret_cast<Bits>(values * scale) & is_kept);
  std::memcpy(numbers, &values, sizeof(values));
}

// out = self * scale where the mask's bit is set, else 0.
void ApplyMask(const TensorRef& self, const TensorRef& out, const Layout& mask, float scale,
               const void* const* inputs, const void* mask_address, void* const* outputs,
               TaskRunner& runner) {
  const int64_t count = NumElements(out.layout);
  const AxisGroup from = GroupOf(self.layout);
  const AxisGroup to = GroupOf(out.layout);
  const AxisGroup mask_bytes = GroupOf(mask);
  const auto* bytes = static_cast<const uint8_t*>(mask_address);
  RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
    const int64_t end = std::min((task + 1) * kTaskElements, count);
    constexpr int64_t kRun = 256;
    float numbers[kRun];
    AxisCursor reader(from, task * kTaskElements);
    AxisCursor writer(to, task * kTaskElements);
    for (int64_t i = task * kTaskElements; i < end;) {
      const int64_t run = std::min({reader.run(), writer.run(), end - i, kRun});
      VisitAnyElement(self.layout.dtype, [&]<typename Element>(Element) {
        LoadRun(static_cast<const Element*>(inputs[self.address]) + reader.offset(),
                from.inner_stride(), run, numbers);
      });
      for (int64_t j = 0; j < run;) {
        const int64_t place = (i + j) / 8;
        const int64_t offset = mask_bytes.rank == 1 ? place * mask_bytes.strides[0]
                                                    : AxisCursor(mask_bytes, place).offset();
        const uint32_t bits = bytes[offset];
        const int64_t bit = (i + j) % 8;
        if (bit == 0 && run - j >= 8) {
          MaskEight(bits, scale, numbers + j);
          j += 8;
        } else {
          numbers[j] = (bits >> bit & 1) != 0 ? numbers[j] * scale : 0.0f;
          ++j;
        }
      }
      VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
        StoreRun(numbers, 1, run, static_cast<Element*>(outputs[out.address]) + writer.offset(),
                 to.inner_stride());
      });
      reader.Advance(run);
      writer.Advance(run);
      i += run;
    }
  });
}

float ScaleOf(double probability) {
  return probability < 1 ? static_cast<float>(1 / (1 - probability)) : 0.0f;
}

std::unique_ptr<Kernel> MakeMasked(const Call& call, float scale) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef mask = InputRef(call, 1);
  const TensorRef out = OutputRef(call, 0);
  return MakePlannedKernel(NumElements(out.layout), 0,
                           [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
                               TaskRunner& runner) {
                             ApplyMask(self, out, mask.layout, scale, inputs, inputs[mask.address],
                                       outputs, runner);
                           });
}
std::unique_ptr<Kernel> MakeDoMask(const Call& call) {
  return MakeMasked(call, ScaleOf(RealAttribute(call, 0)));
}
std::unique_ptr<Kernel> MakeDropoutBackward(const Call& call) {
  return MakeMasked(call, static_cast<float>(RealAttribute(call, 0)));
}

// Attributes: p, train, seed, offset. The mask is written only where it is drawn.
std::unique_ptr<Kernel> MakeDropout(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int64_t count = NumElements(out.layout);
  const double probability = RealAttribute(call, 0);
  if (count == 0) return nullptr;
  if (!BoolAttribute(call, 1, true) || probability <= 0) {
    return MakeCopyKernel(count, {MakePiece(self, out)});
  }
  if (probability >= 1) return MakeCopyKernel(count, {MakeFill(out, 0)});
  const float scale = ScaleOf(probability);
  const MaskPlan plan = PlanMask(call, OutputRef(call, 1), count, 0, 2);
  return MakePlannedKernel(count, 0,
                           [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
                               TaskRunner& runner) {
                             DrawMask(plan, outputs, runner);
                             ApplyMask(self, out, plan.mask.layout, scale, inputs,
                                       outputs[plan.mask.address], outputs, runner);
                           });
}

}  // namespace

std::span<const KernelEntry> DropoutKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnDropout", &MakeDropout},
      {"aclnnDropoutBackward", &MakeDropoutBackward},
      {"aclnnDropoutDoMask", &MakeDoMask},
      {"aclnnDropoutGenMask", &MakeGenMask},
  };
  return kEntries;
}

}  // namespace opserve::kernels
