// Configurations of streams.
#include <cstring>
#include <memory>

#include "acl/acl.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The member of a configuration that an attribute sets.
struct Member {
  void* address;
  size_t bytes;
};

Member FindMember(aclrtStreamConfigHandle& config, aclrtStreamConfigAttr attr) {
  switch (attr) {
    case ACL_RT_STREAM_WORK_ADDR_PTR:
      return {&config.workptr, sizeof(config.workptr)};
    case ACL_RT_STREAM_WORK_SIZE:
      return {&config.workSize, sizeof(config.workSize)};
    case ACL_RT_STREAM_FLAG:
      return {&config.flag, sizeof(config.flag)};
    case ACL_RT_STREAM_PRIORITY:
      return {&config.priority, sizeof(config.priority)};
  }
  return {nullptr, 0};
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle() {
  if (EnterCall(__func__) != ACL_SUCCESS) return nullptr;
  // The structure is public: the caller owns it, until aclrtDestroyStreamConfigHandle.
  return std::make_unique<aclrtStreamConfigHandle>().release();
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(handle, "handle"));
  const std::unique_ptr<aclrtStreamConfigHandle> owned(handle);
  return ACL_SUCCESS;
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(handle, "handle"));
  RETURN_IF_FAILED(RequireNotNull(attrValue, "attrValue"));
  const Member member = FindMember(*handle, attr);
  if (member.address == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("attr is ", static_cast<int>(attr), ", must be 0 to 3"));
  }
  // Flags have 32 bits where a stream is created with them directly.
  const bool is_short_flag = attr == ACL_RT_STREAM_FLAG && valueSize == sizeof(uint32_t);
  if (valueSize != member.bytes && !is_short_flag) {
    return Fail(ACL_ERROR_INVALID_PARAM, kBadValue,
                Concat("valueSize is ", valueSize, ", must be ", member.bytes));
  }
  // Cleared first, so that a short flag leaves no old upper half.
  std::memset(member.address, 0, member.bytes);
  std::memcpy(member.address, attrValue, valueSize);
  return ACL_SUCCESS;
}
