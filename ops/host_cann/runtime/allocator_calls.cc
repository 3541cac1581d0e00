// The ABI's allocators: kept and reported. Nothing in the host CANN allocates through them.
#include <memory>
#include <string_view>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/handle_table.h"
#include "ops/host_cann/runtime/launch.h"

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

namespace {

// A description and the lock for its members, which several threads may set.
struct AllocatorDescription {
  Mutex mutex;
  Allocator allocator ABSL_GUARDED_BY(mutex);
};

HandleTable<AllocatorDescription>& Descriptions() {
  static auto* const descriptions = new HandleTable<AllocatorDescription>;
  return *descriptions;
}

aclError FindDescription(aclrtAllocatorDesc handle,
                         std::shared_ptr<AllocatorDescription>* description) {
  RETURN_IF_FAILED(RequireNotNull(handle, "allocatorDesc"));
  *description = Descriptions().Find(handle);
  if (*description != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "allocatorDesc is not a live description");
}

// Sets one member of a description.
template <typename T>
aclError SetMember(aclrtAllocatorDesc handle, T Allocator::*member, T value,
                   std::string_view name) {
  std::shared_ptr<AllocatorDescription> description;
  // The description first, as its mistake makes the value meaningless.
  RETURN_IF_FAILED(FindDescription(handle, &description));
  RETURN_IF_FAILED(RequireNotNull(reinterpret_cast<const void*>(value), name));
  MutexLock lock(description->mutex);
  description->allocator.*member = value;
  return ACL_SUCCESS;
}

// The function for advised addresses is optional.
aclError CheckComplete(const Allocator& allocator) {
  const auto require = [](const void* member, std::string_view name) {
    return RequireNotNull(member, name);
  };
  RETURN_IF_FAILED(require(allocator.object, "the allocator of allocatorDesc"));
  RETURN_IF_FAILED(require(reinterpret_cast<const void*>(allocator.allocate),
                           "the allocating function of allocatorDesc"));
  RETURN_IF_FAILED(require(reinterpret_cast<const void*>(allocator.free),
                           "the freeing function of allocatorDesc"));
  return require(reinterpret_cast<const void*>(allocator.address_of),
                 "the function of allocatorDesc that gives addresses");
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclrtAllocatorDesc aclrtAllocatorCreateDesc() {
  if (EnterCall(__func__) != ACL_SUCCESS) return nullptr;
  return Descriptions().Insert(std::make_shared<AllocatorDescription>());
}

aclError aclrtAllocatorDestroyDesc(aclrtAllocatorDesc allocatorDesc) {
  RETURN_IF_FAILED(EnterCall(__func__));
  std::shared_ptr<AllocatorDescription> description;
  RETURN_IF_FAILED(FindDescription(allocatorDesc, &description));
  Descriptions().Remove(allocatorDesc);
  return ACL_SUCCESS;
}

aclError aclrtAllocatorSetObjToDesc(aclrtAllocatorDesc allocatorDesc, aclrtAllocator allocator) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetMember(allocatorDesc, &Allocator::object, allocator, "allocator");
}

aclError aclrtAllocatorSetAllocFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                          aclrtAllocatorAllocFunc func) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetMember(allocatorDesc, &Allocator::allocate, func, "func");
}

aclError aclrtAllocatorSetFreeFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                         aclrtAllocatorFreeFunc func) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetMember(allocatorDesc, &Allocator::free, func, "func");
}

aclError aclrtAllocatorSetAllocAdviseFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                aclrtAllocatorAllocAdviseFunc func) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetMember(allocatorDesc, &Allocator::allocate_at, func, "func");
}

aclError aclrtAllocatorSetGetAddrFromBlockFuncToDesc(aclrtAllocatorDesc allocatorDesc,
                                                     aclrtAllocatorGetAddrFromBlockFunc func) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return SetMember(allocatorDesc, &Allocator::address_of, func, "func");
}

aclError aclrtAllocatorRegister(aclrtStream stream, aclrtAllocatorDesc allocatorDesc) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  std::shared_ptr<AllocatorDescription> description;
  RETURN_IF_FAILED(FindDescription(allocatorDesc, &description));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(FindStream(stream, &target));
  auto allocator = std::make_shared<Allocator>();
  {
    // A copy under the lock: the stream keeps it as it is now, whatever is set afterwards.
    MutexLock lock(description->mutex);
    *allocator = description->allocator;
  }
  allocator->description = allocatorDesc;
  RETURN_IF_FAILED(CheckComplete(*allocator));
  target->SetAllocator(std::move(allocator));
  return ACL_SUCCESS;
}

aclError aclrtAllocatorGetByStream(aclrtStream stream, aclrtAllocatorDesc* allocatorDesc,
                                   aclrtAllocator* allocator, aclrtAllocatorAllocFunc* allocFunc,
                                   aclrtAllocatorFreeFunc* freeFunc,
                                   aclrtAllocatorAllocAdviseFunc* allocAdviseFunc,
                                   aclrtAllocatorGetAddrFromBlockFunc* getAddrFromBlockFunc) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  RETURN_IF_FAILED(RequireNotNull(allocatorDesc, "allocatorDesc"));
  RETURN_IF_FAILED(RequireNotNull(allocator, "allocator"));
  RETURN_IF_FAILED(RequireNotNull(allocFunc, "allocFunc"));
  RETURN_IF_FAILED(RequireNotNull(freeFunc, "freeFunc"));
  RETURN_IF_FAILED(RequireNotNull(allocAdviseFunc, "allocAdviseFunc"));
  RETURN_IF_FAILED(RequireNotNull(getAddrFromBlockFunc, "getAddrFromBlockFunc"));
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(FindStream(stream, &target));
  const std::shared_ptr<const Allocator> found = target->allocator();
  if (found == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "stream has no allocator");
  }
  *allocatorDesc = found->description;
  *allocator = found->object;
  *allocFunc = found->allocate;
  *freeFunc = found->free;
  *allocAdviseFunc = found->allocate_at;
  *getAddrFromBlockFunc = found->address_of;
  return ACL_SUCCESS;
}

aclError aclrtAllocatorUnregister(aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(stream, "stream"));
  // No error for a stream that is gone: its allocator went with it.
  const std::shared_ptr<Stream> target = Runtime::Get().streams().Find(stream);
  if (target != nullptr) target->SetAllocator(nullptr);
  return ACL_SUCCESS;
}
