// Along an axis: sorting, the greatest elements, running sums.
#include <algorithm>
#include <bit>
#include <functional>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cpu/call.h"
#include "kernels/cpu/elements.h"
#include "kernels/cpu/plan.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// An element of a row, and where it was.
template <typename C>
struct Entry {
  C value;
  int64_t index;
};

// Whether `a` goes before `b`: NaNs are the greatest, equal ones keep their order.
template <typename C>
bool IsBefore(const Entry<C>& a, const Entry<C>& b, bool descending) {
  if constexpr (std::is_floating_point_v<C>) {
    const bool a_is_nan = a.value != a.value;
    const bool b_is_nan = b.value != b.value;
    if (a_is_nan != b_is_nan) return a_is_nan == descending;
    if (a_is_nan) return a.index < b.index;
  }
  if (a.value != b.value) return descending ? a.value > b.value : a.value < b.value;
  return a.index < b.index;
}

// Numbers as entries.
template <typename C>
struct WideEntries {
  using Number = C;
  using Type = Entry<C>;

  template <typename Element>
  static Type Make(Element element, int64_t index, bool /*descending*/) {
    return {NumberOf<C>(element), index};
  }
  static int64_t IndexOf(const Type& entry) { return entry.index; }
};

// Numbers of up to 32 bits as entries of one integer each, whose order is theirs: the number's rank
// in the upper half, the index in the lower one. These are compared without branches.
template <typename C>
struct NarrowEntries {
  using Number = C;
  using Type = uint64_t;

  template <typename Element>
  static Type Make(Element element, int64_t index, bool descending) {
    const uint32_t rank = RankOf(NumberOf<C>(element));
    return uint64_t{descending ? ~rank : rank} << 32 | static_cast<uint64_t>(index);
  }
  static int64_t IndexOf(Type entry) { return static_cast<int64_t>(entry & 0xffffffff); }

 private:
  static uint32_t RankOf(int64_t number) { return static_cast<uint32_t>(number) ^ 0x80000000; }
  // The sum with 0 makes zeros alike.
  static uint32_t RankOf(float number) {
    const auto bits = std::bit_cast<uint32_t>(number + 0.0f);
    const uint32_t rank = bits >> 31 != 0 ? ~bits : bits | 0x80000000;
    return number != number ? 0xffffffff : rank;
  }
};
inline bool IsBefore(uint64_t a, uint64_t b, bool /*descending*/) { return a < b; }

// Calls visit with the kind of entries that rows of `extent` numbers become.
template <typename Visitor>
void VisitEntries(Dtype dtype, int64_t extent, Visitor visit) {
  const bool is_narrow = ElementBytes(dtype) <= 4 && extent <= int64_t{1} << 32;
  VisitNumber(dtype, [&]<typename C>(C) {
    if constexpr (!std::is_same_v<C, double>) {
      if (is_narrow) return visit(NarrowEntries<C>());
    }
    visit(WideEntries<C>());
  });
}

// Entries that are sorted in one go. Longer rows are sorted in runs of so many and merged, so that
// the kernel can stop on the way.
constexpr int64_t kSortRun = int64_t{1} << 16;

// Of so many times as many entries as are wanted, most are only compared with the last one that is.
constexpr int64_t kManyTimes = 16;

// Sorts whole rows of `extent` elements, or finds their first `count` in order. `E`: an entry.
template <typename E>
class RowSorter {
 public:
  // Entries that a row needs room for.
  static int64_t NumEntries(int64_t extent, int64_t count) {
    if (extent <= kSortRun) return extent;
    return count <= kSortRun ? count + kSortRun : 2 * extent;
  }

  RowSorter(int64_t extent, int64_t count, bool descending, const TaskRunner& runner)
      : extent_(extent), count_(count), descending_(descending), runner_(runner) {}

  // `entries`: room for NumEntries. `load(begin, count, entries)` puts elements of the row there.
  // Where the first `count` are; null: the kernel must stop.
  template <typename Load>
  const E* Sort(E* entries, const Load& load) const {
    if (count_ < extent_ && count_ <= kSortRun) return SortFirst(entries, load);
    for (int64_t begin = 0; begin < extent_; begin += kSortRun) {
      if (runner_.MustStop()) return nullptr;
      const int64_t count = std::min(kSortRun, extent_ - begin);
      load(begin, count, entries + begin);
      std::sort(entries + begin, entries + begin + count, Before());
    }
    E* spare = entries + extent_;
    for (int64_t run = kSortRun; run < extent_; run *= 2) {
      for (int64_t begin = 0; begin < extent_; begin += 2 * run) {
        if (!Merge(entries, begin, run, spare)) return nullptr;
      }
      std::swap(entries, spare);
    }
    return entries;
  }

 private:
  auto Before() const {
    return
        [descending = descending_](const E& a, const E& b) { return IsBefore(a, b, descending); };
  }

