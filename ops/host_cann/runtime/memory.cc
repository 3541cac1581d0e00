// Device memory: allocation and questions about it.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "acl/acl.h"
#include "ops/host_cann/runtime/access.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The vendor's accounting: sizes are rounded up to 32 bytes, and 32 more are added. On the host
// they only count.
constexpr size_t kGranularity = 32;
constexpr size_t kPadding = 32;
// Beyond any capacity, and small enough that rounding cannot overflow.
constexpr size_t kMaxBytes = size_t{1} << 62;

// An unknown policy is taken for the first one.
bool WantsHugePages(aclrtMemMallocPolicy policy) {
  const uint32_t pages = static_cast<uint32_t>(policy) & 0xFF;
  return pages != ACL_MEM_MALLOC_NORMAL_ONLY && pages != ACL_MEM_MALLOC_NORMAL_ONLY_P2P;
}

aclError AllocateOn(Device& device, void** devPtr, size_t size, size_t padding,
                    aclrtMemMallocPolicy policy) {
  // Beyond kMaxBytes the size itself is charged, which no device has, so the rounding is left out.
  const size_t charged =
      size > kMaxBytes ? size : (size + kGranularity - 1) / kGranularity * kGranularity + padding;
  // Charged before the system is asked: a program that is over the device's limit takes nothing of
  // the host's memory.
  if (!device.memory().Take(charged)) {
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, kExhausted,
                Concat("device ", device.id(), " has ", device.memory().available(),
                       " bytes free, the allocation takes ", charged));
  }
  std::unique_ptr<SystemMemory> memory = SystemMemory::Allocate(size, WantsHugePages(policy));
  if (memory == nullptr) {
    device.memory().Return(charged);
    return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, kExhausted,
                Concat("the system has no ", size, " bytes for device ", device.id()));
  }
  auto block = std::make_shared<MemoryBlock>();
  block->kind = MemoryBlock::Kind::kDevice;
  // The owner for messages and for the reset; peers may use the block as well.
  block->device = device.id();
  block->start = reinterpret_cast<uintptr_t>(memory->address());
  // Without the padding: checked mode refuses accesses to it.
  block->bytes = size;
  block->charged_bytes = charged;
  block->memory = std::move(memory);
  *devPtr = block->memory->address();
  Runtime::Get().memory().InsertOwned(std::move(block));
  return ACL_SUCCESS;
}

aclError AllocateOnCurrent(void** devPtr, size_t size, size_t padding, aclrtMemMallocPolicy policy,
                           const aclrtMallocConfig* cfg) {
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "size is 0, must be at least 1");
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  Device* device = &context->device();
  // Attributes are read in turn; a device id overrides the current device.
  for (size_t i = 0; cfg != nullptr && i < cfg->numAttrs; ++i) {
    RETURN_IF_FAILED(RequireNotNull(cfg->attrs, "cfg->attrs"));
    const aclrtMallocAttribute& attribute = cfg->attrs[i];
    switch (attribute.attr) {
      case ACL_RT_MEM_ATTR_RSV:
      // Ids for accounting, which the runtime's counters do not split.
      case ACL_RT_MEM_ATTR_MODULE_ID:
        break;
      case ACL_RT_MEM_ATTR_DEVICE_ID:
        RETURN_IF_FAILED(FindDevice(attribute.value.deviceId, &device));
        RETURN_IF_FAILED(device->CheckUsable());
        break;
      default:
        return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                    Concat("cfg->attrs[", i, "].attr is ", static_cast<int>(attribute.attr),
                           ", must be a module or device id"));
    }
  }
  return AllocateOn(*device, devPtr, size, padding, policy);
}

// The arguments of calls that maintain a cache, which the host CANN has no need of.
aclError CheckCached(void* devPtr, size_t size) {
  // As for allocations: 0 is the caller's mistake, not an empty range.
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  if (size == 0) return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "size is 0, must be at least 1");
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  return CheckDeviceMemory(context->device(), devPtr, size, "devPtr");
}

// The device block that an address lies in; null for other addresses.
BlockPtr FindDeviceBlock(const void* address) {
  BlockPtr block = Runtime::Get().memory().FindOwned(address);
  if (block == nullptr || block->kind != MemoryBlock::Kind::kDevice ||
      !block->Contains(address, 1)) {
    return nullptr;
  }
  return block;
}

aclError Free(void* devPtr) {
  // The block goes to the system when its last task has ended: tasks hold the blocks that they work
  // on.
  const BlockPtr block = Runtime::Get().memory().TakeOwned(devPtr, MemoryBlock::Kind::kDevice);
  if (block != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
              "devPtr is not the start of live device memory");
}

bool HasMemory(aclrtMemAttr attr) {
  switch (attr) {
    // The products here have HBM only. The vendor answers 0 for memory that a product lacks.
    case ACL_DDR_MEM:
    case ACL_DDR_MEM_HUGE:
    case ACL_DDR_MEM_NORMAL:
    case ACL_DDR_MEM_P2P_HUGE:
    case ACL_DDR_MEM_P2P_NORMAL:
      return false;
    default:
      return true;
  }
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return AllocateOnCurrent(devPtr, size, kPadding, policy, nullptr);
}

