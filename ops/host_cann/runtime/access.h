// Whether copies and kernels may touch the memory they are given.
#pragma once

#include <string_view>

#include "acl/acl.h"
#include "ops/host_cann/runtime/device.h"
#include "ops/host_cann/runtime/memory_table.h"

namespace opserve::host_cann {

// Live memory of `device`, or of a peer that it may use, that holds all of
// [address, address + bytes); null otherwise.
BlockPtr FindDeviceMemory(const Device& device, const void* address, size_t bytes);

// The same, or host memory registered for the device's kernels.
BlockPtr FindKernelMemory(const Device& device, const void* address, size_t bytes);

// The same, or page-locked host memory: all that tasks of a stream may touch.
BlockPtr FindTaskMemory(const Device& device, const void* address, size_t bytes);

// In checked mode, 107000 unless FindDeviceMemory finds the argument.
aclError CheckDeviceMemory(const Device& device, const void* address, size_t bytes,
                           std::string_view argument);
// The same, where the block that MemoryTable::FindOwned finds is known.
aclError CheckDeviceMemory(const Device& device, const BlockPtr& block, const void* address,
                           size_t bytes, std::string_view argument);

// In checked mode, 107000 if the argument is device memory, or leaves a page-locked block that it
// begins in. `block`: the one that MemoryTable::FindOwned finds.
aclError CheckHostMemory(const BlockPtr& block, const void* address, size_t bytes,
                         std::string_view argument);

}  // namespace opserve::host_cann