  // The first of what was seen so far stay at the beginning.
  template <typename Load>
  const E* SortFirst(E* entries, const Load& load) const {
    int64_t held = 0;
    for (int64_t begin = 0; begin < extent_; begin += kSortRun) {
      if (runner_.MustStop()) return nullptr;
      const int64_t count = std::min(kSortRun, extent_ - begin);
      load(begin, count, entries + held);
      const int64_t all = held + count;
      held = std::min(count_, all);
      if (held * kManyTimes <= all) {
        std::partial_sort(entries, entries + held, entries + all, Before());
      } else if (held < all) {
        std::nth_element(entries, entries + held, entries + all, Before());
      }
    }
    std::sort(entries, entries + held, Before());
    return entries;
  }

  // Two sorted runs of at most `run` entries from `begin` on, to the same place of `merged`.
  bool Merge(const E* entries, int64_t begin, int64_t run, E* merged) const {
    const int64_t middle = std::min(begin + run, extent_);
    const int64_t end = std::min(begin + 2 * run, extent_);
    int64_t first = begin;
    int64_t second = middle;
    for (int64_t to = begin; to < end;) {
      if (runner_.MustStop()) return false;
      for (const int64_t stop = std::min(to + kSortRun, end); to < stop; ++to) {
        const bool takes_second =
            first == middle ||
            (second < end && IsBefore(entries[second], entries[first], descending_));
        merged[to] = entries[takes_second ? second++ : first++];
      }
    }
    return true;
  }

  const int64_t extent_;
  const int64_t count_;
  const bool descending_;
  const TaskRunner& runner_;
};

// The first `count` of the sorted rows along `axis`.
std::unique_ptr<Kernel> MakeSorted(const TensorRef& self, const TensorRef& values,
                                   const TensorRef& indices, int axis, bool descending) {
  const int64_t extent = ExtentOf(self.layout, axis);
  const int64_t count = std::min(ExtentOf(values.layout, axis), extent);
  const int64_t num_rows = NumElements(self.layout) / std::max<int64_t>(1, extent);
  const AxisGroup self_rows = GroupOf(WithoutAxis(self.layout, axis));
  const AxisGroup value_rows = GroupOf(WithoutAxis(values.layout, axis));
  const AxisGroup index_rows = GroupOf(WithoutAxis(indices.layout, axis));
  const int64_t per_task = std::max<int64_t>(1, PiecesPerTask(extent) / 4);
  const int64_t row_entries = RowSorter<Entry<double>>::NumEntries(extent, count);
  return MakePlannedKernel(
      num_rows * extent, static_cast<size_t>(num_rows * row_entries) * sizeof(Entry<double>),
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, num_rows);
          VisitEntries(self.layout.dtype, extent, [&]<typename Entries>(Entries) {
            using C = typename Entries::Number;
            using E = typename Entries::Type;
            static_assert(sizeof(E) <= sizeof(Entry<double>));
            const int64_t from_stride = StrideOf(self.layout, axis);
            const RowSorter<E> sorter(extent, count, descending, runner);
            for (int64_t i = task * per_task; i < end; ++i) {
              if (runner.MustStop()) return;
              const int64_t from = AxisCursor(self_rows, i).offset();
              const auto load = [&](int64_t begin, int64_t number, E* entries) {
                VisitAnyElement(self.layout.dtype, [&]<typename Element>(Element) {
                  const auto* elements = static_cast<const Element*>(inputs[self.address]) + from;
                  for (int64_t j = begin; j < begin + number; ++j) {
                    entries[j - begin] = Entries::Make(elements[j * from_stride], j, descending);
                  }
                });
              };
              const E* entries = sorter.Sort(static_cast<E*>(workspace) + i * row_entries, load);
              if (entries == nullptr) return;
              const int64_t to = AxisCursor(value_rows, i).offset();
              const int64_t place = AxisCursor(index_rows, i).offset();
              for (int64_t begin = 0; begin < count; begin += kSortRun) {
                if (runner.MustStop()) return;
                const int64_t stop = std::min(begin + kSortRun, count);
                VisitAnyElement(values.layout.dtype, [&]<typename Element>(Element) {
                  auto* elements = static_cast<Element*>(outputs[values.address]) + to;
                  const int64_t stride = StrideOf(values.layout, axis);
                  for (int64_t j = begin; j < stop; ++j) {
                    elements[j * stride] = ElementOf<Element>(
                        LoadNumber<C>(self.layout.dtype, inputs[self.address],
                                      from + Entries::IndexOf(entries[j]) * from_stride));
                  }
                });
                for (int64_t j = begin; j < stop; ++j) {
                  StoreNumber(Entries::IndexOf(entries[j]), indices.layout.dtype,
                              outputs[indices.address], place + j * StrideOf(indices.layout, axis));
                }
              }
            }
          });
        });
      });
}

std::unique_ptr<Kernel> MakeSort(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  return MakeSorted(self, OutputRef(call, 0), OutputRef(call, 1),
                    AxisAttribute(IntAttribute(call, 1), self.layout.rank), BoolAttribute(call, 2));
}

