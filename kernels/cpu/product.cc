#include "kernels/cpu/product.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/lanes.h"
#include "kernels/cpu/packing.h"
#include "kernels/cpu/simd.h"
#include "kernels/cpu/strips.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

// The largest tile of the result: both factors are packed once for all of it. Narrower ones may be
// higher, but have no more elements.
constexpr int64_t kTileRows = 384;
constexpr int64_t kTileColumns = 256;
constexpr int64_t kLeastTileColumns = 64;
constexpr int64_t kMostTileRows = kTileRows * kTileColumns / kLeastTileColumns;
// Rows of the left factor that are packed at a time.
constexpr int64_t kBlockRows = 96;

// Tiles are halved until there are so many, for the threads, or as many as tasks, or they are one
// block.
constexpr int64_t kEnoughTiles = 8;

// Products of a task.
constexpr int64_t kTaskProducts = int64_t{1} << 22;

// The depth of a product with a vector that is summed up in registers at a time.
constexpr int64_t kVectorDepth = 2048;

// Lines of a product with a vector that are summed up together.
constexpr int kLinesTogether = 4;

// Of groups of 2 * kHalf lanes, the sums of both halves: those of `a`, then those of `b`.
template <int kHalf, typename V, int... kIndices>
[[gnu::always_inline]] inline V AddHalves(V a, V b, std::integer_sequence<int, kIndices...>) {
  constexpr int kWidth = sizeof...(kIndices);
  constexpr auto kLane = [](int i, int half) {
    const int at = i % (kWidth / 2);
    return (i < kWidth / 2 ? 0 : kWidth) + (at / kHalf * 2 + half) * kHalf + at % kHalf;
  };
  return __builtin_shufflevector(a, b, kLane(kIndices, 0)...) +
         __builtin_shufflevector(a, b, kLane(kIndices, 1)...);
}

// Stores the sums of the first kLinesTogether groups of 2 * kHalf lanes.
template <int kHalf, typename C, typename V>
[[gnu::always_inline]] inline void StoreSums(V groups, C* sums) {
  if constexpr (kHalf == 0) {
    std::memcpy(sums, &groups, kLinesTogether * sizeof(C));
  } else {
    constexpr auto kLanesOf = std::make_integer_sequence<int, sizeof(V) / sizeof(C)>();
    StoreSums<kHalf / 2>(AddHalves<kHalf>(groups, groups, kLanesOf), sums);
  }
}

// sums[j] = the sum of the products of lines[j] and `factors`. The lines share what is read of the
// factors, their sums' waiting times, and the steps that add up the lanes: of short lines those are
// most of the work.
template <typename C>
void Dots(const C* const* lines, const C* factors, int64_t count, C* sums) {
  typedef C Vector __attribute__((vector_size(sizeof(FloatVector))));
  constexpr int kWidth = sizeof(Vector) / sizeof(C);
  constexpr auto kLanesOf = std::make_integer_sequence<int, kWidth>();
  const auto load = [](const C* from) {
    Vector vector;
    std::memcpy(&vector, from, sizeof(vector));
    return vector;
  };
  static_assert(kLinesTogether == 4);
  const C* const a = lines[0];
  const C* const b = lines[1];
  const C* const c = lines[2];
  const C* const d = lines[3];
  Vector parts[kLinesTogether] = {};
  int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Vector factor = load(factors + i);
    parts[0] += load(a + i) * factor;
    parts[1] += load(b + i) * factor;
    parts[2] += load(c + i) * factor;
    parts[3] += load(d + i) * factor;
  }
  const Vector first = AddHalves<kWidth / 2>(parts[0], parts[1], kLanesOf);
  const Vector second = AddHalves<kWidth / 2>(parts[2], parts[3], kLanesOf);
  if constexpr (kWidth == 2) {
    std::memcpy(sums, &first, sizeof(first));
    std::memcpy(sums + 2, &second, sizeof(second));
  } else {
    StoreSums<kWidth / 8>(AddHalves<kWidth / 4>(first, second, kLanesOf), sums);
  }
  for (; i < count; ++i) {
    for (int j = 0; j < kLinesTogether; ++j) sums[j] += lines[j][i] * factors[i];
  }
}

// Lines of a factor, and their elements along the depth.
struct Lines {
  Dtype dtype;
  const void* address;
  const int64_t* offsets;  // of each line's first element
  const AxisGroup* depth;
};

