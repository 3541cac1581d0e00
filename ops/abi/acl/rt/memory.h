/* Device and page-locked host memory, and copies. Included through acl/acl_rt.h, which states the
 * rules for all functions. All sizes are bytes. */
#ifndef OPSERVE_ACL_RT_MEMORY_H_
#define OPSERVE_ACL_RT_MEMORY_H_

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- device memory ---- */

/* Allocates on the current device, 64-byte aligned, contents unspecified; takes `size` rounded up
 * to 32, plus 32, from the device. An unknown `policy` counts as the first one. 100000: size 0.
 * 207001: out of memory. */
ACL_FUNC_VISIBILITY aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
/* Without the additional 32 bytes. */
ACL_FUNC_VISIBILITY aclError aclrtMallocAlign32(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy);
/* `cfg` (may be null) names the accounting module, the device, or both. */
ACL_FUNC_VISIBILITY aclError aclrtMallocWithCfg(void** devPtr, size_t size,
                                                aclrtMemMallocPolicy policy,
                                                aclrtMallocConfig* cfg);
/* Memory that a program on the device may cache, and the calls that keep its cache true. Nothing
 * runs on the device here, so there is nothing to flush. 100000: size 0. */
ACL_FUNC_VISIBILITY aclError aclrtMallocCached(void** devPtr, size_t size,
                                               aclrtMemMallocPolicy policy);
ACL_FUNC_VISIBILITY aclError aclrtMemFlush(void* devPtr, size_t size);
ACL_FUNC_VISIBILITY aclError aclrtMemInvalidate(void* devPtr, size_t size);
/* Frees at once, without waiting for tasks that use the block. `devPtr` is the address that an
 * allocation returned; anything else, and a second free, gives 107000. */
ACL_FUNC_VISIBILITY aclError aclrtFree(void* devPtr);
/* Synchronises the current device first. */
ACL_FUNC_VISIBILITY aclError aclrtFreeWithDevSync(void* devPtr);

/* Bytes free and in total on the current device; 0 and 0 for an attribute the product lacks. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);
/* Use per component: at most `inputNum` entries, their number to `outputNum`. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemUsageInfo(int32_t deviceId, aclrtMemUsageInfo* memUsageInfo,
                                                  size_t inputNum, size_t* outputNum);
/* Whether an address is device memory, page-locked host memory, or neither. */
ACL_FUNC_VISIBILITY aclError aclrtPointerGetAttributes(const void* ptr,
                                                       aclrtPtrAttributes* attributes);

/* Whether each of `size` addresses is device memory of a kind in `memType`, a combination of
 * ACL_RT_MEM_TYPE_*: 1 or 0. All device memory here is ACL_RT_MEM_TYPE_DEV. 107000: size 0, no
 * kind, or `reserve` other than 0. */
ACL_FUNC_VISIBILITY aclError aclrtCheckMemType(void** addrList, uint32_t size, uint32_t memType,
                                               uint32_t* checkResult, uint32_t reserve);

/* Sets `count` bytes of memory that has room for `maxCount`. 107000: count above maxCount. A count
 * of 0 succeeds whatever the other arguments. */
ACL_FUNC_VISIBILITY aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value,
                                         size_t count);
ACL_FUNC_VISIBILITY aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value,
                                              size_t count, aclrtStream stream);
/* Sets `N` words of 4 bytes of device or page-locked memory that has room for `memSize` bytes; the
 * second one in stream order, but for page-locked memory at once. 100000: N 0, or memSize below
 * 4 * N. 207000: on the products of 910 and 310P. */
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32(void* ptr, size_t memSize, uint32_t value, size_t N);
ACL_FUNC_VISIBILITY aclError aclrtMemsetD32Async(void* ptr, size_t memSize, uint32_t value,
                                                 size_t N, aclrtStream stream);

/* ---- host memory ---- */

/* Allocates page-locked host memory, 64-byte aligned. 100000: size 0. 207001: out of memory. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHost(void** hostPtr, size_t size);
/* The same; `cfg` (may be null) names the accounting module and VA_FLAG, which has no effect.
 * 207000: other attributes. */
ACL_FUNC_VISIBILITY aclError aclrtMallocHostWithCfg(void** ptr, uint64_t size,
                                                    aclrtMallocConfig* cfg);
/* Frees it at once. 107000: not such memory, or still registered. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHost(void* hostPtr);
/* Synchronises the current device first. */
ACL_FUNC_VISIBILITY aclError aclrtFreeHostWithDevSync(void* hostPtr);

/* Maps host memory for kernels of the current device; `ptr` is aligned to 4096 (107000). The memory
 * stays the caller's and must outlive the registration. `*devPtr` is for kernels, not for copies.
 * 507910: part of it is registered. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type,
                                               void** devPtr);
/* With flags ACL_HOST_REG_*: MAPPED for kernels, PINNED for asynchronous copies. */
ACL_FUNC_VISIBILITY aclError aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag);
/* Device address of an address in memory that is registered as mapped (507911 otherwise). `flag`
 * must be 0. */
ACL_FUNC_VISIBILITY aclError aclrtHostGetDevicePointer(void* pHost, void** pDevice, uint32_t flag);
/* `ptr` is the registered address. 507911: it is not. */
ACL_FUNC_VISIBILITY aclError aclrtHostUnregister(void* ptr);

/* ---- copies ---- */

