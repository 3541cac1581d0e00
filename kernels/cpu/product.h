// Products of matrices whose rows, columns and depth are any groups of axes.
//
// Products are cut into tiles of the result by shape alone; every element is a sum along all of the
// depth, in blocks of it, as float, as float64 if a factor or what is added is, or as wrapping
// integers.
// Products with vectors are not packed: lines of the matrix are read as they lie, and the sums of
// their blocks are added up as float64.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/plan.h"

namespace opserve::kernels {

// A matrix for each batch.
struct ProductOperand {
  Dtype dtype = Dtype::kFloat;
  int address = -1;  // among the inputs, or among the outputs for the result; -1: left out
  bool is_in_workspace = false;  // at its beginning instead
  int64_t offset = 0;            // of the first element
  AxisGroup batches;
  AxisGroup rows;
  AxisGroup columns;
};

// out = alpha * left x right + beta * added. `added` is not read if it is left out or beta is 0.
struct Product {
  int64_t num_batches = 1;
  int64_t num_rows = 1;
  int64_t depth = 1;
  int64_t num_columns = 1;
  ProductOperand left;   // rows x depth
  ProductOperand right;  // depth x columns
  ProductOperand added;
  ProductOperand out;
  Scalar alpha = {Dtype::kFloat, 1, 1};
  Scalar beta = {Dtype::kFloat, 1, 1};
};

void RunProduct(const Product& product, const void* const* inputs, void* const* outputs,
                const void* workspace, TaskRunner& runner);

std::unique_ptr<Kernel> MakeProductKernel(const Product& product);

}  // namespace opserve::kernels
