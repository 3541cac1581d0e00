// The CPU kernels next to PyTorch's own, in one process: T12. Built where libtorch is installed
// (deploy/install_packages.sh --benchmarks).
//
// Names are peer/operator/variant/dtype/layout/size/threads, e.g.
// "torch/KlDivBackward/plain/float32/contiguous/1Ki/1", where the peer is "torch" or "opserve".
// kernel_targets.py divides the times of the same name. Torch computes with as few of its kernels
// as the formula needs, called directly: outputs and intermediate values keep their memory, nothing
// is recorded for autograd. One thread, and both with as many as torch takes by default.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/benchmark/kernel_cases.h"

namespace opserve::kernels {
namespace {

struct TorchTensors {
  at::Tensor grad_output;
  at::Tensor self;  // LogSoftmaxBackward: output
  at::Tensor target;
  at::Tensor out;
  at::Tensor scratch;
  at::Tensor zero;  // of rank 0
};

using TorchCall = void (*)(TorchTensors&);

constexpr double kScale = 0.001;  // any takes as long

void KlDivPlain(TorchTensors& t) {
  at::addcmul_out(t.out, t.zero, t.grad_output, t.target, -kScale);
}

void KlDivLog(TorchTensors& t) {
  at::exp_out(t.out, t.target);
  at::addcmul_out(t.out, t.zero, t.grad_output, t.out, -kScale);
}

// Without the rule for targets of 0, which would be one more.
void KlDivTargetPlain(TorchTensors& t) {
  at::log_out(t.out, t.target);
  at::sub_out(t.out, t.out, t.self);
  t.out.add_(1);
  at::addcmul_out(t.out, t.zero, t.grad_output, t.out, kScale);
}

void KlDivTargetLog(TorchTensors& t) {
  at::sub_out(t.scratch, t.target, t.self);
  t.scratch.add_(1);
  at::exp_out(t.out, t.target);
  t.out.mul_(t.scratch);
  at::addcmul_out(t.out, t.zero, t.grad_output, t.out, kScale);
}

// With beta 0 the smooth loss is the absolute one, in one kernel. It always divides.
void L1Loss(TorchTensors& t) {
  at::smooth_l1_loss_backward_out(t.out, t.grad_output, t.self, t.target, at::Reduction::Mean,
                                  /*beta=*/0);
}

void LogSoftmax(TorchTensors& t) {
  at::_log_softmax_backward_data_out(t.out, t.grad_output, t.self, 1, at::kFloat);
}

// In the order of ContiguousCases.
constexpr TorchCall kTorchCalls[] = {KlDivPlain,     KlDivLog, KlDivTargetPlain,
                                     KlDivTargetLog, L1Loss,   LogSoftmax};

at::Tensor ToTorch(const Layout& layout, const Memory& memory) {
  return at::from_blob(
      memory.get(), std::vector<int64_t>(layout.shape.begin(), layout.shape.begin() + layout.rank),
      at::kFloat);
}

void RunTorchCase(benchmark::State& state, TorchCall call, const KernelCase& kernel_case,
                  int num_threads) {
  const c10::InferenceMode no_autograd;
  at::set_num_threads(num_threads);
  const Layout& layout = kernel_case.out;
  const Memory memory[] = {RandomTensor(layout), RandomTensor(layout), RandomTensor(layout),
                           RandomTensor(layout), RandomTensor(layout)};
  TorchTensors tensors{ToTorch(layout, memory[0]), ToTorch(layout, memory[1]),
                       ToTorch(layout, memory[2]), ToTorch(layout, memory[3]),
                       ToTorch(layout, memory[4]), at::zeros({}, at::kFloat)};
  for (auto _ : state) {
    call(tensors);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * NumElements(layout));
}

void RegisterAll() {
  for (int64_t count :
       {int64_t{1} << 10, int64_t{16} << 10, int64_t{256} << 10, int64_t{1} << 20, kLargeCount}) {
    std::vector<KernelCase> cases = ContiguousCases(Dtype::kFloat, count);
    for (size_t i = 0; i < cases.size(); ++i) {
      const TorchCall call = kTorchCalls[i];
      const auto shared = std::make_shared<KernelCase>(std::move(cases[i]));
      for (int num_threads : {1, kBenchmarkThreads}) {
        const std::string name = shared->name + "/" + std::to_string(num_threads);
        benchmark::RegisterBenchmark(
            ("torch/" + name).c_str(),
            [=](benchmark::State& state) { RunTorchCase(state, call, *shared, num_threads); })
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
        benchmark::RegisterBenchmark(
            ("opserve/" + name).c_str(),
            [=](benchmark::State& state) { RunKernelCase(state, *shared, num_threads); })
            ->Unit(benchmark::kMicrosecond)
            ->UseRealTime();
      }
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
