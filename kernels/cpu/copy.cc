#include "kernels/cpu/copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/cpu/elements.h"
#include "kernels/cpu/strided.h"
#include "kernels/cpu/tasks.h"
#include "kernels/cpu/transpose_plane.h"

namespace opserve::kernels {
namespace {

// Side of the blocks in which planes are copied whose two sides run along different axes.
constexpr int64_t kBlockSide = 32;

// rows x columns elements.
struct Plane {
  CopyAxis rows;
  CopyAxis columns;
};

template <typename T>
T Copied(T element) {
  if constexpr (std::is_same_v<T, BoolByte>) {
    return BoolByte{static_cast<uint8_t>(element.byte != 0)};
  } else {
    return element;
  }
}

template <typename T>
void CopyPlane(const T* from, const Plane& plane, T* to) {
  const CopyAxis rows = plane.rows;
  const CopyAxis columns = plane.columns;
  if constexpr (!std::is_same_v<T, BoolByte>) {
    const bool is_transposed = columns.to == 1 && rows.from == 1;
    if (is_transposed && std::abs(columns.from) > 1) {
      return TransposePlane(from, columns.from, rows.extent, columns.extent, to, rows.to);
    }
  }
  if constexpr (kHasEven<T>) {
    if (columns.to == 1 && columns.from == 2) {
      for (int64_t i = 0; i < rows.extent; ++i) {
        CopyEven(from + i * rows.from, columns.extent, to + i * rows.to);
      }
      return;
    }
  }
  if (columns.to == 1 && columns.from == 1) {
    for (int64_t i = 0; i < rows.extent; ++i) {
      const T* source = from + i * rows.from;
      T* target = to + i * rows.to;
      if constexpr (std::is_same_v<T, BoolByte>) {
        for (int64_t j = 0; j < columns.extent; ++j) target[j] = Copied(source[j]);
      } else {
        std::memcpy(target, source, columns.extent * sizeof(T));
      }
    }
  } else if (columns.from == 0) {
    for (int64_t i = 0; i < rows.extent; ++i) {
      const T element = Copied(from[i * rows.from]);
      T* target = to + i * rows.to;
      for (int64_t j = 0; j < columns.extent; ++j) target[j * columns.to] = element;
    }
  } else if (columns.to == 1 && columns.from == -1) {
    for (int64_t i = 0; i < rows.extent; ++i) {
      const T* source = from + i * rows.from;
      T* target = to + i * rows.to;
      for (int64_t j = 0; j < columns.extent; ++j) target[j] = Copied(source[-j]);
    }
  } else {
    for (int64_t i0 = 0; i0 < rows.extent; i0 += kBlockSide) {
      const int64_t i1 = std::min(i0 + kBlockSide, rows.extent);
      for (int64_t j0 = 0; j0 < columns.extent; j0 += kBlockSide) {
        const int64_t j1 = std::min(j0 + kBlockSide, columns.extent);
        for (int64_t i = i0; i < i1; ++i) {
          const T* source = from + i * rows.from;
          T* target = to + i * rows.to;
          for (int64_t j = j0; j < j1; ++j) {
            target[j * columns.to] = Copied(source[j * columns.from]);
          }
        }
      }
    }
  }
}

void ConvertPlane(const Piece& piece, const void* from, const Plane& plane, void* to) {
  VisitNumber(piece.from_dtype, [&]<typename C>(C) {
    constexpr int64_t kRun = 256;
    C numbers[kRun];
    for (int64_t i = 0; i < plane.rows.extent; ++i) {
      for (int64_t j = 0; j < plane.columns.extent; j += kRun) {
        const int64_t count = std::min(kRun, plane.columns.extent - j);
        VisitAnyElement(piece.from_dtype, [&]<typename Element>(Element) {
          LoadRun(static_cast<const Element*>(from) + i * plane.rows.from + j * plane.columns.from,
                  plane.columns.from, count, numbers);
        });
        VisitAnyElement(piece.to_dtype, [&]<typename Element>(Element) {
          StoreRun(numbers, 1, count,
                   static_cast<Element*>(to) + i * plane.rows.to + j * plane.columns.to,
                   plane.columns.to);
        });
      }
    }
  });
}

// `from` and `to` are the addresses of the plane's first elements.
void MovePlane(const Piece& piece, const void* from, const Plane& plane, void* to) {
  if (piece.from_dtype != piece.to_dtype) return ConvertPlane(piece, from, plane, to);
  const auto copy = [&]<typename T>(T) {
    CopyPlane(static_cast<const T*>(from), plane, static_cast<T*>(to));
  };
  if (piece.to_dtype == Dtype::kBool) return copy(BoolByte{});
  switch (ElementBytes(piece.to_dtype)) {
    case 1:
      return copy(uint8_t{});
    case 2:
      return copy(uint16_t{});
    case 4:
      return copy(uint32_t{});
    default:
      return copy(uint64_t{});
  }
}

bool CanMerge(const CopyAxis& outer, const CopyAxis& inner) {
  return outer.from == inner.from * inner.extent && outer.to == inner.to * inner.extent;
}

}  // namespace

Piece MakePiece(const TensorRef& input, const TensorRef& output) {
  Piece piece;
  piece.input = input.address;
  piece.pattern = 0;
  piece.from_dtype = input.layout.dtype;
  piece.output = output.address;
  piece.to_dtype = output.layout.dtype;
  const Layout from = BroadcastTo(input.layout, output.layout);
  for (int d = 0; d < output.layout.rank; ++d) {
    piece.axes.push_back({output.layout.shape[d], from.strides[d], output.layout.strides[d]});
  }
  return piece;
}

Piece MakeFill(const TensorRef& output, uint64_t pattern) {
  Piece piece;
  piece.pattern = pattern;
  piece.from_dtype = output.layout.dtype;
  piece.output = output.address;
  piece.to_dtype = output.layout.dtype;
  for (int d = 0; d < output.layout.rank; ++d) {
    piece.axes.push_back({output.layout.shape[d], 0, output.layout.strides[d]});
  }
  return piece;
}

uint64_t PatternOf(const Scalar& scalar, Dtype dtype) {
  uint64_t pattern = 0;
  if (IsFloating(scalar.dtype)) {
    StoreNumber(scalar.real, dtype, &pattern, 0);
  } else {
    StoreNumber(scalar.integer, dtype, &pattern, 0);
  }
  return pattern;
}

void PreparePiece(Piece& piece) {
  std::vector<CopyAxis>& axes = piece.axes;
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.extent == 1; });
  std::stable_sort(axes.begin(), axes.end(), [](const CopyAxis& a, const CopyAxis& b) {
    return std::abs(a.to) > std::abs(b.to);
  });
  size_t last = 0;
  for (size_t i = 1; i < axes.size(); ++i) {
    if (CanMerge(axes[last], axes[i])) {
      axes[i].extent *= axes[last].extent;
      axes[last] = axes[i];
    } else {
      axes[++last] = axes[i];
    }
  }
  if (!axes.empty()) axes.resize(last + 1);
  while (axes.size() < 2) axes.insert(axes.begin(), CopyAxis{});
  // The rows of the planes run along the axis on which the source lies closest together.
  const auto distance = [](const CopyAxis& axis) {
    return axis.from == 0 ? INT64_MAX : std::abs(axis.from);
  };
  const auto closest = std::min_element(
      axes.begin(), axes.end(),
      [&](const CopyAxis& a, const CopyAxis& b) { return distance(a) < distance(b); });
  if (closest < axes.end() - 2) std::rotate(closest, closest + 1, axes.end() - 1);
}

