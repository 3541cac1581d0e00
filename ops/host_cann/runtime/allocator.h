// Allocators that programs give to streams.
#pragma once

#include "acl/acl.h"

namespace opserve::host_cann {

// As registered: later changes of the description do not show.
struct Allocator {
  aclrtAllocatorDesc description = nullptr;
  aclrtAllocator object = nullptr;
  aclrtAllocatorAllocFunc allocate = nullptr;
  aclrtAllocatorFreeFunc free = nullptr;
  aclrtAllocatorAllocAdviseFunc allocate_at = nullptr;
  aclrtAllocatorGetAddrFromBlockFunc address_of = nullptr;
};

}  // namespace opserve::host_cann
