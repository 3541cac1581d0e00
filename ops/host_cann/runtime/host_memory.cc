// Page-locked and registered host memory.
#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// Of the host, and the alignment that the vendor demands of registered memory.
constexpr size_t kPageBytes = 4096;

aclError FreeHost(void* hostPtr) {
  MemoryTable& memory = Runtime::Get().memory();
  const BlockPtr block = memory.FindOwned(hostPtr);
  // The start alone frees: an address inside the block is refused.
  if (block == nullptr || block->kind != MemoryBlock::Kind::kPinned ||
      block->start != reinterpret_cast<uintptr_t>(hostPtr)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kHostMemory,
                "hostPtr is not the start of live page-locked memory");
  }
  // The registration would name memory that is gone, or another allocation's.
  if (memory.IsRegistered(*block)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kHostMemory,
                "hostPtr is registered: call aclrtHostUnregister first");
  }
  // By the kind as well as the address: another thread may have freed the block since it was looked
  // at.
  if (memory.TakeOwned(hostPtr, MemoryBlock::Kind::kPinned) != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kHostMemory, "hostPtr has been freed by another thread");
}

aclError AllocateHost(void** hostPtr, size_t size) {
  RETURN_IF_FAILED(RequireNotNull(hostPtr, "hostPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "size is 0, must be at least 1");
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  // Whole pages, so that the memory can be registered.
  // Rounded to pages a size must stay in the address space.
  constexpr size_t kLargest = SIZE_MAX / 4;
  std::unique_ptr<SystemMemory> memory;
  if (size <= kLargest) memory = SystemMemory::AllocatePages(size);
  if (memory == nullptr) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, kHostMemory,
                Concat("the system has no ", size, " bytes"));
  }
  auto block = std::make_shared<MemoryBlock>();
  block->kind = MemoryBlock::Kind::kPinned;
  block->device = context->device().id();
  block->start = reinterpret_cast<uintptr_t>(memory->address());
  block->bytes = size;
  block->pinned = true;
  block->memory = std::move(memory);
  *hostPtr = block->memory->address();
  Runtime::Get().memory().InsertOwned(std::move(block));
  return ACL_SUCCESS;
}

aclError Register(void* ptr, uint64_t size, bool mapped, bool pinned) {
  RETURN_IF_FAILED(RequireNotNull(ptr, "ptr"));
  const auto start = reinterpret_cast<uintptr_t>(ptr);
  // The end must not pass the address space: ranges are compared by their ends.
  if (size == 0 || size > UINTPTR_MAX - start) {
    return Fail(ACL_ERROR_INVALID_PARAM, kHostMemory,
                Concat("size is ", size, ", must be at least 1 and end inside the address space"));
  }
  if (start % kPageBytes != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kHostMemory,
                Concat("ptr must be a multiple of ", kPageBytes));
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  // Host memory of any origin may be registered; only the device's own makes no sense.
  const BlockPtr owned = Runtime::Get().memory().FindOwned(ptr);
  if (owned != nullptr && owned->kind == MemoryBlock::Kind::kDevice && owned->Contains(ptr, 1)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kHostMemory, "ptr is device memory");
  }
  auto block = std::make_shared<MemoryBlock>();
  block->kind = MemoryBlock::Kind::kRegistered;
  block->device = context->device().id();
  block->start = start;
  block->bytes = size;
  block->mapped = mapped;
  block->pinned = pinned;
  if (Runtime::Get().memory().InsertRegistered(std::move(block))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED, kHostMemory,
              "ptr, or part of the memory, is registered");
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtMallocHost(void** hostPtr, size_t size) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return AllocateHost(hostPtr, size);
}

aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size, aclrtMallocConfig* cfg) {
  RETURN_IF_FAILED(EnterCall(__func__));
  for (size_t i = 0; cfg != nullptr && i < cfg->numAttrs; ++i) {
    RETURN_IF_FAILED(RequireNotNull(cfg->attrs, "cfg->attrs"));
    const aclrtMallocAttrType attr = cfg->attrs[i].attr;
    // VA_FLAG is taken without effect: host and device share their addresses here.
    if (attr != ACL_RT_MEM_ATTR_RSV && attr != ACL_RT_MEM_ATTR_MODULE_ID &&
        attr != ACL_RT_MEM_ATTR_VA_FLAG) {
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                  Concat("cfg->attrs[", i, "].attr is ", static_cast<int>(attr),
                         ", must be a module id or VA_FLAG"));
    }
  }
  return AllocateHost(ptr, size);
}

aclError aclrtFreeHost(void* hostPtr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(hostPtr, "hostPtr"));
  return FreeHost(hostPtr);
}

aclError aclrtFreeHostWithDevSync(void* hostPtr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(hostPtr, "hostPtr"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  // The whole context, as any of its streams may copy from or to the memory.
  RETURN_IF_FAILED(context->Synchronize(std::nullopt));
  return FreeHost(hostPtr);
}

aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, void** devPtr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  if (type != ACL_HOST_REGISTER_MAPPED) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHostMemory,
                Concat("type is ", static_cast<int>(type), ", must be ACL_HOST_REGISTER_MAPPED"));
  }
  RETURN_IF_FAILED(Register(ptr, size, /*mapped=*/true, /*pinned=*/true));
  // One address space: the device sees host memory where the host does.
  *devPtr = ptr;
  return ACL_SUCCESS;
}

aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  constexpr uint32_t kAllowed = ACL_HOST_REG_MAPPED | ACL_HOST_REG_PINNED;
  if (flag == 0 || (flag & ~kAllowed) != 0) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kHostMemory,
                Concat("flag is ", flag, ", must be ACL_HOST_REG_MAPPED, _PINNED or both"));
  }
  return Register(ptr, size, (flag & ACL_HOST_REG_MAPPED) != 0, (flag & ACL_HOST_REG_PINNED) != 0);
}

aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(pHost, "pHost"));
  RETURN_IF_FAILED(RequireNotNull(pDevice, "pDevice"));
  if (flag != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, Concat("flag is ", flag, ", must be 0"));
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  // By device: memory that is mapped for one is unknown to another.
  const BlockPtr block = Runtime::Get().memory().FindRegistered(pHost, context->device().id());
  if (block == nullptr || !block->mapped || !block->Contains(pHost, 1)) {
    return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, kHostMemory,
                "pHost is not registered as mapped on this device");
  }
  *pDevice = pHost;
  return ACL_SUCCESS;
}

aclError aclrtHostUnregister(void* ptr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(ptr, "ptr"));
  std::shared_ptr<Context> context;
  // No check of the device's health: programs tidy up after a loss too.
  RETURN_IF_FAILED(CurrentContext(&context));
  if (Runtime::Get().memory().TakeRegistered(ptr, context->device().id()) != nullptr) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_HOST_MEMORY_NOT_REGISTERED, kHostMemory,
              "ptr is not registered on this device");
}