// Copies `count` elements of a line from `begin` on to `buffer`.
template <typename C>
void CopyLine(const Lines& lines, int64_t line, int64_t begin, int64_t count, C* buffer) {
  VisitAnyElement(lines.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(lines.address) + lines.offsets[line];
    AxisCursor cursor(*lines.depth, begin);
    for (int64_t i = 0; i < count;) {
      const int64_t run = std::min(cursor.run(), count - i);
      LoadRun(elements + cursor.offset(), lines.depth->inner_stride(), run, buffer + i);
      cursor.Advance(run);
      i += run;
    }
  });
}

// The same elements: their own memory where possible, otherwise a copy in `buffer`. (A line may
// take no longer than a call, so that the first of these is part of the caller.)
template <typename C>
const C* ReadLine(const Lines& lines, int64_t line, int64_t begin, int64_t count, C* buffer) {
  const AxisGroup& depth = *lines.depth;
  if (lines.dtype == kDtypeOf<C> && depth.rank == 1 && depth.strides[0] == 1) {
    return static_cast<const C*>(lines.address) + lines.offsets[line] + begin;
  }
  CopyLine(lines, line, begin, count, buffer);
  return buffer;
}

// parts[j] = the sum over `count` positions of the depth from `begin` on of the elements of line j
// times `factors`, for lines that lie side by side.
template <typename C>
void AddNeighbours(const Lines& lines, int64_t num_lines, int64_t begin, int64_t count,
                   const C* factors, C* parts) {
  std::fill_n(parts, num_lines, C{0});
  VisitAnyElement(lines.dtype, [&]<typename Element>(Element) {
    const auto* first = static_cast<const Element*>(lines.address) + lines.offsets[0];
    AxisCursor cursor(*lines.depth, begin);
    for (int64_t i = 0; i < count; ++i, cursor.Advance(1)) {
      const Element* row = first + cursor.offset();
      for (int64_t j = 0; j < num_lines; ++j) parts[j] += factors[i] * NumberOf<C>(row[j]);
    }
  });
}

// The same of any lines.
template <typename C>
void AddLines(const Lines& lines, int64_t num_lines, int64_t begin, int64_t count, const C* factors,
              C* parts) {
  C buffers[kLinesTogether][kVectorDepth];
  int64_t line = 0;
  for (; line + kLinesTogether <= num_lines; line += kLinesTogether) {
    const C* read[kLinesTogether];
    for (int j = 0; j < kLinesTogether; ++j) {
      read[j] = ReadLine(lines, line + j, begin, count, buffers[j]);
    }
    Dots(read, factors, count, parts + line);
  }
  for (; line < num_lines; ++line) {
    const C* const read = ReadLine(lines, line, begin, count, buffers[0]);
    parts[line] = SumOf<C>(count, [&](auto at) { return at(read) * at(factors); });
  }
}

// sums[j] = line j of a matrix times the one of a vector. Parts of the sums are added up as
// float64.
template <typename C>
void MultiplyVector(const Lines& matrix, int64_t num_lines, const Lines& vector, int64_t depth,
                    const TaskRunner& runner, C* sums) {
  double totals[kTileRows] = {};
  C parts[kTileRows];
  C factor_buffer[kVectorDepth];
  const bool is_dense = matrix.depth->rank == 1 && matrix.depth->strides[0] == 1;
  const bool are_neighbours =
      !is_dense && num_lines > 1 && AreNeighbours(matrix.offsets, num_lines);
  const int64_t block = are_neighbours ? kBlockDepth : kVectorDepth;
  for (int64_t k = 0; k < depth; k += block) {
    if (runner.MustStop()) return;
    const int64_t count = std::min(block, depth - k);
    const C* factors = ReadLine(vector, 0, k, count, factor_buffer);
    if (are_neighbours) {
      AddNeighbours(matrix, num_lines, k, count, factors, parts);
    } else {
      AddLines(matrix, num_lines, k, count, factors, parts);
    }
    for (int64_t j = 0; j < num_lines; ++j) totals[j] += static_cast<double>(parts[j]);
  }
  for (int64_t j = 0; j < num_lines; ++j) sums[j] = static_cast<C>(totals[j]);
}

template <typename C>
struct Buffers {
  alignas(64) C left[kBlockRows * kBlockDepth];
  alignas(64) C right[kTileColumns * kBlockDepth];
  alignas(64) C sums[kTileRows * kTileColumns];
};

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

