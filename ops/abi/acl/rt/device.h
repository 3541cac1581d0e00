/* Devices, contexts, process options and versions. Included through acl/acl_rt.h, which states the
 * rules for all functions. */
#ifndef OPSERVE_ACL_RT_DEVICE_H_
#define OPSERVE_ACL_RT_DEVICE_H_

#include "acl/rt/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- versions ---- */

/* major * 10000000 + minor * 100000 + patch * 1000 of the package ("runtime", "driver").
 * 107000: no such package. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionNum(char* pkgName, int32_t* versionNum);
/* The same as text, into a buffer of ACL_PKG_VERSION_MAX_SIZE bytes. */
ACL_FUNC_VISIBILITY aclError aclsysGetVersionStr(char* pkgName, char* versionStr);
/* Deprecated form of aclsysGetVersionStr. */
ACL_FUNC_VISIBILITY aclError aclsysGetCANNVersion(aclCANNPackageName name,
                                                  aclCANNPackageVersion* version);
/* Version of the ACL interface, ACL_MAJOR_VERSION and so on; not of CANN. */
ACL_FUNC_VISIBILITY aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion,
                                             int32_t* patchVersion);

/* ---- devices ---- */

/* Name of the chip, such as "Ascend910B3"; static. Null on failure. Needs no context. */
ACL_FUNC_VISIBILITY const char* aclrtGetSocName(void);

/* Devices that this process may use; their ids are 0 to count - 1. Needs no context.
 * 207004: none is visible, or ASCEND_RT_VISIBLE_DEVICES is not ascending. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCount(uint32_t* count);

/* Binds the calling thread to the device's default context, which all threads share and which the
 * first call creates. Every call counts one more use. 107001: no such device. 507033: the device
 * cannot be opened. */
ACL_FUNC_VISIBILITY aclError aclrtSetDevice(int32_t deviceId);

/* Takes back one use. The last one waits for the tasks of the default context and releases the
 * device: all contexts, streams, events and device memory on it become invalid.
 * 507007: more resets than sets. */
ACL_FUNC_VISIBILITY aclError aclrtResetDevice(int32_t deviceId);

/* Releases the device whatever the number of uses, after unfinished tasks; hung ones are stopped.
 * 507007: the device has not been set since it was released, by a forced reset or the last other
 * one. */
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceForce(int32_t deviceId);

/* Device of the current context. */
ACL_FUNC_VISIBILITY aclError aclrtGetDevice(int32_t* deviceId);

/* ACL_HOST: the program runs beside the device, not on it. */
ACL_FUNC_VISIBILITY aclError aclrtGetRunMode(aclrtRunMode* runMode);

/* Waits for all streams of the current context and returns the error of one with a failed task. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDevice(void);
/* The same for at most `timeout` ms. 507046: not finished in time; the tasks continue. */
ACL_FUNC_VISIBILITY aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout);

/* One attribute of a device. 107000: an attribute this product lacks. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr,
                                                int64_t* value);
ACL_FUNC_VISIBILITY aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo,
                                                    int64_t* value);
/* Whether the device has a feature: 1 or 0. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceCapability(int32_t deviceId,
                                                      aclrtDevFeatureType devFeatureType,
                                                      int32_t* value);

/* Percentages of use. utilizationExtend must be null. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceUtilizationRate(int32_t deviceId,
                                                           aclrtUtilizationInfo* utilizationInfo);

/* Health of the device. Needs no context; answers for a lost device too. */
ACL_FUNC_VISIBILITY aclError aclrtQueryDeviceStatus(int32_t deviceId,
                                                    aclrtDeviceStatus* deviceStatus);

ACL_FUNC_VISIBILITY aclError aclrtDeviceGetUuid(int32_t deviceId, aclrtUuid* uuid);
/* 1: operators compiled for the chip named `socVersion` run on this one, 0: they do not. 107000: no
 * such chip. */
ACL_FUNC_VISIBILITY aclError aclrtCheckArchCompatibility(const char* socVersion,
                                                         int32_t* canCompatible);
/* "0000:c1:00.0", terminated, into `len` bytes (at least 13). */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetPCIBusId(int32_t deviceId, char* pciBusId, int32_t len);
/* Id of the visible device with that address. 107001: there is none. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceGetByPCIBusId(const char* pciBusId, int32_t* deviceId);
/* Number of the device before ASCEND_RT_VISIBLE_DEVICES renumbers it. */
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByUserDevId(const int32_t userDevId,
                                                         int32_t* const phyDevId);
