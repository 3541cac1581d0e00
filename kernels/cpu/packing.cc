#include "kernels/cpu/packing.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/strided.h"

namespace opserve::kernels {
namespace {

// How far apart elements of a run may be to be close together.
constexpr int64_t kMostStride = 8;

// The lines become the columns of `out`, whose rows are `stride` apart.
void Transpose(Elements<float, 4> a, Elements<float, 4> b, Elements<float, 4> c,
               Elements<float, 4> d, float* out, int64_t stride) {
  const Elements<float, 4> low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5);
  const Elements<float, 4> low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
  const Elements<float, 4> high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Elements<float, 4> high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  const Elements<float, 4> rows[4] = {__builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5),
                                      __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7),
                                      __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5),
                                      __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7)};
  for (int i = 0; i < 4; ++i) std::memcpy(out + i * stride, &rows[i], sizeof(rows[i]));
}

// A strip of kWidth lines whose elements are kStride apart: packed[k * kWidth + i] is element k of
// line i.
template <int kWidth, int kStride>
void PackLines(const float* elements, const int64_t* lines, int64_t depth, float* packed) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    int i = 0;
    for (; i + 4 <= kWidth; i += 4) {
      const float* first = elements + k * kStride;
      Transpose(LoadStrided<kStride, 4>(first + lines[i]),
                LoadStrided<kStride, 4>(first + lines[i + 1]),
                LoadStrided<kStride, 4>(first + lines[i + 2]),
                LoadStrided<kStride, 4>(first + lines[i + 3]), packed + k * kWidth + i, kWidth);
    }
    for (; i < kWidth; ++i) {
      for (int j = 0; j < 4; ++j) {
        packed[(k + j) * kWidth + i] = elements[lines[i] + (k + j) * kStride];
      }
    }
  }
  for (; k < depth; ++k) {
    for (int i = 0; i < kWidth; ++i) packed[k * kWidth + i] = elements[lines[i] + k * kStride];
  }
}

// to[i] = from[i * stride]
template <typename C, typename Element>
[[gnu::always_inline]] inline void CopyRun(const Element* from, int64_t stride, int64_t count,
                                           C* to) {
  const auto copy = [&](auto width) {
    constexpr int kWidth = width;
    const auto copy_from = [&](int64_t i) {
      for (int j = 0; j < kWidth; ++j) to[i + j] = NumberOf<C>(from[i + j]);
    };
    // The last ones, if they are fewer, once more.
    for (int64_t i = 0; i + kWidth <= count; i += kWidth) copy_from(i);
    if (count % kWidth != 0) copy_from(count - kWidth);
  };
  if constexpr (std::is_same_v<Element, C> && kHasEven<C>) {
    if (stride == 2) return CopyEven(from, count, to);
  }
  if (stride == 1 && count >= 8) {
    copy(std::integral_constant<int, 8>());
  } else if (stride == 1 && count >= 4) {
    copy(std::integral_constant<int, 4>());
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = NumberOf<C>(from[i * stride]);
  }
}

// Packs the elements of a strip's lines, which begin at `firsts`, at a run of steps.
template <int kWidth, typename C, typename Element>
void PackRun(const Element* elements, const int64_t* firsts, const int64_t* steps,
             const OffsetRun& run, C* strip) {
  C* packed = strip + run.begin * kWidth;
  if constexpr (std::is_same_v<Element, float> && std::is_same_v<C, float>) {
    const float* from = elements + steps[run.begin];
    if (run.stride == 1) return PackLines<kWidth, 1>(from, firsts, run.count, packed);
    if (run.stride == 2) return PackLines<kWidth, 2>(from, firsts, run.count, packed);
  }
  for (int64_t k = 0; k < run.count; ++k) {
    const Element* from = elements + steps[run.begin + k];
    for (int i = 0; i < kWidth; ++i) packed[k * kWidth + i] = NumberOf<C>(from[firsts[i]]);
  }
}

}  // namespace

void OffsetsOf(const AxisGroup& group, int64_t begin, int64_t count, int64_t* offsets) {
  AxisCursor cursor(group, begin);
  for (int64_t i = 0; i < count;) {
    const int64_t run = std::min(cursor.run(), count - i);
    for (int64_t j = 0; j < run; ++j) offsets[i + j] = cursor.offset() + j * group.inner_stride();
    cursor.Advance(run);
    i += run;
  }
}

