#include "ops/host_cann/runtime/access.h"

#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

aclError Refuse(std::string_view argument, size_t bytes, std::string_view problem) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              Concat(argument, ", ", bytes, " bytes, ", problem));
}

bool IsDeviceMemory(const Device& device, const BlockPtr& block, const void* address,
                    size_t bytes) {
  // A peer's memory counts as the device's own, once access is enabled.
  return block != nullptr && block->kind == MemoryBlock::Kind::kDevice &&
         device.Reaches(block->device) && block->Contains(address, bytes);
}

}  // namespace

BlockPtr FindDeviceMemory(const Device& device, const void* address, size_t bytes) {
  BlockPtr block = Runtime::Get().memory().FindOwned(address);
  return IsDeviceMemory(device, block, address, bytes) ? block : nullptr;
}

BlockPtr FindKernelMemory(const Device& device, const void* address, size_t bytes) {
  // Most arguments are device memory, so that is looked for first.
  if (BlockPtr block = FindDeviceMemory(device, address, bytes)) return block;
  BlockPtr block = Runtime::Get().memory().FindRegistered(address, device.id());
  if (block == nullptr || !block->mapped || !block->Contains(address, bytes)) return nullptr;
  return block;
}

BlockPtr FindTaskMemory(const Device& device, const void* address, size_t bytes) {
  if (BlockPtr block = FindKernelMemory(device, address, bytes)) return block;
  return Runtime::Get().memory().FindPinned(address, bytes);
}

aclError CheckDeviceMemory(const Device& device, const void* address, size_t bytes,
                           std::string_view argument) {
  // Before the lookup, which unchecked mode saves.
  if (!Runtime::Get().settings().checked) return ACL_SUCCESS;
  return CheckDeviceMemory(device, Runtime::Get().memory().FindOwned(address), address, bytes,
                           argument);
}

aclError CheckDeviceMemory(const Device& device, const BlockPtr& block, const void* address,
                           size_t bytes, std::string_view argument) {
  if (!Runtime::Get().settings().checked) return ACL_SUCCESS;
  if (IsDeviceMemory(device, block, address, bytes)) return ACL_SUCCESS;
  // From here on only the message differs: which of the rules is broken.
  if (block == nullptr || block->kind != MemoryBlock::Kind::kDevice) {
    return Refuse(argument, bytes, "is not live device memory");
  }
  if (!device.Reaches(block->device)) {
    return Refuse(argument, bytes,
                  Concat("is memory of device ", block->device, ", the current one is ",
                         device.id(), " and has no peer access to it"));
  }
  const size_t room = block->end() - reinterpret_cast<uintptr_t>(address);
  return Refuse(argument, bytes,
                Concat("leaves its allocation, which has ", room, " from there on"));
}

aclError CheckHostMemory(const BlockPtr& block, const void* address, size_t bytes,
                         std::string_view argument) {
  if (!Runtime::Get().settings().checked) return ACL_SUCCESS;
  // An address just behind a block may be that of unrelated memory.
  // Pageable memory is not known, so any other address passes.
  if (block == nullptr || !block->Contains(address, 1)) return ACL_SUCCESS;
  if (block->kind == MemoryBlock::Kind::kDevice) {
    return Refuse(argument, bytes, "is device memory, must be host memory");
  }
  if (block->Contains(address, bytes)) return ACL_SUCCESS;
  return Refuse(argument, bytes, "leaves its page-locked allocation");
}

}  // namespace opserve::host_cann