/* Between the ids of this process (user), of the machine (logic), which are those before
 * ASCEND_RT_VISIBLE_DEVICES, and of the hardware (phy); the last two are the same here. 107001: no
 * visible device has that id. */
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByUserDevId(const int32_t userDevid,
                                                           int32_t* const logicDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByLogicDevId(const int32_t logicDevId,
                                                           int32_t* const userDevid);
ACL_FUNC_VISIBILITY aclError aclrtGetLogicDevIdByPhyDevId(const int32_t phyDevId,
                                                          int32_t* const logicDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetPhyDevIdByLogicDevId(const int32_t logicDevId,
                                                          int32_t* const phyDevId);
ACL_FUNC_VISIBILITY aclError aclrtGetUserDevIdByPhyDevId(const int32_t phyDevId,
                                                         int32_t* const userDevid);
/* Whether the default context of the device lives (`active` 1 or 0). `flags`, set to 0, may be
 * null. */
ACL_FUNC_VISIBILITY aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags,
                                                     int32_t* active);

/* Calls `callback` when a device is set (before and after every aclrtSetDevice) and when it is
 * released (before and after the reset that does it). `regName` tells callbacks apart; a null
 * callback removes the one of that name. The callback must not set or reset devices. 107000: a
 * callback of that name is registered; 207012: more than 1024. */
ACL_FUNC_VISIBILITY aclError aclrtRegDeviceStateCallback(const char* regName,
                                                         aclrtDeviceStateCallback callback,
                                                         void* args);

/* ---- peer access: copies between two devices ---- */

/* Whether the devices can copy from each other: 1. 100000: they are the same. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceCanAccessPeer(int32_t* canAccessPeer, int32_t deviceId,
                                                      int32_t peerDeviceId);
/* Lets the current device use memory of `peerDeviceId`, until it is disabled or the current device
 * is released. 100000: flags other than 0, or the current device itself. */
ACL_FUNC_VISIBILITY aclError aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags);
ACL_FUNC_VISIBILITY aclError aclrtDeviceDisablePeerAccess(int32_t peerDeviceId);
/* Whether `deviceId` may use memory of `peerDeviceId`: 1 or 0. */
ACL_FUNC_VISIBILITY aclError aclrtDevicePeerAccessStatus(int32_t deviceId, int32_t peerDeviceId,
                                                         int32_t* status);

/* ---- overflow of floating-point numbers: kernels here compute infinities and NaN and record no
 * overflow ---- */

/* INFNAN is the mode, and the only one (207000 for SATURATION; 107000 for others). */
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode);
/* Queues a copy of the overflow status, 64 bytes of zeros, to device memory. 107000: outputSize is
 * not 64. */
ACL_FUNC_VISIBILITY aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize,
                                                    aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtResetOverflowStatus(aclrtStream stream);

/* ---- limits of cores: kept and reported; kernels on the CPU do not follow them ---- */

/* Cores of a kind that the process's kernels may use on a device; at first all. 107000: an unknown
 * kind, 0, or more than the device has. */
ACL_FUNC_VISIBILITY aclError aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetDeviceResLimit(int32_t deviceId);
/* The same for kernels of a stream; where none is set, the device's limit. */
ACL_FUNC_VISIBILITY aclError aclrtGetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t* value);
ACL_FUNC_VISIBILITY aclError aclrtSetStreamResLimit(aclrtStream stream, aclrtDevResLimitType type,
                                                    uint32_t value);
ACL_FUNC_VISIBILITY aclError aclrtResetStreamResLimit(aclrtStream stream);
/* Makes a stream's limits those of the calling thread, and ends that. */
ACL_FUNC_VISIBILITY aclError aclrtUseStreamResInCurrentThread(aclrtStream stream);
ACL_FUNC_VISIBILITY aclError aclrtUnuseStreamResInCurrentThread(aclrtStream stream);
/* The limit of the stream that the thread uses, or of the current device. */
ACL_FUNC_VISIBILITY aclError aclrtGetResInCurrentThread(aclrtDevResLimitType type, uint32_t* value);

/* ---- contexts ---- */

/* Creates a context with a default stream of its own and binds the calling thread to it. */
ACL_FUNC_VISIBILITY aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);

/* Destroys a context made by aclrtCreateContext and, after their tasks, the streams left in it.
 * Threads bound to it have none afterwards. 107002: a default context. */
ACL_FUNC_VISIBILITY aclError aclrtDestroyContext(aclrtContext context);

/* Binds the calling thread. 107000: not a live context. */
ACL_FUNC_VISIBILITY aclError aclrtSetCurrentContext(aclrtContext context);
ACL_FUNC_VISIBILITY aclError aclrtGetCurrentContext(aclrtContext* context);

/* Default stream of the current context; not to be destroyed. */
ACL_FUNC_VISIBILITY aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream);

/* ---- options ---- */

/* Options of the current context. 100000: unknown option. 107021: read before it was set. */
ACL_FUNC_VISIBILITY aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

/* Options of the process, 0 at first. */
ACL_FUNC_VISIBILITY aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
ACL_FUNC_VISIBILITY aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

/* How long a stream may wait for an event, in seconds; 0, the default, is for ever. Holds for waits
 * queued afterwards, in the whole process. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpWaitTimeout(uint32_t timeout);

/* How long a kernel may run, in seconds, milliseconds or microseconds; 0 is the product's maximum.
 * Rounded up to a multiple of the interval, at most 254 of them. Holds for kernels queued
 * afterwards, in the whole process; one that takes longer fails with 507034. `actualTimeout`, in
 * microseconds, UINT64_MAX for no limit, may be null. */
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout);
ACL_FUNC_VISIBILITY aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, uint64_t* actualTimeout);
/* That interval, in microseconds. */
ACL_FUNC_VISIBILITY aclError aclrtGetOpTimeOutInterval(uint64_t* interval);
/* The limit that holds, in milliseconds. */
ACL_FUNC_VISIBILITY aclError aclrtGetOpExecuteTimeout(uint32_t* const timeoutMs);

#ifdef __cplusplus
}
#endif

#endif /* OPSERVE_ACL_RT_DEVICE_H_ */