aclError aclrtMallocAlign32(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return AllocateOnCurrent(devPtr, size, 0, policy, nullptr);
}

aclError aclrtMallocWithCfg(void** devPtr, size_t size, aclrtMemMallocPolicy policy,
                            aclrtMallocConfig* cfg) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return AllocateOnCurrent(devPtr, size, kPadding, policy, cfg);
}

aclError aclrtMallocCached(void** devPtr, size_t size, aclrtMemMallocPolicy policy) {
  RETURN_IF_FAILED(EnterCall(__func__));
  // Device memory is the host's own, so it is cached as any.
  return AllocateOnCurrent(devPtr, size, kPadding, policy, nullptr);
}

aclError aclrtMemFlush(void* devPtr, size_t size) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CheckCached(devPtr, size);
}

aclError aclrtMemInvalidate(void* devPtr, size_t size) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CheckCached(devPtr, size);
}

aclError aclrtFree(void* devPtr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  const BlockPtr block = Runtime::Get().memory().FindOwned(devPtr);
  if (block != nullptr && block->kind == MemoryBlock::Kind::kDevice) {
    // Of the block's device, which need not be the current one.
    RETURN_IF_FAILED(Runtime::Get().FindDevice(block->device)->CheckNotLost());
  }
  return Free(devPtr);
}

aclError aclrtFreeWithDevSync(void* devPtr) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(devPtr, "devPtr"));
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  // Of the current context, like aclrtSynchronizeDevice. A failure of a task is returned, and the
  // memory stays.
  RETURN_IF_FAILED(context->Synchronize(std::nullopt));
  return Free(devPtr);
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(free, "free"));
  RETURN_IF_FAILED(RequireNotNull(total, "total"));
  if (attr < ACL_DDR_MEM || attr > ACL_MEM_P2P_HUGE1G) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("attr is ", static_cast<int>(attr), ", must be 0 to 17"));
  }
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  const Quota& memory = context->device().memory();
  *free = HasMemory(attr) ? memory.available() : 0;
  *total = HasMemory(attr) ? memory.limit() : 0;
  return ACL_SUCCESS;
}

aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo, size_t inputNum,
                              size_t* outputNum) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(memUsageInfo, "memUsageInfo"));
  RETURN_IF_FAILED(RequireNotNull(outputNum, "outputNum"));
  if (inputNum == 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "inputNum is 0, must be at least 1");
  }
  Device* device = nullptr;
  RETURN_IF_FAILED(FindDevice(deviceId, &device));
  RETURN_IF_FAILED(device->CheckNotLost());
  // One component: the program itself.
  *memUsageInfo = {};
  std::snprintf(memUsageInfo->name, sizeof(memUsageInfo->name), "APP");
  memUsageInfo->curMemSize = device->memory().used();
  memUsageInfo->memPeakSize = device->memory().peak();
  *outputNum = 1;
  return ACL_SUCCESS;
}

aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType, uint32_t* checkResult,
                           uint32_t reserve) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(addrList, "addrList"));
  RETURN_IF_FAILED(RequireNotNull(checkResult, "checkResult"));
  constexpr uint32_t kKinds = ACL_RT_MEM_TYPE_DEV | ACL_RT_MEM_TYPE_DVPP | ACL_RT_MEM_TYPE_RSVD;
  // DVPP and reserved memory are valid questions, though no address here has these kinds.
  if (size == 0 || memType == 0 || (memType & ~kKinds) != 0 || reserve != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument,
                Concat("size is ", size, ", memType ", memType, ", reserve ", reserve,
                       ": must be at least 1, a combination of ACL_RT_MEM_TYPE flags, and 0"));
  }
  const bool all_on_devices = std::all_of(addrList, addrList + size, [](const void* address) {
    return FindDeviceBlock(address) != nullptr;
  });
  *checkResult = (memType & ACL_RT_MEM_TYPE_DEV) != 0 && all_on_devices ? 1 : 0;
  return ACL_SUCCESS;
}

aclError aclrtPointerGetAttributes(const void* ptr, aclrtPtrAttributes* attributes) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(ptr, "ptr"));
  RETURN_IF_FAILED(RequireNotNull(attributes, "attributes"));
  // Of the host; 0 for memory that the runtime does not know.
  constexpr uint32_t kPageBytes = 4096;
  const BlockPtr block = FindDeviceBlock(ptr);
  *attributes = {};
  attributes->pageSize = kPageBytes;
  if (block != nullptr) {
    attributes->location = {static_cast<uint32_t>(block->device), ACL_MEM_LOCATION_TYPE_DEVICE};
  } else if (Runtime::Get().memory().IsPinned(ptr, 1)) {
    // Page-locked memory, allocated or registered.
    attributes->location = {0, ACL_MEM_LOCATION_TYPE_HOST};
  } else {
    attributes->location = {0, ACL_MEM_LOCATION_TYPE_UNREGISTERED};
    attributes->pageSize = 0;
  }
  return ACL_SUCCESS;
}
