// Speed of the CPU kernels next to memcpy and to each other, as bytes read and written per second.
//
// Names are operator/variant/dtype/layout/size/threads, e.g.
// "KlDivBackward/plain/float32/contiguous/16Mi/1"; "elements" are those of the output. Compare
// figures of one run only, with --benchmark_enable_random_interleaving=true and repetitions.
// kernel_targets.py reads the targets of the project off the JSON output:
//   T8   bytes per second of X/float32/contiguous/16Mi/1 over those of memcpy/any/float32/.../1
//   T9   time of X/float16 or bfloat16/contiguous/16Mi/1 over that of X/float32/contiguous/16Mi/1
//   T10  time of X/float32/contiguous/16Mi/1 over that of X/float32/contiguous/16Mi/2
//   T11  time of X/float32/<another layout>/16Mi/1 over that of X/float32/contiguous/16Mi/1
// T12, PyTorch's kernels, is in torch_benchmark.cc.

#include <benchmark/benchmark.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/benchmark/kernel_cases.h"

namespace opserve::kernels {
namespace {

void RunMemcpy(benchmark::State& state, int64_t bytes) {
  const Memory from = AllocateTouched(bytes);
  const Memory to = AllocateTouched(bytes);
  for (auto _ : state) {
    std::memcpy(to.get(), from.get(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * bytes);
}

// Views, broadcasts and sums.
std::vector<KernelCase> OtherLayouts() {
  const Dtype dtype = Dtype::kFloat;
  const Layout matrix = Contiguous(dtype, {4096, 4096});
  const Layout transposed = Transposed(dtype, 4096, 4096);
  const Layout scalar = Contiguous(dtype, {});
  const Layout row = Contiguous(dtype, {4096});
  const Layout column = Contiguous(dtype, {4096, 1});
  const Layout narrow = Contiguous(dtype, {kLargeCount / 3, 3});
  const Layout long_rows = Contiguous(dtype, {kLargeCount / 50257, 50257});
  const Layout inner = Contiguous(dtype, {16, 1024, 1024});
  std::vector<KernelCase> cases;
  const auto add = [&](KernelCase c) { cases.push_back(std::move(c)); };
  add(KlDivCase(false, "transposed_target/16Mi", matrix, transposed, matrix));
  add(KlDivTargetCase(false, "transposed_self/16Mi", matrix, transposed, matrix));
  add(L1LossCase("transposed_self/16Mi", matrix, transposed, matrix));
  add(KlDivCase(false, "scalar_gradient/16Mi", scalar, matrix, matrix));
  add(KlDivTargetCase(false, "scalar_gradient/16Mi", scalar, matrix, matrix));
  add(L1LossCase("scalar_gradient/16Mi", scalar, matrix, matrix));
  add(KlDivCase(false, "sum_to_scalar/16Mi", matrix, matrix, scalar));
  add(KlDivCase(false, "sum_to_row/16Mi", matrix, matrix, row));
  add(KlDivCase(false, "sum_to_column/16Mi", matrix, matrix, column));
  add(KlDivCase(false, "rows_of_3_scaled/16Mi", Contiguous(dtype, {3}), narrow, narrow));
  add(KlDivCase(false, "rows_of_3_sum_to_row/16Mi", narrow, narrow, Contiguous(dtype, {3})));
  add(KlDivCase(false, "rows_of_3_sum_to_column/16Mi", narrow, narrow,
                Contiguous(dtype, {kLargeCount / 3, 1})));
  add(LogSoftmaxCase("inner_dim/16Mi", inner, inner, inner, 1));
  add(LogSoftmaxCase("outermost_dim/16Mi", matrix, matrix, matrix, 0));
  add(LogSoftmaxCase("rows_of_50257/16Mi", long_rows, long_rows, long_rows, 1));
  add(LogSoftmaxCase("rows_of_3/16Mi", narrow, narrow, narrow, 1));
  add(LogSoftmaxCase("transposed_gradient/16Mi", transposed, matrix, matrix, 1));
  add(LogSoftmaxCase("all_transposed/16Mi", transposed, transposed, transposed, 1));
  return cases;
}

void Register(std::vector<KernelCase> cases) {
  for (KernelCase& c : cases) {
    const auto shared = std::make_shared<KernelCase>(std::move(c));
    for (int num_threads : {1, kBenchmarkThreads}) {
      benchmark::RegisterBenchmark(
          (shared->name + "/" + std::to_string(num_threads)).c_str(),
          [=](benchmark::State& state) { RunKernelCase(state, *shared, num_threads); })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
}

void RegisterAll() {
  benchmark::RegisterBenchmark("memcpy/any/float32/contiguous/16Mi/1", RunMemcpy, kLargeCount * 4)
      ->Unit(benchmark::kMicrosecond)
      ->UseRealTime();
  for (Dtype dtype : {Dtype::kFloat, Dtype::kFloat16, Dtype::kBfloat16}) {
    for (int64_t count :
         {int64_t{1} << 10, int64_t{16} << 10, int64_t{256} << 10, int64_t{1} << 20, kLargeCount}) {
      Register(ContiguousCases(dtype, count));
    }
  }
  Register(OtherLayouts());
}

}  // namespace
}  // namespace opserve::kernels

int main(int argc, char** argv) {
  opserve::kernels::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