// As C is unsigned where integers are multiplied.
template <typename C>
using Stored = std::conditional_t<std::is_integral_v<C>, int64_t, C>;

template <typename C>
void StoreTile(const Product& product, const Addresses& addresses, const Tile& tile, C* sums,
               int64_t pitch) {
  const int64_t num_rows = tile.num_rows;
  const int64_t num_columns = tile.num_columns;
  C alpha;
  C beta;
  if constexpr (std::is_integral_v<C>) {
    alpha = static_cast<C>(product.alpha.integer);
    beta = static_cast<C>(product.beta.integer);
  } else {
    alpha = static_cast<C>(product.alpha.real);
    beta = static_cast<C>(product.beta.real);
  }
  int64_t rows[kMostTileRows];
  int64_t columns[kTileColumns];
  OffsetsOf(product.out.rows, tile.row, num_rows, rows);
  OffsetsOf(product.out.columns, tile.column, num_columns, columns);
  OffsetRun runs[kTileColumns / kLeastRun];
  const int64_t num_runs = FindRuns(columns, num_columns, kTileColumns / kLeastRun, runs);
  const bool adds = addresses.added != nullptr && beta != 0;
  int64_t added_rows[kMostTileRows];
  int64_t added_columns[kTileColumns];
  bool are_neighbours = false;
  if (adds) {
    OffsetsOf(product.added.rows, tile.row, num_rows, added_rows);
    OffsetsOf(product.added.columns, tile.column, num_columns, added_columns);
    are_neighbours = AreNeighbours(added_columns, num_columns);
  }
  const auto add_row = [&]<typename Element>(const Element* elements, C* line) {
    if (are_neighbours) {
      elements += added_columns[0];
      for (int64_t j = 0; j < num_columns; ++j) line[j] += beta * NumberOf<C>(elements[j]);
    } else if (product.added.columns.is_broadcast()) {
      const C summand = beta * NumberOf<C>(*elements);
      for (int64_t j = 0; j < num_columns; ++j) line[j] += summand;
    } else {
      for (int64_t j = 0; j < num_columns; ++j) {
        line[j] += beta * NumberOf<C>(elements[added_columns[j]]);
      }
    }
  };
  const auto store_row = [&]<typename Element>(const C* line, Element* elements) {
    const auto element_of = [](C sum) { return ElementOf<Element>(static_cast<Stored<C>>(sum)); };
    for (int64_t i = 0; i < num_runs; ++i) {
      const auto [begin, count, stride] = runs[i];
      Element* first = elements + columns[begin];
      const C* sum = line + begin;
      if (stride == 1) {
        for (int64_t j = 0; j < count; ++j) first[j] = element_of(sum[j]);
      } else {
        for (int64_t j = 0; j < count; ++j) first[j * stride] = element_of(sum[j]);
      }
    }
    if (num_runs > 0) return;
    for (int64_t j = 0; j < num_columns; ++j) elements[columns[j]] = element_of(line[j]);
  };
  // A few rows at a time, which stay in the first-level cache.
  constexpr int64_t kRowsTogether = 16;
  for (int64_t begin = 0; begin < num_rows; begin += kRowsTogether) {
    const int64_t end = std::min(begin + kRowsTogether, num_rows);
    if (alpha != 1) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t j = 0; j < num_columns; ++j) sums[i * pitch + j] *= alpha;
      }
    }
    if (adds) {
      VisitAnyElement(product.added.dtype, [&]<typename Element>(Element) {
        const auto* elements = static_cast<const Element*>(addresses.added);
        for (int64_t i = begin; i < end; ++i) add_row(elements + added_rows[i], sums + i * pitch);
      });
    }
    VisitAnyElement(product.out.dtype, [&]<typename Element>(Element) {
      auto* elements = static_cast<Element*>(addresses.out);
      for (int64_t i = begin; i < end; ++i) store_row(sums + i * pitch, elements + rows[i]);
    });
  }
}

// Whether one left factor, which is not too large, is multiplied for all of the result.
bool HasOneLeft(const Product& product) {
  constexpr int64_t kMostElements = int64_t{8} << 20;
  const bool is_vector = product.num_rows == 1 || product.num_columns == 1;
  return (product.num_batches == 1 || product.left.batches.is_broadcast()) && !is_vector &&
         product.num_rows <= kMostElements / std::max<int64_t>(1, product.depth);
}