bool AreNeighbours(const int64_t* offsets, int64_t count) {
  for (int64_t i = 1; i < count; ++i) {
    if (offsets[i] != offsets[0] + i) return false;
  }
  return true;
}

int64_t FindRuns(const int64_t* offsets, int64_t count, int64_t most, OffsetRun* runs) {
  int64_t num_runs = 0;
  for (int64_t i = 0; i < count;) {
    if (num_runs == most) return 0;
    OffsetRun run{i, 1, 1};
    if (i + 1 < count) run.stride = offsets[i + 1] - offsets[i];
    while (i + run.count < count && offsets[i + run.count] == offsets[i] + run.count * run.stride) {
      ++run.count;
    }
    runs[num_runs++] = run;
    i += run.count;
  }
  return num_runs;
}

template <int kWidth, typename C>
void Pack(const ProductOperand& operand, const void* address, const int64_t* lines,
          int64_t num_lines, const int64_t* steps, int64_t depth, C* packed) {
  VisitAnyElement(operand.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(address);
    OffsetRun step_runs[kBlockDepth];
    const int64_t num_step_runs = FindRuns(steps, depth, depth / kLeastRun, step_runs);
    const bool steps_are_neighbours = num_step_runs == 1 && step_runs[0].stride == 1;
    for (int64_t begin = 0; begin < num_lines; begin += kWidth) {
      const int64_t count = std::min<int64_t>(kWidth, num_lines - begin);
      C* strip = packed + begin * depth;
      int64_t firsts[kWidth];
      for (int64_t i = 0; i < kWidth; ++i) firsts[i] = lines[begin + std::min(i, count - 1)];
      // The common layouts have loops of their own, which the compiler turns into vectors.
      if (AreNeighbours(firsts, kWidth)) {
        for (int64_t k = 0; k < depth; ++k) {
          const Element* first = elements + firsts[0] + steps[k];
          for (int i = 0; i < kWidth; ++i) strip[k * kWidth + i] = NumberOf<C>(first[i]);
        }
        continue;
      }
      if constexpr (std::is_same_v<Element, float> && std::is_same_v<C, float>) {
        if (steps_are_neighbours) {
          PackLines<kWidth, 1>(elements + steps[0], firsts, depth, strip);
          continue;
        }
      }
      // Lines of images, each of which goes to the image's edge. Where lines are far apart and
      // their elements are close together, it is the elements that are read in runs.
      OffsetRun runs[kWidth / kLeastRun];
      const int64_t num_runs = FindRuns(firsts, kWidth, kWidth / kLeastRun, runs);
      const bool are_close = std::all_of(runs, runs + num_runs, [](const OffsetRun& run) {
        return std::abs(run.stride) <= kMostStride;
      });
      if (num_runs > 0 && (are_close || num_step_runs == 0)) {
        for (int64_t k = 0; k < depth; ++k) {
          for (int64_t i = 0; i < num_runs; ++i) {
            const OffsetRun& run = runs[i];
            CopyRun(elements + firsts[run.begin] + steps[k], run.stride, run.count,
                    strip + k * kWidth + run.begin);
          }
        }
        continue;
      }
      for (int64_t i = 0; i < num_step_runs; ++i) {
        PackRun<kWidth>(elements, firsts, steps, step_runs[i], strip);
      }
      if (num_step_runs == 0) PackRun<kWidth>(elements, firsts, steps, {0, depth, 0}, strip);
    }
  });
}

template void Pack<kStripRows>(const ProductOperand&, const void*, const int64_t*, int64_t,
                               const int64_t*, int64_t, float*);
template void Pack<kStripRows>(const ProductOperand&, const void*, const int64_t*, int64_t,
                               const int64_t*, int64_t, double*);
template void Pack<kStripRows>(const ProductOperand&, const void*, const int64_t*, int64_t,
                               const int64_t*, int64_t, uint64_t*);
template void Pack<kStripColumns<float>>(const ProductOperand&, const void*, const int64_t*,
                                         int64_t, const int64_t*, int64_t, float*);
template void Pack<kStripColumns<double>>(const ProductOperand&, const void*, const int64_t*,
                                          int64_t, const int64_t*, int64_t, double*);
template void Pack<kStripColumns<uint64_t>>(const ProductOperand&, const void*, const int64_t*,
                                            int64_t, const int64_t*, int64_t, uint64_t*);

}  // namespace opserve::kernels
