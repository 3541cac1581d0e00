// Copies with addresses in device memory, where earlier tasks may write them.
#include <cstring>

#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/copy_task.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// A copy as aclrtSetMemcpyDesc writes it to device memory.
struct CopyDescription {
  void* dst;
  const void* src;
  size_t count;
  uint64_t reserved[5];
};
// The size that the caller reserves, as aclrtGetMemcpyDescSize tells it.
static_assert(sizeof(CopyDescription) == 64);

// Reads a value from device memory when its task runs.
template <typename T>
TaskResult Read(const Stream& stream, const void* address, T* value) {
  const BlockPtr held = FindDeviceMemory(stream.device(), address, sizeof(T));
  // Without checks the address is trusted, as everywhere.
  if (held == nullptr && Runtime::Get().settings().checked) {
    return TaskResult::Failure(ACL_ERROR_RT_SYS_DMA,
                               "copy: its addresses are not in live device memory any more");
  }
  std::memcpy(value, address, sizeof(T));
  return {};
}

TaskResult CopyOnDevice(Stream& stream, void* dst, const void* src, size_t count) {
  if (count == 0) return {};
  Copy copy = Copy::Bytes(dst, src, count);
  copy.to_device = true;
  copy.from_device = true;
  // As a task of its own would run: with the fault of slow copies, checks of the memory, and the
  // device's cores.
  return MakeCopyTask(copy)->Run(stream);
}

// dst and src point to addresses.
class OffsetCopyTask final : public Task {
 public:
  OffsetCopyTask(void** dst, size_t dst_offset, const void** src, size_t src_offset, size_t count)
      : dst_(dst), dst_offset_(dst_offset), src_(src), src_offset_(src_offset), count_(count) {}

  TaskResult Run(Stream& stream) override {
    char* dst = nullptr;
    const char* src = nullptr;
    // When the task runs: tasks before it may have written the addresses.
    TaskResult result = Read(stream, dst_, &dst);
    if (result.code == ACL_SUCCESS) result = Read(stream, src_, &src);
    if (result.code != ACL_SUCCESS) return result;
    return CopyOnDevice(stream, dst + dst_offset_, src + src_offset_, count_);
  }
  const char* name() const override { return "copy"; }
  std::vector<MemoryRange> memory() const override {
    // Only the places of the addresses. The memory behind them is not known before the task runs.
    return {{dst_, sizeof(*dst_), "dst"}, {src_, sizeof(*src_), "src"}};
  }

 private:
  void** const dst_;
  const size_t dst_offset_;
  const void** const src_;
  const size_t src_offset_;
  const size_t count_;
};

class DescribedCopyTask final : public Task {
 public:
  explicit DescribedCopyTask(const void* description) : description_(description) {}

  TaskResult Run(Stream& stream) override {
    CopyDescription description;
    TaskResult result = Read(stream, description_, &description);
    if (result.code != ACL_SUCCESS) return result;
    return CopyOnDevice(stream, description.dst, description.src, description.count);
  }
  const char* name() const override { return "copy"; }
  std::vector<MemoryRange> memory() const override {
    return {{description_, sizeof(CopyDescription), "desc"}};
  }

 private:
  const void* const description_;
};

// Both kinds of calls copy within one device.
aclError CheckKind(aclrtMemcpyKind kind) {
  if (kind == ACL_MEMCPY_INNER_DEVICE_TO_DEVICE) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
              Concat("kind is ", static_cast<int>(kind), ", must be 6, within the device"));
}

// Of all functions that use descriptions.
aclError CheckDescribed(aclrtMemcpyKind kind) {
  if (!CurrentSoc().generation->copies_by_description) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " does not copy by description"));
  }
  return CheckKind(kind);
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax, size_t dstDataOffset,
                                    const void** src, size_t count, size_t srcDataOffset,
                                    aclrtMemcpyKind kind, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (!CurrentSoc().generation->copies_with_offsets) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " does not copy with offsets"));
  }
  RETURN_IF_FAILED(CheckKind(kind));
  RETURN_IF_FAILED(RequireNotNull(dst, "dst"));
  RETURN_IF_FAILED(RequireNotNull(src, "src"));
  // The room behind the address is not known here either; the copy checks it when it runs.
  if (count > destMax) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("count is ", count, ", must be at most destMax, which is ", destMax));
  }
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), dst, sizeof(*dst), "dst"));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), src, sizeof(*src), "src"));
  return target->Enqueue(
      std::make_unique<OffsetCopyTask>(dst, dstDataOffset, src, srcDataOffset, count));
}

aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(descSize, "descSize"));
  RETURN_IF_FAILED(CheckDescribed(kind));
  *descSize = sizeof(CopyDescription);
  return ACL_SUCCESS;
}

aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr, void* dstAddr,
                            size_t count, void* config) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(desc, "desc"));
  RETURN_IF_FAILED(RequireNotNull(srcAddr, "srcAddr"));
  RETURN_IF_FAILED(RequireNotNull(dstAddr, "dstAddr"));
  RETURN_IF_FAILED(CheckDescribed(kind));
  // Reserved: no configuration is known.
  if (config != nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, "config must be null");
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  RETURN_IF_FAILED(CheckDeviceMemory(context->device(), desc, sizeof(CopyDescription), "desc"));
  const CopyDescription description{dstAddr, srcAddr, count, {}};
  // At once, on this thread: the call writes the memory before it returns.
  std::memcpy(desc, &description, sizeof(description));
  return ACL_SUCCESS;
}

aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(desc, "desc"));
  RETURN_IF_FAILED(CheckDescribed(kind));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  RETURN_IF_FAILED(CheckDeviceMemory(target->device(), desc, sizeof(CopyDescription), "desc"));
  return target->Enqueue(std::make_unique<DescribedCopyTask>(desc));
}