std::unique_ptr<Kernel> MakeTopk(const Call& call) {
  const TensorRef self = InputRef(call, 0);
  return MakeSorted(self, OutputRef(call, 0), OutputRef(call, 1),
                    AxisAttribute(IntAttribute(call, 1), self.layout.rank), BoolAttribute(call, 2));
}

// Floating sums and products run on in float64.
template <typename C>
using RunningSum = std::conditional_t<std::is_integral_v<C>, uint64_t, double>;

// numbers[r][k] = the sum, or the product, of row r up to it, with it or without; `sums`: those of
// the numbers before.
template <int kRows, int kRun, typename C>
void RunOn(C (&numbers)[kRows][kRun], int64_t count, bool is_product, bool is_exclusive,
           bool is_reverse, RunningSum<C> (&sums)[kRows]) {
  const auto run = [&](auto combined) {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = is_reverse ? count - 1 - k : k;
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const RunningSum<C> before = sums[r];
        sums[r] = combined(before, static_cast<RunningSum<C>>(numbers[r][at]));
        numbers[r][at] = static_cast<C>(is_exclusive ? before : sums[r]);
      }
    }
  };
  if (is_product) {
    run(std::multiplies());
  } else {
    run(std::plus());
  }
}

std::unique_ptr<Kernel> MakeRunningSum(const Call& call, bool is_exclusive, bool is_reverse,
                                       bool is_product = false) {
  const TensorRef self = InputRef(call, 0);
  const TensorRef out = OutputRef(call, 0);
  const int axis = AxisAttribute(IntAttribute(call, 0), self.layout.rank);
  const int64_t extent = ExtentOf(self.layout, axis);
  const int64_t num_rows = NumElements(self.layout) / std::max<int64_t>(1, extent);
  const AxisGroup self_rows = GroupOf(WithoutAxis(self.layout, axis));
  const AxisGroup out_rows = GroupOf(WithoutAxis(out.layout, axis));
  const int64_t self_stride = StrideOf(self.layout, axis);
  const int64_t out_stride = StrideOf(out.layout, axis);
  const int64_t per_task = PiecesPerTask(extent);
  // Summed as the more general kind of the two, multiplied as the result's.
  const bool has_own_kind = IsFloating(self.layout.dtype) && !is_product;
  const Dtype kind = has_own_kind ? self.layout.dtype : out.layout.dtype;
  return MakePlannedKernel(
      num_rows * extent, 0,
      [=](const void* const* inputs, void* const* outputs, void* /*workspace*/,
          TaskRunner& runner) {
        RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
          const int64_t end = std::min((task + 1) * per_task, num_rows);
          VisitNumber(kind, [&]<typename C>(C) {
            constexpr int64_t kRun = 256;
            // Rows whose sums do not wait for one another.
            constexpr int64_t kRows = 4;
            C numbers[kRows][kRun] = {};
            for (int64_t i = task * per_task; i < end; i += kRows) {
              const int64_t rows = std::min(kRows, end - i);
              RunningSum<C> sums[kRows];
              std::fill_n(sums, kRows, RunningSum<C>(is_product ? 1 : 0));
              for (int64_t j = 0; j < extent; j += kRun) {
                if (runner.MustStop()) return;
                const int64_t count = std::min(kRun, extent - j);
                // Backwards the blocks are taken from the end.
                const int64_t first = is_reverse ? extent - j - count : j;
                VisitAnyElement(self.layout.dtype, [&]<typename Element>(Element) {
                  const auto* elements = static_cast<const Element*>(inputs[self.address]);
                  for (int64_t r = 0; r < rows; ++r) {
                    LoadRun(elements + AxisCursor(self_rows, i + r).offset() + first * self_stride,
                            self_stride, count, numbers[r]);
                  }
                });
                RunOn<kRows, kRun>(numbers, count, is_product, is_exclusive, is_reverse, sums);
                VisitAnyElement(out.layout.dtype, [&]<typename Element>(Element) {
                  auto* elements = static_cast<Element*>(outputs[out.address]);
                  for (int64_t r = 0; r < rows; ++r) {
                    StoreRun(numbers[r], 1, count,
                             elements + AxisCursor(out_rows, i + r).offset() + first * out_stride,
                             out_stride);
                  }
                });
              }
            }
          });
        });
      });
}

std::unique_ptr<Kernel> MakeCumsum(const Call& call) { return MakeRunningSum(call, false, false); }
std::unique_ptr<Kernel> MakeCumsumV2(const Call& call) {
  return MakeRunningSum(call, BoolAttribute(call, 1), BoolAttribute(call, 2));
}

std::unique_ptr<Kernel> MakeCumprod(const Call& call) {
  return MakeRunningSum(call, false, false, true);
}

}  // namespace

std::span<const KernelEntry> SortKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnCumprod", &MakeCumprod},   {"aclnnCumsum", &MakeCumsum},
      {"aclnnCumsumV2", &MakeCumsumV2}, {"aclnnSort", &MakeSort},
      {"aclnnTopk", &MakeTopk},
  };
  return kEntries;
}

}  // namespace opserve::kernels
