// Copies and fills.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/capture.h"
#include "ops/host_cann/runtime/copy.h"
#include "ops/host_cann/runtime/copy_task.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

bool ToDevice(aclrtMemcpyKind kind) {
  return kind == ACL_MEMCPY_HOST_TO_DEVICE || kind == ACL_MEMCPY_DEVICE_TO_DEVICE ||
         kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE;
}

bool FromDevice(aclrtMemcpyKind kind) {
  return kind == ACL_MEMCPY_DEVICE_TO_HOST || kind == ACL_MEMCPY_DEVICE_TO_DEVICE;
}

// `block`: the one that MemoryTable::FindOwned finds; null: there is none, or it was not asked.
bool IsPinned(const BlockPtr& block, const void* address, size_t bytes) {
  if (block != nullptr && block->pinned && block->Contains(address, bytes)) return true;
  return Runtime::Get().memory().IsPinned(address, bytes);
}

// Whether the host side of the copy may be used after the call has returned.
bool MayRunLater(const Copy& copy, const CopyBlocks* found) {
  // A stream's task runs after the call has returned. Only page-locked memory stays where it is for
  // so long.
  const BlockPtr none;
  const BlockPtr& to = found != nullptr ? found->to : none;
  const BlockPtr& from = found != nullptr ? found->from : none;
  return (copy.to_device || IsPinned(to, copy.dst, copy.Span(copy.dst_pitch))) &&
         (copy.from_device || IsPinned(from, copy.src, copy.Span(copy.src_pitch)));
}

}  // namespace

CopyBlocks::CopyBlocks(const void* dst, const void* src) {
  std::tie(to, from) = Runtime::Get().memory().FindOwned(dst, src);
}

aclError ResolveSides(const Device& device, aclrtMemcpyKind kind, const CopyBlocks& blocks,
                      Copy* copy) {
  copy->to_device = ToDevice(kind);
  copy->from_device = FromDevice(kind);
  const size_t dst_bytes = copy->Span(copy->dst_pitch);
  const size_t src_bytes = copy->Span(copy->src_pitch);
  // A wrong direction is found as memory of the wrong side. ActualKind has made good those that can
  // be told.
  RETURN_IF_FAILED(copy->to_device
                       ? CheckDeviceMemory(device, blocks.to, copy->dst, dst_bytes, "dst")
                       : CheckHostMemory(blocks.to, copy->dst, dst_bytes, "dst"));
  return copy->from_device ? CheckDeviceMemory(device, blocks.from, copy->src, src_bytes, "src")
                           : CheckHostMemory(blocks.from, copy->src, src_bytes, "src");
}

aclError SubmitCopy(Stream& stream, Copy copy, const CopyBlocks* found) {
  // Captured streams take the task as well: Enqueue hands it to the capture.
  copy.host_is_pinned = MayRunLater(copy, found);
  if (copy.host_is_pinned) return stream.Enqueue(MakeCopyTask(copy));
  // The rest waits for the stream, which a capture forbids.
  RETURN_IF_FAILED(CheckNotCaptured(stream));
  RETURN_IF_FAILED(CheckMayUseMemory(*stream.context(), ACL_ERROR_RT_CAPTURE_MODE_BLOCK_ASYNC));
  // The call waits for the stream, so it is the one that reports an earlier task's failure. It then
  // copies nothing: the source may be memory that the failed task should have written.
  RETURN_IF_FAILED(stream.Wait(std::nullopt));
  RETURN_IF_FAILED(stream.TakeError());
  // In the stream's order, as another thread may queue tasks between the wait and the copy.
  return stream.RunInOrder(MakeCopyTask(copy));
}

aclError CopyNow(Context& context, const Copy& copy, const CopyBlocks* held) {
  RETURN_IF_FAILED(CheckMayUseMemory(context));
  // The caller's blocks keep the memory alive, so that the copy does not look it up again.
  const TaskResult result = CopyChecked(context.device(), copy, /*is_held=*/held != nullptr);
  if (result.code != ACL_SUCCESS) return Fail(result.code, kInternal, result.text);
  return ACL_SUCCESS;
}

namespace {

aclError CheckRoom(size_t count, size_t room, std::string_view name) {
  if (count <= room) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("count is ", count, ", must be at most ", name, ", which is ", room));
}

// The kinds of addresses that the runtime tells apart.
enum class Place { kUnknown, kDevice, kPageLocked };

Place PlaceOf(const void* address, const BlockPtr& block) {
  if (block != nullptr && block->Contains(address, 1)) {
    if (block->kind == MemoryBlock::Kind::kDevice) return Place::kDevice;
    if (block->pinned) return Place::kPageLocked;
  }
  return Runtime::Get().memory().IsPinned(address, 1) ? Place::kPageLocked : Place::kUnknown;
}

