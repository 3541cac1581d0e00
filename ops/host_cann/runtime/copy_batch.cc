// Many copies in one call.
#include <cstdint>
#include <vector>

#include "acl/acl.h"
#include "ops/host_cann/runtime/binding.h"
#include "ops/host_cann/runtime/copy.h"
#include "ops/host_cann/runtime/error.h"
#include "ops/host_cann/runtime/launch.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

// The arguments that the functions share.
struct Batch {
  void** dsts;
  size_t* dest_maxs;
  void** srcs;
  size_t* sizes;
  size_t count;
  aclrtMemcpyBatchAttr* attrs;
  size_t* attrs_indexes;
  size_t num_attrs;
  size_t* fail_index;  // of the caller, or of a call that drops it
};

aclError Refuse(std::string_view text) {
  return Fail(ACL_ERROR_RT_PARAM_INVALID, kBadArgument, text);
}

// All of the batch that concerns no single copy.
aclError CheckBatch(const Batch& batch) {
  RETURN_IF_FAILED(RequireNotNull(batch.fail_index, "failIndex"));
  // Until a copy is at fault: the index of none, by the vendor's document.
  *batch.fail_index = SIZE_MAX;
  RETURN_IF_FAILED(RequireNotNull(batch.dsts, "dsts"));
  RETURN_IF_FAILED(RequireNotNull(batch.dest_maxs, "destMaxs"));
  RETURN_IF_FAILED(RequireNotNull(batch.srcs, "srcs"));
  RETURN_IF_FAILED(RequireNotNull(batch.sizes, "sizes"));
  RETURN_IF_FAILED(RequireNotNull(batch.attrs, "attrs"));
  RETURN_IF_FAILED(RequireNotNull(batch.attrs_indexes, "attrsIndexes"));
  if (!CurrentSoc().generation->copies_batches) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, kBadArgument,
                Concat(CurrentSoc().name, " does not copy batches"));
  }
  if (batch.num_attrs == 0 || batch.num_attrs > batch.count) {
    return Refuse(Concat("numAttrs is ", batch.num_attrs, ", must be 1 to numBatches, which is ",
                         batch.count));
  }
  // Attribute k holds for the copies from its index to the next attribute's, so the indices
  // partition the batch.
  for (size_t k = 0; k < batch.num_attrs; ++k) {
    const size_t index = batch.attrs_indexes[k];
    const bool in_order = k == 0 ? index == 0 : index > batch.attrs_indexes[k - 1];
    if (!in_order || index >= batch.count) {
      return Refuse(Concat("attrsIndexes[", k, "] is ", index,
                           ", must be 0 first, ascend, and be below numBatches, which is ",
                           batch.count));
    }
  }
  return ACL_SUCCESS;
}

// The direction that an attribute names: host to device or back.
aclError FindKind(const Device& device, const aclrtMemcpyBatchAttr& attr, aclrtMemcpyKind* kind) {
  // The host has no number; a device must be the current one, as all its addresses are checked
  // against it.
  const auto is_host = [](const aclrtMemLocation& location) {
    return location.type == ACL_MEM_LOCATION_TYPE_HOST;
  };
  const auto is_device = [&](const aclrtMemLocation& location) {
    return location.type == ACL_MEM_LOCATION_TYPE_DEVICE &&
           location.id == static_cast<uint32_t>(device.id());
  };
  if (is_host(attr.srcLoc) && is_device(attr.dstLoc)) {
    *kind = ACL_MEMCPY_HOST_TO_DEVICE;
  } else if (is_device(attr.srcLoc) && is_host(attr.dstLoc)) {
    *kind = ACL_MEMCPY_DEVICE_TO_HOST;
  } else {
    return Refuse(Concat("attrs: locations ", static_cast<int>(attr.srcLoc.type), " (",
                         attr.srcLoc.id, ") to ", static_cast<int>(attr.dstLoc.type), " (",
                         attr.dstLoc.id, ") are not the host and device ", device.id()));
  }
  return ACL_SUCCESS;
}

