// Speed of the CPU kernels next to memcpy, as bytes read and written per second.
//
// Compare figures of one run only. The arrays of the large cases do not fit into the caches, so
// that memory bandwidth is the limit; "elements" are those of the output.

#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu/kernel.h"

namespace opserve::kernels {
namespace {

constexpr int64_t kLarge = int64_t{16} << 20;

Layout Contiguous(Dtype dtype, std::vector<int64_t> shape) {
  Layout layout;
  layout.dtype = dtype;
  layout.rank = static_cast<int>(shape.size());
  int64_t stride = 1;
  for (int d = layout.rank - 1; d >= 0; --d) {
    layout.shape[d] = shape[d];
    layout.strides[d] = stride;
    stride *= shape[d];
  }
  return layout;
}

// The transposed view of a contiguous matrix.
Layout Transposed(Dtype dtype, int64_t rows, int64_t columns) {
  Layout layout = Contiguous(dtype, {rows, columns});
  layout.strides = {1, rows};
  return layout;
}

int64_t NumElements(const Layout& layout) {
  int64_t count = 1;
  for (int d = 0; d < layout.rank; ++d) count *= layout.shape[d];
  return count;
}

using Memory = std::unique_ptr<char, decltype(&std::free)>;

// Aligned as device memory is. Touched, so that no page is mapped while time is taken.
Memory Allocate(int64_t bytes) {
  const int64_t rounded = (bytes + 63) / 64 * 64;
  Memory memory(static_cast<char*>(std::aligned_alloc(64, rounded)), &std::free);
  std::memset(memory.get(), 1, rounded);
  return memory;
}

// Numbers in (0, 1) as elements of `dtype`; the bits of halves and of the upper half of a float.
Memory RandomTensor(const Layout& layout) {
  const int64_t bytes = ElementBytes(layout.dtype);
  Memory tensor = Allocate(NumElements(layout) * bytes);
  std::minstd_rand random(1);
  for (int64_t i = 0; i < NumElements(layout) * bytes; i += bytes) {
    const uint32_t noise = random();
    const float as_float = static_cast<float>(noise % 4093 + 1) / 4096.0f;
    const uint16_t as_half = static_cast<uint16_t>(0x3000 + noise % 0xc00);      // 0.125 to 1
    const uint16_t as_bfloat16 = static_cast<uint16_t>(0x3e00 + noise % 0x180);  // 0.125 to 1
    switch (layout.dtype) {
      case Dtype::kFloat:
        std::memcpy(tensor.get() + i, &as_float, 4);
        break;
      case Dtype::kFloat16:
        std::memcpy(tensor.get() + i, &as_half, 2);
        break;
      case Dtype::kBfloat16:
        std::memcpy(tensor.get() + i, &as_bfloat16, 2);
        break;
      case Dtype::kDouble:
        break;  // not measured
    }
  }
  return tensor;
}

// Shares the tasks among `num_threads` threads, the calling one included.
class ThreadedTaskRunner final : public TaskRunner {
 public:
  explicit ThreadedTaskRunner(int num_threads) : num_threads_(num_threads) {}

  void Run(int64_t num_tasks, void (*task)(void*, int64_t), void* context) override {
    std::atomic<int64_t> next = 0;
    const auto work = [&] {
      for (int64_t i = next++; i < num_tasks; i = next++) task(context, i);
    };
    std::vector<std::jthread> threads;
    for (int i = 1; i < num_threads_; ++i) threads.emplace_back(work);
    work();
  }

