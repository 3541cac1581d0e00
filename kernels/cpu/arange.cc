// Numbers at equal distances.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>

#include "kernels/cpu/call.h"
#include "kernels/cpu/convert.h"
#include "kernels/cpu/formula.h"
#include "kernels/cpu/iteration.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/tasks.h"

namespace opserve::kernels {
namespace {

constexpr int kBlock = 256;

// out[i] = start + i * step, in int64 or double.
template <typename T>
class ArangeKernel final : public Kernel {
 public:
  ArangeKernel(T start, T step, const Layout& out) : start_(start), step_(step), out_(out) {}

  size_t workspace_bytes() const override { return 0; }
  int64_t num_elements() const override { return NumElements(out_); }
  bool ReadsInput(size_t /*argument*/) const override { return false; }

  void Run(const void* const* /*inputs*/, void* const* outputs, void* /*workspace*/,
           TaskRunner& runner) const override {
    const int64_t count = num_elements();
    const int64_t stride = out_.rank == 0 ? 0 : out_.strides[out_.rank - 1];
    RunTasks(runner, CeilDivide(count, kTaskElements), [&](int64_t task) {
      const int64_t end = std::min((task + 1) * kTaskElements, count);
      VisitDtype(out_.dtype, [&](auto element) {
        using Element = decltype(element);
        auto* destination = static_cast<Element*>(outputs[0]);
        T numbers[kBlock];
        for (int64_t i = task * kTaskElements; i < end; i += kBlock) {
          const auto block = static_cast<int>(std::min<int64_t>(kBlock, end - i));
          const auto first = static_cast<T>(i);
          // AVX2 converts vectors of int to double, but none of int64_t.
          for (int j = 0; j < block; ++j) {
            numbers[j] = Plus(start_, Times(first + static_cast<T>(j), step_));
          }
          Element* const place = destination + i * stride;
          if (stride == 1) {
            for (int j = 0; j < block; ++j) place[j] = Converted<Element>(numbers[j]);
          } else {
            for (int j = 0; j < block; ++j) place[j * stride] = Converted<Element>(numbers[j]);
          }
        }
      });
    });
  }

 private:
  const T start_;
  const T step_;
  const Layout out_;
};

// Attributes: start, end and step; the end has become the output's extent.
std::unique_ptr<Kernel> MakeArange(const Call& call) {
  const auto is_integer = [&](size_t attribute) {
    const auto* scalar = std::get_if<Scalar>(&call.attributes[attribute]);
    return scalar != nullptr && scalar->dtype >= Dtype::kInt8;
  };
  const Layout& out = Output(call, 0);
  if (is_integer(0) && is_integer(2)) {
    return std::make_unique<ArangeKernel<int64_t>>(IntAttribute(call, 0), IntAttribute(call, 2),
                                                   out);
  }
  return std::make_unique<ArangeKernel<double>>(RealAttribute(call, 0), RealAttribute(call, 2),
                                                out);
}

}  // namespace

std::span<const KernelEntry> ArangeKernels() {
  static constexpr KernelEntry kEntries[] = {{"aclnnArange", &MakeArange}};
  return kEntries;
}

}  // namespace opserve::kernels
