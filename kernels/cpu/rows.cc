#include "kernels/cpu/rows.h"

#include <algorithm>

namespace opserve::kernels {
namespace {

// Calls block(offset in the operand, row and column of the tile, rows and columns of the block) for
// blocks whose rows and columns have one stride each.
template <typename Block>
void ForEachBlock(const RowOperand& operand, int64_t row, int64_t num_rows, int64_t column,
                  int64_t num_columns, Block block) {
  AxisCursor rows(operand.rows, row);
  for (int64_t i = 0; i < num_rows;) {
    const int64_t row_run = std::min(rows.run(), num_rows - i);
    AxisCursor columns(operand.columns, column);
    for (int64_t j = 0; j < num_columns;) {
      const int64_t column_run = std::min(columns.run(), num_columns - j);
      block(rows.offset() + columns.offset(), i, j, row_run, column_run);
      columns.Advance(column_run);
      j += column_run;
    }
    rows.Advance(row_run);
    i += row_run;
  }
}

}  // namespace

template <typename C>
void LoadTile(const RowOperand& operand, const void* address, int64_t row, int64_t num_rows,
              int64_t column, int64_t count, C* buffer) {
  VisitAnyElement(operand.dtype, [&]<typename Element>(Element) {
    const auto* elements = static_cast<const Element*>(address);
    ForEachBlock(operand, row, num_rows, column, count,
                 [&](int64_t offset, int64_t i, int64_t j, int64_t rows, int64_t columns) {
                   const int64_t row_stride = operand.rows.inner_stride();
                   const int64_t column_stride = operand.columns.inner_stride();
                   if (rows > 1 && row_stride > 0 && row_stride < column_stride) {
                     for (int64_t c = 0; c < columns; ++c) {
                       LoadRun(elements + offset + c * column_stride, row_stride, rows,
                               buffer + i * count + j + c, count);
                     }
                   } else {
                     for (int64_t r = 0; r < rows; ++r) {
                       LoadRun(elements + offset + r * row_stride, column_stride, columns,
                               buffer + (i + r) * count + j);
                     }
                   }
                 });
  });
}

template <typename C>
void StoreTile(const RowOperand& operand, const C* buffer, int64_t row, int64_t num_rows,
               int64_t column, int64_t count, void* address) {
  VisitAnyElement(operand.dtype, [&]<typename Element>(Element) {
    auto* elements = static_cast<Element*>(address);
    ForEachBlock(operand, row, num_rows, column, count,
                 [&](int64_t offset, int64_t i, int64_t j, int64_t rows, int64_t columns) {
                   const int64_t row_stride = operand.rows.inner_stride();
                   const int64_t column_stride = operand.columns.inner_stride();
                   if (rows > 1 && row_stride > 0 && row_stride < column_stride) {
                     for (int64_t c = 0; c < columns; ++c) {
                       StoreRun(buffer + i * count + j + c, count, rows,
                                elements + offset + c * column_stride, row_stride);
                     }
                   } else {
                     for (int64_t r = 0; r < rows; ++r) {
                       StoreRun(buffer + (i + r) * count + j, 1, columns,
                                elements + offset + r * row_stride, column_stride);
                     }
                   }
                 });
  });
}

template <typename C>
C LoadOfRow(const RowOperand& operand, const void* const* addresses, int64_t row) {
  if (operand.address < 0) return static_cast<C>(operand.absent);
  return LoadNumber<C>(operand.dtype, addresses[operand.address],
                       AxisCursor(operand.rows, row).offset());
}

template <typename C>
void StoreOfRow(C number, const RowOperand& operand, void* const* addresses, int64_t row) {
  StoreNumber(number, operand.dtype, addresses[operand.address],
              AxisCursor(operand.rows, row).offset());
}

template <typename C>
void StoreOfColumn(C number, const RowOperand& operand, void* const* addresses, int64_t column) {
  StoreNumber(number, operand.dtype, addresses[operand.address],
              AxisCursor(operand.columns, column).offset());
}

double TotalOf(const TensorRef& tensor, const void* const* addresses) {
  const AxisGroup group = GroupOf(tensor.layout);
  double total = 0;
  for (int64_t i = 0; i < NumElements(tensor.layout); ++i) {
    total += LoadNumber<double>(tensor.layout.dtype, addresses[tensor.address],
                                AxisCursor(group, i).offset());
  }
  return total;
}

template void LoadTile(const RowOperand&, const void*, int64_t, int64_t, int64_t, int64_t, float*);
template void LoadTile(const RowOperand&, const void*, int64_t, int64_t, int64_t, int64_t, double*);
template void StoreTile(const RowOperand&, const float*, int64_t, int64_t, int64_t, int64_t, void*);
template void StoreTile(const RowOperand&, const double*, int64_t, int64_t, int64_t, int64_t,
                        void*);
template float LoadOfRow(const RowOperand&, const void* const*, int64_t);
template double LoadOfRow(const RowOperand&, const void* const*, int64_t);
template void StoreOfRow(float, const RowOperand&, void* const*, int64_t);
template void StoreOfRow(double, const RowOperand&, void* const*, int64_t);
template void StoreOfColumn(float, const RowOperand&, void* const*, int64_t);
template void StoreOfColumn(double, const RowOperand&, void* const*, int64_t);

}  // namespace opserve::kernels
