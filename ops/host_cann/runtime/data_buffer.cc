// Data buffers: pairs of an address and a size.
#include <cstdint>
#include <memory>

#include "acl/acl.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/handle_table.h"
#include "ops/host_cann/runtime/launch.h"

// The ABI's opaque structure.
struct aclDataBuffer {
  void* data;
  size_t size;
};

namespace opserve::host_cann {
namespace {

HandleTable<aclDataBuffer>& DataBuffers() {
  static auto* const buffers = new HandleTable<aclDataBuffer>;
  return *buffers;
}

void* HandleOf(const aclDataBuffer* buffer) { return const_cast<aclDataBuffer*>(buffer); }

// The buffer of a handle; an empty one if the handle is null or not alive.
aclDataBuffer ReadBuffer(const aclDataBuffer* handle) {
  const std::shared_ptr<aclDataBuffer> buffer = DataBuffers().Find(HandleOf(handle));
  return buffer == nullptr ? aclDataBuffer{nullptr, 0} : *buffer;
}

aclError NotAlive() {
  return Fail(ACL_ERROR_INVALID_PARAM, kBadValue, "dataBuffer is not a live data buffer");
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclDataBuffer* aclCreateDataBuffer(void* data, size_t size) {
  if (EnterCall(__func__) != ACL_SUCCESS) return nullptr;
  return static_cast<aclDataBuffer*>(
      DataBuffers().Insert(std::make_shared<aclDataBuffer>(aclDataBuffer{data, size})));
}

aclError aclDestroyDataBuffer(const aclDataBuffer* dataBuffer) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(dataBuffer, "dataBuffer"));
  return DataBuffers().Remove(HandleOf(dataBuffer)) ? ACL_SUCCESS : NotAlive();
}

aclError aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size) {
  RETURN_IF_FAILED(EnterCall(__func__));
  RETURN_IF_FAILED(RequireNotNull(dataBuffer, "dataBuffer"));
  const std::shared_ptr<aclDataBuffer> buffer = DataBuffers().Find(dataBuffer);
  if (buffer == nullptr) return NotAlive();
  *buffer = {data, size};
  return ACL_SUCCESS;
}

void* aclGetDataBufferAddr(const aclDataBuffer* dataBuffer) {
  if (EnterCall(__func__) != ACL_SUCCESS) return nullptr;
  return ReadBuffer(dataBuffer).data;
}

uint32_t aclGetDataBufferSize(const aclDataBuffer* dataBuffer) {
  if (EnterCall(__func__) != ACL_SUCCESS) return 0;
  return static_cast<uint32_t>(ReadBuffer(dataBuffer).size);
}

size_t aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer) {
  if (EnterCall(__func__) != ACL_SUCCESS) return 0;
  return ReadBuffer(dataBuffer).size;
}
