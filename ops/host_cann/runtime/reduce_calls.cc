// Sums, maxima and minima of two arrays, as work on a stream.
#include <Eigen/Core>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Calls `visit` with a value of the element type. False: a type that nothing reduces.
template <typename Visit>
bool VisitType(aclDataType type, Visit visit) {
  switch (type) {
    case ACL_INT8:
      return visit(int8_t{}), true;
    case ACL_INT16:
      return visit(int16_t{}), true;
    case ACL_INT32:
      return visit(int32_t{}), true;
    case ACL_FLOAT16:
      return visit(Eigen::half{}), true;
    case ACL_BF16:
      return visit(Eigen::bfloat16{}), true;
    case ACL_FLOAT:
      return visit(float{}), true;
    default:
      return false;
  }
}

template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    // Without a sign, where a sum that does not fit wraps.
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(
        static_cast<Unsigned>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b)));
  } else {
    // In float, as the narrow types have no sum of their own, and rounded once.
    return static_cast<T>(static_cast<float>(a) + static_cast<float>(b));
  }
}

// A NaN wins over numbers.
template <typename T>
T Larger(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    // The first NaN, so that the result does not depend on the order of the comparison.
    if (std::isnan(static_cast<float>(a))) return a;
    if (std::isnan(static_cast<float>(b))) return b;
  }
  return a < b ? b : a;
}

template <typename T>
T Smaller(T a, T b) {
  if constexpr (!std::is_integral_v<T>) {
    if (std::isnan(static_cast<float>(a))) return a;
    if (std::isnan(static_cast<float>(b))) return b;
  }
  return b < a ? b : a;
}

// The addresses need not be aligned.
template <typename T, typename Join>
void ReduceElements(void* dst, const void* src, size_t bytes, Join join) {
  auto* const to = static_cast<char*>(dst);
  const auto* const from = static_cast<const char*>(src);
  for (size_t offset = 0; offset < bytes; offset += sizeof(T)) {
    T a, b;
    // By memcpy: `dst` and `src` may start at any byte, where a typed access is undefined.
    std::memcpy(&a, to + offset, sizeof(T));
    std::memcpy(&b, from + offset, sizeof(T));
    a = join(a, b);
    std::memcpy(to + offset, &a, sizeof(T));
  }
}

class ReduceTask final : public Task {
 public:
  ReduceTask(void* dst, const void* src, size_t bytes, aclrtReduceKind kind, aclDataType type)
      : dst_(dst), src_(src), bytes_(bytes), kind_(kind), type_(type) {}

  TaskResult Run(Stream& stream) override {
    // Both are held until the reduction is done.
    const BlockPtr dst = FindDeviceMemory(stream.device(), dst_, bytes_);
    const BlockPtr src = FindDeviceMemory(stream.device(), src_, bytes_);
    if (Runtime::Get().settings().checked && (dst == nullptr || src == nullptr)) {
      return TaskResult::Failure(ACL_ERROR_RT_SYS_DMA,
                                 "reduction: dst or src is not live device memory any more");
    }
    // Never an unknown type: CheckReduction has refused those.
    VisitType(type_, [this]<typename T>(T) {
      switch (kind_) {
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM:
          return ReduceElements<T>(dst_, src_, bytes_, Sum<T>);
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MAX:
          return ReduceElements<T>(dst_, src_, bytes_, Larger<T>);
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_MIN:
          return ReduceElements<T>(dst_, src_, bytes_, Smaller<T>);
        case ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL:  // refused when it was queued
          break;
      }
    });
    return {};
  }
  const char* name() const override { return "reduction"; }
  std::vector<MemoryRange> memory() const override {
    return {{dst_, bytes_, "dst"}, {src_, bytes_, "src"}};
  }

 private:
  void* const dst_;
  const void* const src_;
  const size_t bytes_;
  const aclrtReduceKind kind_;
  const aclDataType type_;
};

aclError CheckReduction(uint64_t bytes, aclrtReduceKind kind, aclDataType type,
                        const void* reserve) {
  if (kind < ACL_RT_MEMCPY_SDMA_AUTOMATIC_SUM || kind > ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("kind is ", static_cast<int>(kind), ", must be 10 to 12"));
  }
  if (kind == ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                "kind is ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL, must be 10 to 12");
  }
  const uint32_t bit = static_cast<uint32_t>(type);
  // A mask has 64 bits; types beyond have no bit to ask for.
  const bool is_reduced = bit < 64 && (CurrentSoc().generation->reduced_types >> bit & 1) != 0;
  if (!is_reduced) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat("type is ", static_cast<int>(type), ", which ", CurrentSoc().name,
                       " does not reduce"));
  }
  size_t element_bytes = 1;
  VisitType(type, [&]<typename T>(T) { element_bytes = sizeof(T); });
  if (bytes == 0 || bytes % element_bytes != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("count is ", bytes, ", must be a multiple of ", element_bytes));
  }
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "reserve must be null");
  }
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count, aclrtReduceKind kind,
                          aclDataType type, aclrtStream stream, void* reserve) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(dst, "dst"));
  RETURN_IF_FAILED(RequireNotNull(src, "src"));
  RETURN_IF_FAILED(CheckReduction(count, kind, type, reserve));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), dst, count, "dst"));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), src, count, "src"));
  return target->Enqueue(std::make_unique<ReduceTask>(dst, src, count, kind, type));
}