// The direction of a copy: that of the addresses where `kind` leaves it to them, or where both are
// known, which makes good a wrong `kind`.
aclrtMemcpyKind ActualKind(aclrtMemcpyKind kind, const void* dst, const void* src,
                           const CopyBlocks& blocks) {
  // This kind names a way, not only a direction: the source is buffered, which its caller relies
  // on.
  if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return kind;
  const Place to = PlaceOf(dst, blocks.to);
  const Place from = PlaceOf(src, blocks.from);
  // Pageable host memory is not known to the runtime: `kind` has to tell.
  if (kind != ACL_MEMCPY_DEFAULT && (to == Place::kUnknown || from == Place::kUnknown)) return kind;
  if (to == Place::kDevice) {
    return from == Place::kDevice ? ACL_MEMCPY_DEVICE_TO_DEVICE : ACL_MEMCPY_HOST_TO_DEVICE;
  }
  return from == Place::kDevice ? ACL_MEMCPY_DEVICE_TO_HOST : ACL_MEMCPY_HOST_TO_HOST;
}

aclError UnsupportedKind(aclrtMemcpyKind kind, std::string_view allowed) {
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
              Concat("kind is ", static_cast<int>(kind), ", must be ", allowed));
}

// The arguments of a copy of at least one byte, addresses apart.
aclError CheckCopy(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind) {
  RETURN_IF_FAILED(RequireNotNull(dst, "dst"));
  RETURN_IF_FAILED(RequireNotNull(src, "src"));
  // The implementation of the vendor refuses 6 and 7, which are for other functions, though its
  // document says that the kind is ignored.
  if (kind < ACL_MEMCPY_HOST_TO_HOST || kind > ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) {
    return UnsupportedKind(kind, "0 to 5");
  }
  return CheckRoom(count, room, "destMax");
}

aclError CopyInStream(void* dst, size_t room, const void* src, size_t count, aclrtMemcpyKind kind,
                      aclrtStream stream) {
  // Before all checks, as the vendor does: an empty copy succeeds with null addresses.
  if (count == 0) return ACL_SUCCESS;
  RETURN_IF_FAILED(CheckCopy(dst, room, src, count, kind));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  // The vendor leaves such a copy out as well.
  if (dst == src) return ACL_SUCCESS;
  const CopyBlocks blocks(dst, src);
  kind = ActualKind(kind, dst, src, blocks);
  if (kind == ACL_MEMCPY_HOST_TO_HOST) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                "copies from host to host are not asynchronous");
  }
  Copy copy = Copy::Bytes(dst, src, count);
  RETURN_IF_FAILED(ResolveSides(target->device(), kind, blocks, &copy));
  // Its bytes are taken now, so the source need not be page-locked.
  if (kind == ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE) return target->Enqueue(MakeBufferedCopyTask(copy));
  return SubmitCopy(*target, copy, &blocks);
}

aclError FillArguments(void* devPtr, size_t maxCount, size_t count) {
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  return CheckRoom(count, maxCount, "maxCount");
}

// Memory of the device, or page-locked memory. `block`: the one that MemoryTable::FindOwned finds.
aclError CheckFillable(const Device& device, const BlockPtr& block, void* devPtr, size_t count) {
  // Other host memory is undefined by the vendor's document; here it is refused.
  if (Runtime::Get().memory().IsPinned(devPtr, count)) return ACL_SUCCESS;
  return CheckDeviceMemory(device, block, devPtr, count, "devPtr");
}

// Fills at once, on this thread: the call is synchronous and has no order with streams.
aclError FillNow(Context& context, void* address, uint32_t word, size_t bytes) {
  // Held until it has been filled, since another thread may free it meanwhile.
  const BlockPtr block = Runtime::Get().memory().FindOwned(address);
  RETURN_IF_FAILED(CheckFillable(context.device(), block, address, bytes));
  RETURN_IF_FAILED(CheckMayUseMemory(context));
  Fill(address, word, bytes);
  return ACL_SUCCESS;
}

// Fills in the order of the stream.
aclError FillInStream(Stream& stream, void* address, uint32_t word, size_t bytes) {
  RETURN_IF_FAILED(
      CheckFillable(stream.device(), Runtime::Get().memory().FindOwned(address), address, bytes));
  return stream.Enqueue(MakeFillTask(address, word, bytes));
}

// The arguments of a fill with words; `*bytes` is its size.
aclError WordFillArguments(void* ptr, size_t room, size_t words, size_t* bytes) {
  RETURN_IF_FAILED(RequireNotNull(ptr, "ptr"));
  if (!CurrentSoc().generation->fills_words) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " does not fill memory with words"));
  }
  // By division: room for the words may not be a product that overflows.
  if (words == 0 || words > room / sizeof(uint32_t)) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("N is ", words, ", must be 1 to a quarter of memSize, which is ", room));
  }
  *bytes = words * sizeof(uint32_t);
  return ACL_SUCCESS;
}