// How a result is cut, by shape alone.
struct TilePlan {
  explicit TilePlan(const Product& product) : is_packed(HasOneLeft(product)) {
    // Views of one element may have more products than int64_t.
    const double tasks = static_cast<double>(product.num_batches) *
                         static_cast<double>(product.num_rows) *
                         static_cast<double>(product.num_columns) *
                         static_cast<double>(product.depth) / static_cast<double>(kTaskProducts);
    auto enough = static_cast<int64_t>(std::min<double>(kEnoughTiles, std::ceil(tasks)));
    const auto is_enough = [&] {
      return product.num_batches * CeilDivide(product.num_rows, rows) *
                 CeilDivide(product.num_columns, columns) >=
             enough;
    };
    // Each tile that is below another packs the right factor again, but none a packed left one:
    // high and narrow tiles pack least.
    if (is_packed && enough > 1) {
      columns /= 2;
      while (!is_enough() && columns > kLeastTileColumns) columns /= 2;
      rows *= kTileColumns / columns;
      enough = std::min(enough, kEnoughTiles / 2);
    }
    while (!is_enough() && rows > kBlockRows) rows /= 2;
    if (!is_enough() && columns == kTileColumns) columns /= 2;
    is_packed &= product.num_batches * CeilDivide(product.num_columns, columns) > 1;
  }

  int64_t rows = kTileRows;
  int64_t columns = kTileColumns;
  bool is_packed;  // the left factor, before anything is multiplied
};

// Where the lines of both factors begin that a tile of the result is made of.
struct FactorLines {
  FactorLines(const Product& product, const Tile& tile) {
    OffsetsOf(product.left.rows, tile.row, tile.num_rows, rows);
    OffsetsOf(product.right.columns, tile.column, tile.num_columns, columns);
  }

  int64_t rows[kMostTileRows];
  int64_t columns[kTileColumns];
};

// Of a product with a vector.
template <typename C>
void RunVectorTile(const Product& product, const Addresses& addresses, const Tile& tile,
                   const TaskRunner& runner) {
  const FactorLines lines(product, tile);
  const Lines left{product.left.dtype, addresses.left, lines.rows, &product.left.columns};
  const Lines right{product.right.dtype, addresses.right, lines.columns, &product.right.rows};
  C sums[kTileRows];
  if (product.num_columns == 1) {
    MultiplyVector<C>(left, tile.num_rows, right, product.depth, runner, sums);
  } else {
    MultiplyVector<C>(right, tile.num_columns, left, product.depth, runner, sums);
  }
  if (runner.MustStop()) return;
  StoreTile(product, addresses, tile, sums, tile.num_columns);
}

int64_t PackedRows(const Product& product) {
  return CeilDivide(product.num_rows, kStripRows) * kStripRows;
}

// A packed left factor: block of the depth after block, of each all strips of rows.
template <typename C>
C* PackedStrip(const Product& product, C* packed, int64_t k, int64_t depth, int64_t row) {
  return packed + k * PackedRows(product) + row * depth;
}

template <typename C>
void PackLeft(const Product& product, const void* address, C* packed, TaskRunner& runner) {
  const int64_t row_blocks = CeilDivide(product.num_rows, kBlockRows);
  RunTasks(runner, row_blocks * CeilDivide(product.depth, kBlockDepth), [&](int64_t task) {
    const int64_t k = task / row_blocks * kBlockDepth;
    const int64_t row = task % row_blocks * kBlockRows;
    const int64_t depth = std::min(kBlockDepth, product.depth - k);
    const int64_t num_rows = std::min(kBlockRows, product.num_rows - row);
    int64_t rows[kBlockRows];
    int64_t steps[kBlockDepth];
    OffsetsOf(product.left.rows, row, num_rows, rows);
    OffsetsOf(product.left.columns, k, depth, steps);
    Pack<kStripRows>(product.left, address, rows, num_rows, steps, depth,
                     PackedStrip(product, packed, k, depth, row));
  });
}