 private:
  const int num_threads_;
};

struct Case {
  std::string name;
  std::vector<Layout> inputs;
  Layout out;
  std::unique_ptr<Kernel> kernel;
  int ignored_input = -1;
};

void RunCase(benchmark::State& state, const Case& c, int num_threads) {
  std::vector<Memory> tensors;
  std::vector<const void*> addresses;
  int64_t bytes = NumElements(c.out) * ElementBytes(c.out.dtype);
  const Memory out = Allocate(bytes);
  const Memory workspace = Allocate(static_cast<int64_t>(c.kernel->workspace_bytes()));
  for (int i = 0; i < static_cast<int>(c.inputs.size()); ++i) {
    tensors.push_back(RandomTensor(c.inputs[i]));
    addresses.push_back(tensors.back().get());
    if (i == c.ignored_input) continue;
    bytes += NumElements(c.inputs[i]) * ElementBytes(c.inputs[i].dtype);
  }
  ThreadedTaskRunner threads(num_threads);
  SerialTaskRunner serial;
  TaskRunner& runner = num_threads > 1 ? static_cast<TaskRunner&>(threads) : serial;
  for (auto _ : state) {
    c.kernel->Run(addresses.data(), out.get(), workspace.get(), runner);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * NumElements(c.out));
}

void RunMemcpy(benchmark::State& state, int64_t bytes) {
  const Memory from = Allocate(bytes);
  const Memory to = Allocate(bytes);
  for (auto _ : state) {
    std::memcpy(to.get(), from.get(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * 2 * bytes);
}

using Cases = std::vector<std::shared_ptr<Case>>;

Case KlDiv(std::string name, Layout grad, Layout target, Layout out, bool log_target) {
  auto kernel = MakeKlDivBackward(grad, out, target, out, /*divisor=*/1000, log_target);
  return {"KlDiv" + name, {grad, out, target}, out, std::move(kernel), /*ignored_input=*/1};
}

Case KlDivTarget(std::string name, Layout grad, Layout self, Layout out, bool log_target) {
  auto kernel = MakeKlDivTargetBackward(grad, self, out, out, /*divisor=*/1000, log_target);
  return {"KlDivTarget" + name, {grad, self, out}, out, std::move(kernel)};
}

Case L1Loss(std::string name, Layout grad, Layout self, Layout out) {
  auto kernel = MakeL1LossBackward(grad, self, out, out, /*divisor=*/1000);
  return {"L1Loss" + name, {grad, self, out}, out, std::move(kernel)};
}

Case LogSoftmax(std::string name, Layout grad, Layout output, Layout out, int dim) {
  auto kernel = MakeLogSoftmaxBackward(grad, output, out, dim);
  return {"LogSoftmax" + name, {grad, output}, out, std::move(kernel)};
}

Cases AllCases() {
  Cases cases;
  const auto add = [&](Case c) { cases.push_back(std::make_shared<Case>(std::move(c))); };
  const auto add_all = [&](const std::string& suffix, Dtype dtype, int64_t count) {
    const Layout flat = Contiguous(dtype, {count});
    add(KlDiv("/plain" + suffix, flat, flat, flat, false));
    add(KlDiv("/log" + suffix, flat, flat, flat, true));
    add(KlDivTarget("/plain" + suffix, flat, flat, flat, false));
    add(KlDivTarget("/log" + suffix, flat, flat, flat, true));
    add(L1Loss(suffix, flat, flat, flat));
    const Layout rows = Contiguous(dtype, {count / 1024, 1024});
    add(LogSoftmax("/row_1024" + suffix, rows, rows, rows, 1));
  };
  add_all("/float/16Mi", Dtype::kFloat, kLarge);
  add_all("/float16/16Mi", Dtype::kFloat16, kLarge);
  add_all("/bfloat16/16Mi", Dtype::kBfloat16, kLarge);
  for (int64_t count : {1024, 16 * 1024, 256 * 1024}) {
    add_all("/float/" + std::to_string(count / 1024) + "Ki", Dtype::kFloat, count);
  }

  const Dtype dtype = Dtype::kFloat;
  const Layout matrix = Contiguous(dtype, {4096, 4096});
  const Layout transposed = Transposed(dtype, 4096, 4096);
  const Layout scalar = Contiguous(dtype, {});
  const Layout row = Contiguous(dtype, {4096});
  const Layout column = Contiguous(dtype, {4096, 1});
  add(KlDiv("/plain/transposed_target", matrix, transposed, matrix, false));
  add(KlDiv("/plain/scalar_gradient", scalar, matrix, matrix, false));
  add(L1Loss("/transposed_self", matrix, transposed, matrix));
  add(L1Loss("/scalar_gradient", scalar, matrix, matrix));
  add(KlDivTarget("/plain/transposed_self", matrix, transposed, matrix, false));
  add(KlDiv("/plain/sum_to_scalar", matrix, matrix, scalar, false));
  add(KlDiv("/plain/sum_to_row", matrix, matrix, row, false));
  add(KlDiv("/plain/sum_to_column", matrix, matrix, column, false));
  const Layout narrow = Contiguous(dtype, {kLarge / 3, 3});
  add(KlDiv("/plain/rows_of_3_scaled", Contiguous(dtype, {3}), narrow, narrow, false));
  add(KlDiv("/plain/rows_of_3_sum_to_row", narrow, narrow, Contiguous(dtype, {3}), false));
  add(KlDiv("/plain/rows_of_3_sum_to_column", narrow, narrow, Contiguous(dtype, {kLarge / 3, 1}),
            false));

  const Layout long_rows = Contiguous(dtype, {320, 50257});
  add(LogSoftmax("/row_50257", long_rows, long_rows, long_rows, 1));
  add(LogSoftmax("/rows_of_3", narrow, narrow, narrow, 1));
  const Layout inner = Contiguous(dtype, {16, 1024, 1024});
  add(LogSoftmax("/inner_1024", inner, inner, inner, 1));
  add(LogSoftmax("/outermost_4096", matrix, matrix, matrix, 0));
  add(LogSoftmax("/transposed_gradient", transposed, matrix, matrix, 1));
  add(LogSoftmax("/all_transposed", transposed, transposed, transposed, 1));
  return cases;
}

void RegisterAll() {
  benchmark::RegisterBenchmark("memcpy/64MiB", RunMemcpy, kLarge * 4)
      ->Unit(benchmark::kMicrosecond);
  for (const auto& c : AllCases()) {
    for (int num_threads : {1, 2}) {
      if (num_threads > 1 && NumElements(c->out) < kLarge) continue;
      benchmark::RegisterBenchmark(
          (c->name + "/threads:" + std::to_string(num_threads)).c_str(),
          [c, num_threads](benchmark::State& state) { RunCase(state, *c, num_threads); })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
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
