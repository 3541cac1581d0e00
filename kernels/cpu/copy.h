// Copies between tensors: what operators that only move elements are planned as.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/plan.h"

namespace opserve::kernels {

struct CopyAxis {
  int64_t extent = 1;
  int64_t from = 0;  // strides in elements; may be negative
  int64_t to = 0;
};

// A box of elements that is copied to another, converted where the dtypes differ.
struct Piece {
  int input = -1;    // place of its address; -1: every element is `pattern`
  uint64_t pattern;  // an element of the output's dtype, in the first bytes
  Dtype from_dtype = Dtype::kFloat;
  int64_t from_offset = 0;  // in elements
  int output = 0;
  Dtype to_dtype = Dtype::kFloat;
  int64_t to_offset = 0;
  std::vector<CopyAxis> axes;
};

// All of `input`, seen with the shape of `output`, to `output`.
Piece MakePiece(const TensorRef& input, const TensorRef& output);
// The tensor filled with the bytes of an element.
Piece MakeFill(const TensorRef& output, uint64_t pattern);
// The bytes of `scalar` as an element.
uint64_t PatternOf(const Scalar& scalar, Dtype dtype);

// Runs the pieces, later ones over earlier ones.
std::unique_ptr<Kernel> MakeCopyKernel(int64_t num_elements, std::vector<Piece> pieces);

// Puts the axes of a piece in the order in which they are walked. Done by MakeCopyKernel.
void PreparePiece(Piece& piece);
// Runs a prepared piece.
void RunPiece(const Piece& piece, const void* const* inputs, void* const* outputs,
              TaskRunner& runner);

}  // namespace opserve::kernels