void RunPiece(const Piece& piece, const void* const* inputs, void* const* outputs,
              TaskRunner& runner) {
  const std::vector<CopyAxis>& axes = piece.axes;
  const size_t num_outer = axes.size() - 2;
  const CopyAxis rows = axes[num_outer];
  const CopyAxis columns = axes[num_outer + 1];
  int64_t num_planes = 1;
  for (size_t d = 0; d < num_outer; ++d) num_planes *= axes[d].extent;
  if (num_planes * rows.extent * columns.extent == 0) return;

  const int64_t part_columns = std::min(columns.extent, kTaskElements);
  const int64_t part_rows = std::min(rows.extent, PiecesPerTask(part_columns));
  const int64_t column_parts = CeilDivide(columns.extent, part_columns);
  const int64_t parts = column_parts * CeilDivide(rows.extent, part_rows);
  const int64_t planes = parts > 1 ? 1 : PiecesPerTask(part_columns * part_rows);

  const auto* from = static_cast<const char*>(
      piece.input < 0 ? static_cast<const void*>(&piece.pattern) : inputs[piece.input]);
  auto* to = static_cast<char*>(outputs[piece.output]);
  const int64_t from_bytes = ElementBytes(piece.from_dtype);
  const int64_t to_bytes = ElementBytes(piece.to_dtype);
  RunTasks(runner, CeilDivide(num_planes, planes) * parts, [&](int64_t task) {
    const int64_t row = task % parts / column_parts * part_rows;
    const int64_t column = task % column_parts * part_columns;
    const Plane plane = {
        {std::min(part_rows, rows.extent - row), rows.from, rows.to},
        {std::min(part_columns, columns.extent - column), columns.from, columns.to}};
    const int64_t begin = task / parts * planes;
    const int64_t end = std::min(begin + planes, num_planes);
    for (int64_t i = begin; i < end; ++i) {
      int64_t from_offset = piece.from_offset + row * rows.from + column * columns.from;
      int64_t to_offset = piece.to_offset + row * rows.to + column * columns.to;
      int64_t index = i;
      for (size_t d = num_outer; d-- > 0;) {
        from_offset += index % axes[d].extent * axes[d].from;
        to_offset += index % axes[d].extent * axes[d].to;
        index /= axes[d].extent;
      }
      MovePlane(piece, from + from_offset * from_bytes, plane, to + to_offset * to_bytes);
    }
  });
}

std::unique_ptr<Kernel> MakeCopyKernel(int64_t num_elements, std::vector<Piece> pieces) {
  for (Piece& piece : pieces) PreparePiece(piece);
  return MakePlannedKernel(
      num_elements, 0,
      [pieces = std::move(pieces)](const void* const* inputs, void* const* outputs,
                                   void* /*workspace*/, TaskRunner& runner) {
        for (const Piece& piece : pieces) {
          RunPiece(piece, inputs, outputs, runner);
        }
      });
}

}  // namespace opserve::kernels
