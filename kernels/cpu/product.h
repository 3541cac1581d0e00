// Products of matrices whose rows, columns and depth are any groups of axes.
//
// Products are cut into tiles of the result by shape alone; every element is a sum along all of the
// depth, in blocks of it, as float, as float64 if a factor or what is added is, or as wrapping
// integers. A left factor that several tiles multiply is packed for all of them at first, in the
// workspace.
// Products with vectors are not packed: lines of the matrix are read as they lie, and the sums of
// their blocks are added up as float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/plan.h"

namespace opserve::kernels {

// A matrix for each batch.
struct ProductOperand {
  Dtype dtype = Dtype::kFloat;
  int address = -1;  // among the inputs, or among the outputs for the result; -1: left out
  bool is_in_workspace = false;
  int64_t offset = 0;  // of the first element
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
  // Bytes of the workspace before those that are the product's own, a multiple of 64.
  size_t workspace_begin = 0;
};

// Bytes of the workspace that are a product's own.
size_t WorkspaceBytesOf(const Product& product);

void RunProduct(const Product& product, const void* const* inputs, void* const* outputs,
                void* workspace, TaskRunner& runner);

std::unique_ptr<Kernel> MakeProductKernel(const Product& product);

}  // namespace opserve::kernels