// Where sums are stored as they are computed, and the summands: in results of type C with rows that
// are equally far apart and have neighbours as their elements. place = null: in none but these.
template <typename C>
StripSums<C> DirectSums(const Product& product, const Addresses& addresses, const Tile& tile) {
  const auto is_even = [](const ProductOperand& operand) {
    return operand.dtype == kDtypeOf<C> && operand.rows.rank == 1 && operand.columns.rank == 1 &&
           operand.columns.strides[0] <= 1;
  };
  const auto offset = [&](const ProductOperand& operand) {
    return tile.row * operand.rows.strides[0] + tile.column * operand.columns.strides[0];
  };
  const bool adds = addresses.added != nullptr && product.beta.real != 0;
  StripSums<C> sums;
  if (std::is_integral_v<C> || product.alpha.real != 1 || !is_even(product.out) ||
      product.out.columns.strides[0] != 1 || (adds && !is_even(product.added))) {
    return sums;
  }
  sums.place = static_cast<C*>(addresses.out) + offset(product.out);
  sums.pitch = product.out.rows.strides[0];
  if (!adds) return sums;
  sums.added = static_cast<const C*>(addresses.added) + offset(product.added);
  sums.added_pitch = product.added.rows.strides[0];
  sums.is_same_in_row = product.added.columns.strides[0] == 0;
  sums.beta = static_cast<C>(product.beta.real);
  return sums;
}

// `packed`: the left factor, or null.
template <typename C>
void RunTile(const Product& product, const Addresses& addresses, const C* packed, const Tile& tile,
             const TaskRunner& runner, Buffers<C>& buffers) {
  const FactorLines lines(product, tile);
  const int64_t num_rows = tile.num_rows;
  const int64_t num_columns = tile.num_columns;
  int64_t steps[kBlockDepth];
  const int64_t pitch = CeilDivide(num_columns, kStripColumns<C>) * kStripColumns<C>;
  const auto store = [&](int64_t row, int64_t row_end, int64_t column, int64_t column_end) {
    if (row == row_end || column == column_end) return;
    StoreTile(product, addresses,
              {tile.row + row, row_end - row, tile.column + column, column_end - column},
              buffers.sums + row * pitch + column, pitch);
  };
  if (product.depth == 0) {
    std::fill_n(buffers.sums, num_rows * pitch, C{0});
    return store(0, num_rows, 0, num_columns);
  }
  const StripSums<C> direct = DirectSums<C>(product, addresses, tile);
  for (int64_t k = 0; k < product.depth; k += kBlockDepth) {
    const int64_t depth = std::min(kBlockDepth, product.depth - k);
    OffsetsOf(product.right.rows, k, depth, steps);
    Pack<kStripColumns<C>>(product.right, addresses.right, lines.columns, num_columns, steps, depth,
                           buffers.right);
    OffsetsOf(product.left.columns, k, depth, steps);
    for (int64_t block = 0; block < num_rows; block += kBlockRows) {
      if (runner.MustStop()) return;
      const int64_t block_rows = std::min(kBlockRows, num_rows - block);
      const C* left = buffers.left;
      if (packed != nullptr) {
        left = PackedStrip(product, packed, k, depth, tile.row + block);
      } else {
        Pack<kStripRows>(product.left, addresses.left, lines.rows + block, block_rows, steps, depth,
                         buffers.left);
      }
      const bool is_last = k + depth == product.depth;
      const bool is_direct = is_last && direct.place != nullptr;
      const int64_t whole_rows = is_direct ? WholeLines(block_rows, kStripRows, kStripThird) : 0;
      const int64_t whole_columns =
          is_direct ? WholeLines(num_columns, kStripColumns<C>, kStripColumns<C> / 2) : 0;
      for (int64_t j = 0; j < num_columns; j += kStripColumns<C>) {
        for (int64_t i = 0; i < block_rows; i += kStripRows) {
          const int64_t row = block + i;
          C* const place = buffers.sums + row * pitch + j;
          StripSums<C> sums;
          if (i < whole_rows && j < whole_columns) {
            sums = direct;
            sums.place += row * direct.pitch + j;
            if (direct.added != nullptr) {
              sums.added += row * direct.added_pitch + (direct.is_same_in_row ? 0 : j);
            }
          } else {
            sums.place = place;
            sums.pitch = pitch;
          }
          if (k > 0) {
            sums.before = place;
            sums.before_pitch = pitch;
          }
          MultiplyStrips(block_rows - i, num_columns - j, left + i * depth,
                         buffers.right + j * depth, depth, sums);
        }
      }
      // The other sums, while they are in a cache.
      if (is_last) {
        store(block, block + whole_rows, whole_columns, num_columns);
        store(block + whole_rows, block + block_rows, 0, num_columns);
      }
    }
  }
}

