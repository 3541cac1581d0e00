#include "tests/benchmark/kernel_cases.h"

#include <cstring>
#include <random>
#include <string_view>
#include <utility>

#include "ops/host_cann/runtime/core_pool.h"

namespace opserve::kernels {
namespace {

std::string Name(const std::string& op_and_variant, Dtype dtype,
                 const std::string& layout_and_size) {
  static const char* const kDtypes[] = {"float32", "float16", "bfloat16", "float64"};
  return op_and_variant + "/" + kDtypes[static_cast<int>(dtype)] + "/" + layout_and_size;
}

std::string Size(int64_t count) {
  constexpr int64_t kMebi = 1 << 20;
  return count % kMebi == 0 ? std::to_string(count / kMebi) + "Mi"
                            : std::to_string(count / 1024) + "Ki";
}

// `reduction`: a factor of 1, which takes as long as any other and leaves halves in their range.
constexpr int64_t kSum = 2;

KernelCase MakeCase(const std::string& op_and_variant, const std::string& layout_and_size,
                    std::string_view function, std::vector<Layout> inputs, const Layout& out,
                    std::vector<Attribute> attributes) {
  Call call;
  for (const Layout& input : inputs) call.inputs.push_back({input});
  call.outputs = {{out}};
  call.attributes = std::move(attributes);
  return {Name(op_and_variant, out.dtype, layout_and_size), std::move(inputs), out,
          MakeKernel(function, call)};
}

}  // namespace

Layout Contiguous(Dtype dtype, const std::vector<int64_t>& shape) {
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

KernelCase KlDivCase(bool log_target, const std::string& layout_and_size, const Layout& grad_output,
                     const Layout& target, const Layout& out) {
  return MakeCase(log_target ? "KlDivBackward/log" : "KlDivBackward/plain", layout_and_size,
                  "aclnnKlDivBackward", {grad_output, out, target}, out, {kSum, log_target});
}

KernelCase KlDivTargetCase(bool log_target, const std::string& layout_and_size,
                           const Layout& grad_output, const Layout& self, const Layout& target) {
  return MakeCase(log_target ? "KlDivTargetBackward/log" : "KlDivTargetBackward/plain",
                  layout_and_size, "aclnnKlDivTargetBackward", {grad_output, self, target}, target,
                  {kSum, log_target});
}

KernelCase L1LossCase(const std::string& layout_and_size, const Layout& grad_output,
                      const Layout& self, const Layout& target) {
  return MakeCase("L1LossBackward/only", layout_and_size, "aclnnL1LossBackward",
                  {grad_output, self, target}, target, {kSum});
}

KernelCase LogSoftmaxCase(const std::string& layout_and_size, const Layout& grad_output,
                          const Layout& output, const Layout& out, int dim) {
  return MakeCase("LogSoftmaxBackward/only", layout_and_size, "aclnnLogSoftmaxBackward",
                  {grad_output, output}, out, {int64_t{dim}});
}

std::vector<KernelCase> ContiguousCases(Dtype dtype, int64_t count) {
  const Layout flat = Contiguous(dtype, {count});
  const Layout rows = Contiguous(dtype, {count / 1024, 1024});
  const std::string suffix = "contiguous/" + Size(count);
  std::vector<KernelCase> cases;
  cases.push_back(KlDivCase(false, suffix, flat, flat, flat));
  cases.push_back(KlDivCase(true, suffix, flat, flat, flat));
  cases.push_back(KlDivTargetCase(false, suffix, flat, flat, flat));
  cases.push_back(KlDivTargetCase(true, suffix, flat, flat, flat));
  cases.push_back(L1LossCase(suffix, flat, flat, flat));
  cases.push_back(LogSoftmaxCase(suffix, rows, rows, rows, 1));
  return cases;
}

Memory AllocateTouched(int64_t bytes) {
  const int64_t rounded = (bytes + 63) / 64 * 64;
  Memory memory(static_cast<char*>(std::aligned_alloc(64, rounded)), &std::free);
  std::memset(memory.get(), 1, rounded);
  return memory;
}

// As elements of the dtype; the bits of halves and of the upper half of a float.
Memory RandomTensor(const Layout& layout) {
  const int64_t bytes = ElementBytes(layout.dtype);
  Memory tensor = AllocateTouched(NumElements(layout) * bytes);
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
      default:
        break;  // not measured
    }
  }
  return tensor;
}

void RunKernelCase(benchmark::State& state, const KernelCase& kernel_case, int num_threads) {
  std::vector<Memory> tensors;
  std::vector<const void*> addresses;
  int64_t bytes = NumElements(kernel_case.out) * ElementBytes(kernel_case.out.dtype);
  const Memory out = AllocateTouched(bytes);
  const Memory workspace =
      AllocateTouched(static_cast<int64_t>(kernel_case.kernel->workspace_bytes()));
  for (size_t i = 0; i < kernel_case.inputs.size(); ++i) {
    tensors.push_back(RandomTensor(kernel_case.inputs[i]));
    addresses.push_back(tensors.back().get());
    if (!kernel_case.kernel->ReadsInput(i)) continue;
    bytes += NumElements(kernel_case.inputs[i]) * ElementBytes(kernel_case.inputs[i].dtype);
  }
  void* const outputs[] = {out.get()};
  // Its helpers live as long as the process, and so does the pool.
  static auto* const pool = new host_cann::CorePool(kBenchmarkThreads);
  SerialTaskRunner serial;
  TaskRunner& runner = num_threads > 1 ? static_cast<TaskRunner&>(*pool) : serial;
  for (auto _ : state) {
    kernel_case.kernel->Run(addresses.data(), outputs, workspace.get(), runner);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * bytes);
  state.SetItemsProcessed(state.iterations() * NumElements(kernel_case.out));
}

}  // namespace opserve::kernels