aclError CheckRows(size_t dpitch, size_t spitch, size_t width, size_t height) {
  if (width <= dpitch && width <= spitch) {
    // The span of all rows must fit a size_t.
    if (height == 0 || std::max(dpitch, spitch) <= SIZE_MAX / height) return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat("width is ", width, ", height ", height, ": must fit dpitch ", dpitch,
                     " and spitch ", spitch));
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                     aclrtMemcpyKind kind) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (count == 0) return ACL_SUCCESS;
  RETURN_IF_FAILED(CheckCopy(dst, destMax, src, count, kind));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  if (dst == src) return ACL_SUCCESS;
  const CopyBlocks blocks(dst, src);
  kind = ActualKind(kind, dst, src, blocks);
  Copy copy = Copy::Bytes(dst, src, count);
  // Host to host too: the synchronous call allows it.
  RETURN_IF_FAILED(ResolveSides(context->device(), kind, blocks, &copy));
  return CopyNow(*context, copy, &blocks);
}

aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                          aclrtMemcpyKind kind, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CopyInStream(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax, const void* src, size_t count,
                                       aclrtMemcpyKind kind, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CopyInStream(dst, destMax, src, count, kind, stream);
}

aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                       size_t height, aclrtMemcpyKind kind) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (kind != ACL_MEMCPY_HOST_TO_DEVICE && kind != ACL_MEMCPY_DEVICE_TO_HOST) {
    return UnsupportedKind(kind, "1 or 2");
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  RETURN_IF_FAILED(RequireNotNull(dst, "dst"));
  RETURN_IF_FAILED(RequireNotNull(src, "src"));
  RETURN_IF_FAILED(CheckRows(dpitch, spitch, width, height));
  // After the check of the pitches, unlike the copies of bytes: an empty area with bad pitches is
  // refused.
  if (width == 0 || height == 0) return ACL_SUCCESS;
  Copy copy{dst, src, dpitch, spitch, width, height};
  RETURN_IF_FAILED(ResolveSides(context->device(), kind, CopyBlocks(dst, src), &copy));
  return CopyNow(*context, copy);
}

aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width,
                            size_t height, aclrtMemcpyKind kind, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // Limits of the vendor's document, for this function only.
  constexpr size_t kMaxWidth = 5000000;
  constexpr size_t kMaxHeight = 5242880;
  const aclrtMemcpyKind last = CurrentSoc().generation->copies_rows_on_device
                                   ? ACL_MEMCPY_DEVICE_TO_DEVICE
                                   : ACL_MEMCPY_DEVICE_TO_HOST;
  if (kind < ACL_MEMCPY_HOST_TO_DEVICE || kind > last) {
    return UnsupportedKind(kind, Concat("1 to ", static_cast<int>(last)));
  }
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  RETURN_IF_FAILED(RequireNotNull(dst, "dst"));
  RETURN_IF_FAILED(RequireNotNull(src, "src"));
  RETURN_IF_FAILED(CheckRows(dpitch, spitch, width, height));
  if (width > kMaxWidth || height > kMaxHeight) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("width is ", width, ", height ", height, ": must be at most ", kMaxWidth,
                       " and ", kMaxHeight));
  }
  if (width == 0 || height == 0) return ACL_SUCCESS;
  Copy copy{dst, src, dpitch, spitch, width, height};
  RETURN_IF_FAILED(ResolveSides(target->device(), kind, CopyBlocks(dst, src), &copy));
  return SubmitCopy(*target, copy);
}

aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (count == 0) return ACL_SUCCESS;
  RETURN_IF_FAILED(FillArguments(devPtr, maxCount, count));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  return FillNow(*context, devPtr, RepeatByte(value), count);
}

aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                          aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  if (count == 0) return ACL_SUCCESS;
  RETURN_IF_FAILED(FillArguments(devPtr, maxCount, count));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  return FillInStream(*target, devPtr, RepeatByte(value), count);
}

aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N) {
  RETURN_IF_FAILED(EnterCall(__func__));
  size_t bytes = 0;
  RETURN_IF_FAILED(WordFillArguments(ptr, memSize, N, &bytes));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  return FillNow(*context, ptr, value, bytes);
}

aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value, size_t N,
                             aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  size_t bytes = 0;
  RETURN_IF_FAILED(WordFillArguments(ptr, memSize, N, &bytes));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  // The vendor's document has host memory filled at once, as by aclrtMemsetD32, and not in the
  // stream's order; a capture must record the fill instead.
  if (target->capture() != nullptr || !Runtime::Get().memory().IsPinned(ptr, bytes)) {
    return FillInStream(*target, ptr, value, bytes);
  }
  return FillNow(*target->context(), ptr, value, bytes);
}