template <typename C>
void Run(const Product& product, const void* const* inputs, void* const* outputs, void* workspace,
         TaskRunner& runner) {
  const TilePlan size(product);
  const int64_t row_tiles = CeilDivide(product.num_rows, size.rows);
  const int64_t column_tiles = CeilDivide(product.num_columns, size.columns);
  const int64_t num_tiles = product.num_batches * row_tiles * column_tiles;
  const int64_t tile_products = std::min(product.num_rows, size.rows) *
                                std::min(product.num_columns, size.columns) *
                                std::max<int64_t>(1, product.depth);
  const int64_t per_task =
      std::max<int64_t>(1, kTaskProducts / std::max<int64_t>(1, tile_products));
  const void* const shared = workspace;
  const auto run_task = [&](int64_t task, auto run_tile) {
    const int64_t end = std::min((task + 1) * per_task, num_tiles);
    for (int64_t i = task * per_task; i < end; ++i) {
      const int64_t batch = i / (row_tiles * column_tiles);
      Addresses addresses;
      addresses.left = AddressOf(product.left, inputs, shared, batch);
      addresses.right = AddressOf(product.right, inputs, shared, batch);
      addresses.added = AddressOf(product.added, inputs, shared, batch);
      addresses.out = AddressOf<void*>(product.out, outputs, nullptr, batch);
      Tile tile;
      tile.row = i / column_tiles % row_tiles * size.rows;
      tile.num_rows = std::min(size.rows, product.num_rows - tile.row);
      tile.column = i % column_tiles * size.columns;
      tile.num_columns = std::min(size.columns, product.num_columns - tile.column);
      run_tile(addresses, tile);
    }
  };
  const int64_t num_tasks = CeilDivide(num_tiles, per_task);
  // Two lambdas, as one's memory on the stack costs time even where it is not used.
  if constexpr (!std::is_integral_v<C>) {  // integers have no parts to be added up
    if (product.num_columns == 1 || product.num_rows == 1) {
      return RunTasks(runner, num_tasks, [&](int64_t task) {
        run_task(task, [&](const Addresses& addresses, const Tile& tile) {
          RunVectorTile<C>(product, addresses, tile, runner);
        });
      });
    }
  }
  C* packed = nullptr;
  if (size.is_packed) {
    packed = reinterpret_cast<C*>(static_cast<char*>(workspace) + product.workspace_begin);
    PackLeft(product, AddressOf(product.left, inputs, shared, 0), packed, runner);
  }
  RunTasks(runner, num_tasks, [&](int64_t task) {
    Buffers<C> buffers;
    run_task(task, [&](const Addresses& addresses, const Tile& tile) {
      RunTile<C>(product, addresses, packed, tile, runner, buffers);
    });
  });
}

// Calls visit(C{}), C being the type of the products.
template <typename Visitor>
auto VisitType(const Product& product, Visitor visit) {
  const Dtype left = product.left.dtype;
  const Dtype right = product.right.dtype;
  // What is added may be of a more general kind than the factors.
  const bool adds = product.added.address >= 0 || product.added.is_in_workspace;
  const Dtype added = adds ? product.added.dtype : left;
  if (left == Dtype::kDouble || right == Dtype::kDouble || added == Dtype::kDouble) {
    return visit(double{});
  }
  if (IsFloating(left) || IsFloating(right) || IsFloating(added)) return visit(float{});
  return visit(uint64_t{});
}

}  // namespace

size_t WorkspaceBytesOf(const Product& product) {
  if (!TilePlan(product).is_packed) return 0;
  return VisitType(product, [&]<typename C>(C) {
    return static_cast<size_t>(PackedRows(product) * product.depth) * sizeof(C);
  });
}

void RunProduct(const Product& product, const void* const* inputs, void* const* outputs,
                void* workspace, TaskRunner& runner) {
  VisitType(product, [&]<typename C>(C) { Run<C>(product, inputs, outputs, workspace, runner); });
}

std::unique_ptr<Kernel> MakeProductKernel(const Product& product) {
  return MakePlannedKernel(
      product.num_batches * product.num_rows * product.num_columns, WorkspaceBytesOf(product),
      [product](const void* const* inputs, void* const* outputs, void* workspace,
                TaskRunner& runner) { RunProduct(product, inputs, outputs, workspace, runner); });
}

}  // namespace opserve::kernels
