#include "kernels/cpu/product.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// Tiles of the result, and blocks of the depth: the packed factors stay in the second-level cache.
constexpr int64_t kTileRows = 96;
constexpr int64_t kTileColumns = 128;
constexpr int64_t kBlockDepth = 128;

// What is computed in registers at a time: kStripRows x two vectors.
constexpr int kStripRows = 6;
template <typename C>
inline constexpr int kStripColumns = 2 * sizeof(FloatVector) / sizeof(C);

// Products of a task.
constexpr int64_t kTaskProducts = int64_t{1} << 22;

int64_t RoundUp(int64_t value, int64_t multiple) { return CeilDivide(value, multiple) * multiple; }

// offsets[i] = offset of position begin + i.
void OffsetsOf(const AxisGroup& group, int64_t begin, int64_t count, int64_t* offsets) {
  AxisCursor cursor(group, begin);
  for (int64_t i = 0; i < count;) {
    const int64_t run = std::min(cursor.run(), count - i);
    for (int64_t j = 0; j < run; ++j) offsets[i + j] = cursor.offset() + j * group.inner_stride();
    cursor.Advance(run);
    i += run;
  }
}

// Packs a block as strips of `width` lines: strip after strip, and in each all lines' first
// elements, all lines' second elements and so on. Lines are rows of the left factor or columns of
// the right one. What is missing of the last strip is 0.
template <typename C>
void Pack(const ProductOperand& operand, const void* address, const int64_t* lines,
          int64_t num_lines, bool lines_are_closer, const int64_t* steps, int64_t depth, int width,
          C* packed) {
  VisitAnyElement(operand.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(address);
    for (int64_t begin = 0; begin < num_lines; begin += width) {
      const int count = static_cast<int>(std::min<int64_t>(width, num_lines - begin));
      C* strip = packed + begin * depth;
      if (count < width) std::fill_n(strip, width * depth, C{0});
      if (lines_are_closer) {
        for (int64_t k = 0; k < depth; ++k) {
          const Element* first = elements + steps[k];
          for (int i = 0; i < count; ++i) {
            strip[k * width + i] = NumberOf<C>(first[lines[begin + i]]);
          }
        }
      } else {
        for (int i = 0; i < count; ++i) {
          const Element* first = elements + lines[begin + i];
          for (int64_t k = 0; k < depth; ++k) strip[k * width + i] = NumberOf<C>(first[steps[k]]);
        }
      }
    }
  });
}

// sums += the product of two strips, where the sums' rows are kTileColumns apart.
template <typename C>
void MultiplyStrips(const C* left, const C* right, int64_t depth, C* sums) {
  typedef C Vector __attribute__((vector_size(sizeof(FloatVector))));
  constexpr int kWidth = sizeof(FloatVector) / sizeof(C);
  Vector products[kStripRows][2] = {};
  for (int64_t k = 0; k < depth; ++k) {
    Vector low;
    Vector high;
    std::memcpy(&low, right, sizeof(low));
    std::memcpy(&high, right + kWidth, sizeof(high));
#pragma GCC unroll 6
    for (int i = 0; i < kStripRows; ++i) {
      products[i][0] += left[i] * low;
      products[i][1] += left[i] * high;
    }
    left += kStripRows;
    right += 2 * kWidth;
  }
  for (int i = 0; i < kStripRows; ++i) {
    for (int j = 0; j < 2; ++j) {
      Vector sum;
      C* place = sums + i * kTileColumns + j * kWidth;
      std::memcpy(&sum, place, sizeof(sum));
      sum += products[i][j];
      std::memcpy(place, &sum, sizeof(sum));
    }
  }
}

template <typename C>
struct Buffers {
  alignas(64) C left[kTileRows * kBlockDepth];
  alignas(64) C right[kTileColumns * kBlockDepth];
  alignas(64) C sums[kTileRows * kTileColumns];
};
static_assert(kBlockDepth >= kTileRows, "`right` takes a tile of what is added, too");

