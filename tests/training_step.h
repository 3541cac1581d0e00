// A step of training as a program.
#pragma once

#include <cstdint>

#include "client/cpp/program.h"

namespace opserve {

// The linear layer y = x * w, and what its training takes in.
struct TrainingShape {
  int64_t batch = 4;
  int64_t in = 8;
  int64_t out = 3;
};

// A step with AdamW, which returns the squared error. Its inputs are x, the target, the number of
// steps done, and w with its moments: all but the first two are replaced. The moments are given up,
// so that AdamW works in them; w is not, if `donates` is false.
inline Program AdamWStep(const TrainingShape& shape, bool donates) {
  Program p;
  const auto f = v1::DATA_TYPE_FLOAT;
  const InputOf x = p.Input(f, {shape.batch, shape.in});
  const InputOf target = p.Input(f, {shape.batch, shape.out});
  const InputOf done = p.Input(v1::DATA_TYPE_INT64, {1});
  const InputOf w = p.Input(f, {shape.in, shape.out});
  const InputOf m = p.Input(f, {shape.in, shape.out});
  const InputOf v = p.Input(f, {shape.in, shape.out});
  const OutputOf difference = p.Sub(p.Matmul(x, w), target);
  p.Return(p.ReduceSum(p.Mul(difference, difference), {.dims = {0, 1}, .dtype = f}));
  // Its old content is read further on.
  p.Replace(done, p.Adds(done, {.other = int64_t{1}}));
  const auto changed =
      p.ApplyAdamWV2(w, m, v, p.Matmul(x.T(), difference), done,
                     {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .weight_decay = 0.01, .eps = 1e-8});
  p.Replace(w, changed.var);
  p.Replace(m, changed.m);
  p.Replace(v, changed.v);
  p.Donate(m);
  p.Donate(v);
  if (donates) p.Donate(w);
  return p;
}

}  // namespace opserve