/* Copies `count` bytes to memory that has room for `destMax`, at once. Host memory may be any.
 * Not ordered with streams, and reports no errors of theirs. A count of 0 succeeds whatever the
 * other arguments, and so does a copy to itself. Where both addresses are device or page-locked
 * memory they give the direction and not `kind`. 107000: count above destMax, or other addresses
 * that do not fit `kind`; 100000: kinds 6 and 7. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                         aclrtMemcpyKind kind);
/* In stream order. With page-locked host memory (aclrtMallocHost, or registered as pinned) the call
 * returns at once; with other host memory it waits for the stream and returns when the copy has
 * been done, or, without a copy, with the error of an earlier task of the stream. Arguments as
 * above. 207000: host to host. Both buffers must stay until the stream has passed the copy. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src,
                                              size_t count, aclrtMemcpyKind kind,
                                              aclrtStream stream);
/* The same; deprecated. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithCondition(void* dst, size_t destMax,
                                                           const void* src, size_t count,
                                                           aclrtMemcpyKind kind,
                                                           aclrtStream stream);
/* Many copies between host and device, all in one direction and in any order. Copy i moves sizes[i]
 * bytes to memory that has room for destMaxs[i]. attrs[k] says for the copies from attrsIndexes[k]
 * to before attrsIndexes[k + 1] where their memory is: the host, or the current device with its id.
 * attrsIndexes begins with 0 and ascends. All is checked before anything is copied; `*failIndex`
 * becomes the first copy that is wrong, SIZE_MAX if none is.
 *   100000  a null array or `failIndex`
 *   107000  numBatches 0, numAttrs not from 1 to numBatches, attrsIndexes out of order, memory that
 *           is not where attrs says, both directions, sizes[i] above destMaxs[i]
 *   207000  on the products of 910 and 310P */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatch(void** dsts, size_t* destMaxs, void** srcs,
                                              size_t* sizes, size_t numBatches,
                                              aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                              size_t numAttrs, size_t* failIndex);
/* In stream order; returns as aclrtMemcpyAsync does. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsync(void** dsts, size_t* destMaxs, void** srcs,
                                                   size_t* sizes, size_t numBatches,
                                                   aclrtMemcpyBatchAttr* attrs,
                                                   size_t* attrsIndexes, size_t numAttrs,
                                                   size_t* failIndex, aclrtStream stream);
/* The two without `failIndex`. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchV2(void** dsts, size_t* destMaxs, void** srcs,
                                                size_t* sizes, size_t numBatches,
                                                aclrtMemcpyBatchAttr* attrs, size_t* attrsIndexes,
                                                size_t numAttrs);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyBatchAsyncV2(void** dsts, size_t* destMaxs, void** srcs,
                                                     size_t* sizes, size_t numBatches,
                                                     aclrtMemcpyBatchAttr* attrs,
                                                     size_t* attrsIndexes, size_t numAttrs,
                                                     aclrtStream stream);
/* `height` rows of `width` bytes, `dpitch` and `spitch` bytes apart; width is at most either. Host
 * to device and back (100000: other kinds). */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch,
                                           size_t width, size_t height, aclrtMemcpyKind kind);
/* Also device to device, except on the products of 910 and 310P. width is at most 5000000, height
 * 5242880. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src,
                                                size_t spitch, size_t width, size_t height,
                                                aclrtMemcpyKind kind, aclrtStream stream);

/* ---- copies that read their addresses from device memory when they run; `kind` must be
 * ACL_MEMCPY_INNER_DEVICE_TO_DEVICE (100000). Memory that is not live then: 507013 ---- */

/* Queues a copy of `count` bytes. `dst` and `src` are in device memory and hold the addresses that
 * the offsets, in bytes, are added to. 107000: count above destMax. 207000: on the products of
 * 310P. */
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithOffset(void** dst, size_t destMax,
                                                        size_t dstDataOffset, const void** src,
                                                        size_t count, size_t srcDataOffset,
                                                        aclrtMemcpyKind kind, aclrtStream stream);
/* Bytes of device memory that a description of a copy takes; writes one into such memory, at once;
 * queues the copy. The memory stays the caller's, `config` must be null (107000). 207000: on the
 * products of 910 and 310P. */
ACL_FUNC_VISIBILITY aclError aclrtGetMemcpyDescSize(aclrtMemcpyKind kind, size_t* descSize);
ACL_FUNC_VISIBILITY aclError aclrtSetMemcpyDesc(void* desc, aclrtMemcpyKind kind, void* srcAddr,
                                                void* dstAddr, size_t count, void* config);
ACL_FUNC_VISIBILITY aclError aclrtMemcpyAsyncWithDesc(void* desc, aclrtMemcpyKind kind,
                                                      aclrtStream stream);

/* ---- arithmetic between memory ---- */

/* Queues dst[i] = dst[i] + src[i], or their larger or smaller one, for `count` bytes of elements of
 * `type` in memory of the stream's device. Half-precision sums are rounded once, to nearest even;
 * integers wrap; the larger and the smaller of a number and NaN are NaN. `reserve` must be null.
 *   107000  count is 0 or no whole number of elements, memory that is not the device's
 *   207000  ACL_RT_MEMCPY_SDMA_AUTOMATIC_EQUAL; a type that the product does not reduce. A2 and A3
 *           have INT8, INT16, INT32, FLOAT16, BF16 and FLOAT, 310P has INT16, FLOAT16 and FLOAT,
 *           910 has FLOAT */
ACL_FUNC_VISIBILITY aclError aclrtReduceAsync(void* dst, const void* src, uint64_t count,
                                              aclrtReduceKind kind, aclDataType type,
                                              aclrtStream stream, void* reserve);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_RT_MEMORY_H_ */