struct Addresses {
  const void* left;
  const void* right;
  const void* added;
  void* out;
};

template <typename Address>
Address AddressOf(const ProductOperand& operand, const Address* addresses, Address workspace,
                  int64_t batch) {
  if (operand.address < 0 && !operand.is_in_workspace) return nullptr;
  const int64_t offset = operand.offset + AxisCursor(operand.batches, batch).offset();
  using Byte =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<Address>>, const char, char>;
  auto* bytes =
      static_cast<Byte*>(operand.is_in_workspace ? workspace : addresses[operand.address]);
  return bytes + offset * ElementBytes(operand.dtype);
}

bool IsCloser(const AxisGroup& a, const AxisGroup& b) {
  const auto distance = [](const AxisGroup& group) {
    return group.inner_stride() == 0 ? INT64_MAX : std::abs(group.inner_stride());
  };
  return distance(a) < distance(b);
}

// As C is unsigned where integers are multiplied.
template <typename C>
using Stored = std::conditional_t<std::is_integral_v<C>, int64_t, C>;

template <typename C>
void StoreTile(const Product& product, const Addresses& addresses, int64_t row, int64_t num_rows,
               int64_t column, int64_t num_columns, Buffers<C>& buffers) {
  C alpha;
  C beta;
  if constexpr (std::is_integral_v<C>) {
    alpha = static_cast<C>(product.alpha.integer);
    beta = static_cast<C>(product.beta.integer);
  } else {
    alpha = static_cast<C>(product.alpha.real);
    beta = static_cast<C>(product.beta.real);
  }
  int64_t rows[kTileRows];
  int64_t columns[kTileColumns];
  const bool adds = addresses.added != nullptr && beta != 0;
  C* added = buffers.right;
  if (adds) {
    OffsetsOf(product.added.rows, row, num_rows, rows);
    OffsetsOf(product.added.columns, column, num_columns, columns);
    VisitAnyElement(product.added.dtype, [&]<typename Element>(Element) {
      const auto* elements = static_cast<const Element*>(addresses.added);
      for (int64_t i = 0; i < num_rows; ++i) {
        for (int64_t j = 0; j < num_columns; ++j) {
          added[i * kTileColumns + j] = NumberOf<C>(elements[rows[i] + columns[j]]);
        }
      }
    });
  }
  OffsetsOf(product.out.rows, row, num_rows, rows);
  OffsetsOf(product.out.columns, column, num_columns, columns);
  VisitAnyElement(product.out.dtype, [&]<typename Element>(Element) {
    auto* elements = static_cast<Element*>(addresses.out);
    for (int64_t i = 0; i < num_rows; ++i) {
      C* sums = buffers.sums + i * kTileColumns;
      for (int64_t j = 0; j < num_columns; ++j) sums[j] *= alpha;
      if (adds) {
        for (int64_t j = 0; j < num_columns; ++j) sums[j] += beta * added[i * kTileColumns + j];
      }
      for (int64_t j = 0; j < num_columns; ++j) {
        elements[rows[i] + columns[j]] = ElementOf<Element>(static_cast<Stored<C>>(sums[j]));
      }
    }
  });
}