aclError FindCopy(const Device& device, const Batch& batch, size_t index, aclrtMemcpyKind kind,
                  Copy* copy) {
  RETURN_IF_FAILED(RequireNotNull(batch.dsts[index], "dsts[i]"));
  RETURN_IF_FAILED(RequireNotNull(batch.srcs[index], "srcs[i]"));
  if (batch.sizes[index] > batch.dest_maxs[index]) {
    return Refuse(Concat("sizes[", index, "] is ", batch.sizes[index],
                         ", must be at most destMaxs[", index, "], which is ",
                         batch.dest_maxs[index]));
  }
  *copy = Copy::Bytes(batch.dsts[index], batch.srcs[index], batch.sizes[index]);
  // An empty copy touches nothing, so its addresses are not looked at.
  if (batch.sizes[index] == 0) return ACL_SUCCESS;
  return ResolveSides(device, kind, CopyBlocks(copy->dst, copy->src), copy);
}

// The copies of a batch, all checked. Those without bytes are left out.
aclError FindCopies(const Device& device, const Batch& batch, std::vector<Copy>* copies) {
  RETURN_IF_FAILED(CheckBatch(batch));
  aclrtMemcpyKind first_kind = ACL_MEMCPY_DEFAULT;
  for (size_t k = 0; k < batch.num_attrs; ++k) {
    const size_t begin = batch.attrs_indexes[k];
    const size_t end = k + 1 < batch.num_attrs ? batch.attrs_indexes[k + 1] : batch.count;
    // Set ahead of each check: a check that fails returns with the index in place.
    *batch.fail_index = begin;
    aclrtMemcpyKind kind = ACL_MEMCPY_DEFAULT;
    RETURN_IF_FAILED(FindKind(device, batch.attrs[k], &kind));
    if (k == 0) first_kind = kind;
    // All are one direction, by the vendor's document.
    if (kind != first_kind) return Refuse("attrs: a batch copies in one direction only");
    for (size_t i = begin; i < end; ++i) {
      *batch.fail_index = i;
      Copy copy;
      RETURN_IF_FAILED(FindCopy(device, batch, i, kind, &copy));
      if (copy.width > 0) copies->push_back(copy);
    }
  }
  *batch.fail_index = SIZE_MAX;
  return ACL_SUCCESS;
}

aclError CopyBatchNow(const Batch& batch) {
  std::shared_ptr<Context> context;
  RETURN_IF_FAILED(UsableContext(&context));
  std::vector<Copy> copies;
  RETURN_IF_FAILED(FindCopies(context->device(), batch, &copies));
  // All are checked before the first runs: a batch is refused as a whole.
  for (const Copy& copy : copies) RETURN_IF_FAILED(CopyNow(*context, copy));
  return ACL_SUCCESS;
}

aclError CopyBatchInStream(const Batch& batch, aclrtStream stream) {
  std::shared_ptr<Stream> target;
  RETURN_IF_FAILED(UsableStream(stream, &target));
  std::vector<Copy> copies;
  RETURN_IF_FAILED(FindCopies(target->device(), batch, &copies));
  // The first with pageable memory waits for the stream. An error of a task then leaves the rest
  // uncopied.
  for (const Copy& copy : copies) RETURN_IF_FAILED(SubmitCopy(*target, copy));
  return ACL_SUCCESS;
}

}  // namespace
}  // namespace opserve::host_cann

using namespace opserve::host_cann;

aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                          size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                          size_t numAttrs, size_t* failIndex) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CopyBatchNow(
      {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex});
}

aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                            size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                            size_t numAttrs) {
  RETURN_IF_FAILED(EnterCall(__func__));
  size_t fail_index = 0;
  return CopyBatchNow(
      {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, &fail_index});
}

aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                               size_t numBatches, aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                               size_t numAttrs, size_t* failIndex, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  return CopyBatchInStream(
      {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, failIndex}, stream);
}

aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs, size_t* sizes,
                                 size_t numBatches, aclrtMemcpyBatchAttr* attrs,
                                 size_t* attrsIndexes, size_t numAttrs, aclrtStream stream) {
  RETURN_IF_FAILED(EnterCall(__func__));
  size_t fail_index = 0;
  return CopyBatchInStream(
      {dsts, destMaxs, srcs, sizes, numBatches, attrs, attrsIndexes, numAttrs, &fail_index},
      stream);
}
