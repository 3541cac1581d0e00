// The products that the host CANN can stand in for, and all that it does differently for each.
//
// Where the documents do not tell products apart, all are as Atlas A2: numbers of cores, memory,
// codes of faults.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace opserve::host_cann {

struct Generation {
  std::array<const char*, 12> socs;  // chips, as aclrtGetSocName names them; null behind the last
  int64_t npu_arch;                  // ACL_DEV_ATTR_NPU_ARCH
  int max_streams;                   // of a device, default streams included
  int max_events;                    // of a device
  int max_notifies;                  // of a device
  uint64_t timeout_interval_us;      // unit of the execution limit
  uint64_t default_execution_us;     // the limit before one is set; 0: the largest
  uint64_t max_execution_us;         // the largest; 0: 254 intervals, or none if they are fine
  bool default_stream_has_failure_mode;  // aclrtSetStreamFailureMode takes null
  bool copies_rows_on_device;            // aclrtMemcpy2dAsync takes DEVICE_TO_DEVICE
  bool waits_for_other_devices;          // aclrtStreamWaitEvent takes another device's event
  bool has_value_tasks;                  // aclrtValueWrite, aclrtValueWait
  bool copies_batches;                   // aclrtMemcpyBatch
  bool copies_with_offsets;              // aclrtMemcpyAsyncWithOffset
  bool copies_by_description;            // aclrtMemcpyAsyncWithDesc
  bool fills_words;                      // aclrtMemsetD32
  bool flags_event_uses;                 // aclrtRecordEventWithFlag
  bool captures_streams;                 // aclmdlRICaptureBegin
  uint64_t reduced_types;                // of aclrtReduceAsync: bit n is the type of value n

  // Operators.
  bool computes_bf16;
  bool computes_double;  // KlDivBackward only
  bool has_kl_div_target_backward;
};

// A product's chip.
struct Soc {
  const char* name;  // "Ascend910B3"; static
  const Generation* generation;
};

// The chip named `name`. False: none of ours has that name.
bool FindSoc(std::string_view name, Soc* soc);

// All names that FindSoc knows, for messages.
std::string SocNames();

// The chip that stands in place of an unset OPSERVE_HOST_SOC.
Soc DefaultSoc();

// The product that the process's host CANN stands in for. Exported, for the operator libraries.
__attribute__((visibility("default"))) const Soc& CurrentSoc();

}  // namespace opserve::host_cann