template <typename C>
void RunTile(const Product& product, const Addresses& addresses, int64_t row, int64_t column,
             const TaskRunner& runner, Buffers<C>& buffers) {
  const int64_t num_rows = std::min(kTileRows, product.num_rows - row);
  const int64_t num_columns = std::min(kTileColumns, product.num_columns - column);
  int64_t rows[kTileRows];
  int64_t columns[kTileColumns];
  int64_t steps[kBlockDepth];
  OffsetsOf(product.left.rows, row, num_rows, rows);
  OffsetsOf(product.right.columns, column, num_columns, columns);
  const bool rows_are_closer = IsCloser(product.left.rows, product.left.columns);
  const bool columns_are_closer = IsCloser(product.right.columns, product.right.rows);
  std::fill_n(buffers.sums, RoundUp(num_rows, kStripRows) * kTileColumns, C{0});
  for (int64_t k = 0; k < product.depth; k += kBlockDepth) {
    if (runner.MustStop()) return;
    const int64_t depth = std::min(kBlockDepth, product.depth - k);
    OffsetsOf(product.left.columns, k, depth, steps);
    Pack(product.left, addresses.left, rows, num_rows, rows_are_closer, steps, depth, kStripRows,
         buffers.left);
    OffsetsOf(product.right.rows, k, depth, steps);
    Pack(product.right, addresses.right, columns, num_columns, columns_are_closer, steps, depth,
         kStripColumns<C>, buffers.right);
    for (int64_t j = 0; j < num_columns; j += kStripColumns<C>) {
      for (int64_t i = 0; i < num_rows; i += kStripRows) {
        MultiplyStrips(buffers.left + i * depth, buffers.right + j * depth, depth,
                       buffers.sums + i * kTileColumns + j);
      }
    }
  }
  StoreTile(product, addresses, row, num_rows, column, num_columns, buffers);
}

template <typename C>
void Run(const Product& product, const void* const* inputs, void* const* outputs,
         const void* workspace, TaskRunner& runner) {
  const int64_t row_tiles = CeilDivide(product.num_rows, kTileRows);
  const int64_t column_tiles = CeilDivide(product.num_columns, kTileColumns);
  const int64_t num_tiles = product.num_batches * row_tiles * column_tiles;
  const int64_t tile_products = std::min(product.num_rows, kTileRows) *
                                std::min(product.num_columns, kTileColumns) *
                                std::max<int64_t>(1, product.depth);
  const int64_t per_task =
      std::max<int64_t>(1, kTaskProducts / std::max<int64_t>(1, tile_products));
  RunTasks(runner, CeilDivide(num_tiles, per_task), [&](int64_t task) {
    Buffers<C> buffers;
    const int64_t end = std::min((task + 1) * per_task, num_tiles);
    for (int64_t tile = task * per_task; tile < end; ++tile) {
      const int64_t batch = tile / (row_tiles * column_tiles);
      Addresses addresses;
      addresses.left = AddressOf(product.left, inputs, workspace, batch);
      addresses.right = AddressOf(product.right, inputs, workspace, batch);
      addresses.added = AddressOf(product.added, inputs, workspace, batch);
      addresses.out = AddressOf<void*>(product.out, outputs, nullptr, batch);
      RunTile<C>(product, addresses, tile / column_tiles % row_tiles * kTileRows,
                 tile % column_tiles * kTileColumns, runner, buffers);
    }
  });
}

}  // namespace

void RunProduct(const Product& product, const void* const* inputs, void* const* outputs,
                const void* workspace, TaskRunner& runner) {
  const Dtype left = product.left.dtype;
  const Dtype right = product.right.dtype;
  // What is added may be of a more general kind than the factors.
  const bool adds = product.added.address >= 0 || product.added.is_in_workspace;
  const Dtype added = adds ? product.added.dtype : left;
  if (left == Dtype::kDouble || right == Dtype::kDouble || added == Dtype::kDouble) {
    Run<double>(product, inputs, outputs, workspace, runner);
  } else if (IsFloating(left) || IsFloating(right) || IsFloating(added)) {
    Run<float>(product, inputs, outputs, workspace, runner);
  } else {
    Run<uint64_t>(product, inputs, outputs, workspace, runner);
  }
}

std::unique_ptr<Kernel> MakeProductKernel(const Product& product) {
  return MakePlannedKernel(
      product.num_batches * product.num_rows * product.num_columns, 0,
      [product](const void* const* inputs, void* const* outputs, void* workspace,
                TaskRunner& runner) { RunProduct(product, inputs, outputs, workspace, runner); });
}

}  // namespace opserve::kernels
