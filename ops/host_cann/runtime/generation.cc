#include "ops/host_cann/runtime/generation.h"

#include <initializer_list>

#include "acl/acl.h"
#include "ops/host_cann/runtime/runtime.h"
#include "ops/host_cann/runtime/text.h"

namespace opserve::host_cann {
namespace {

constexpr uint64_t kSecond = 1000000;

// One bit for each type, by its value in the ABI, as the members that are masks have it.
constexpr uint64_t TypeSet(std::initializer_list<aclDataType> types) {
  uint64_t set = 0;
  for (const aclDataType type : types) set |= uint64_t{1} << type;
  return set;
}

// The interval of the newer products makes 254 of them 1091 s, their default. The documents give
// none for the older ones: a 254th of their largest limit agrees with the known facts.
constexpr Generation kGenerations[] = {
    {
        // Atlas A2 and A3
        .socs = {"Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B3", "Ascend910B4",
                 "Ascend910B4-1", "Ascend910_9391", "Ascend910_9392", "Ascend910_9381",
                 "Ascend910_9382", "Ascend910_9372", "Ascend910_9362"},
        .npu_arch = 2201,
        .max_streams = 1984,
        .max_events = 65536,
        .max_notifies = 8192,
        .timeout_interval_us = 4294967,
        .default_execution_us = 0,
        .max_execution_us = 0,
        .default_stream_has_failure_mode = true,
        .copies_rows_on_device = true,
        .waits_for_other_devices = true,
        .has_value_tasks = true,
        .copies_batches = true,
        .copies_with_offsets = true,
        .copies_by_description = true,
        .fills_words = true,
        .flags_event_uses = true,
        .captures_streams = true,
        .reduced_types =
            TypeSet({ACL_INT8, ACL_INT16, ACL_INT32, ACL_FLOAT16, ACL_BF16, ACL_FLOAT}),
        .computes_bf16 = true,
        .computes_double = true,
        .has_kl_div_target_backward = true,
    },
    {
        // Atlas training series (910)
        .socs = {"Ascend910A", "Ascend910B", "Ascend910ProA", "Ascend910ProB", "Ascend910PremiumA"},
        .npu_arch = 1001,
        .max_streams = 2048,
        .max_events = 65535,
        .max_notifies = 1024,
        .timeout_interval_us = 2176 * kSecond / 254,
        .default_execution_us = 68 * kSecond,
        .max_execution_us = 2176 * kSecond,
        .default_stream_has_failure_mode = false,
        .copies_rows_on_device = false,
        .waits_for_other_devices = false,
        .has_value_tasks = false,
        .copies_batches = false,
        .copies_with_offsets = true,
        .copies_by_description = false,
        .fills_words = false,
        .flags_event_uses = false,
        .captures_streams = false,
        .reduced_types = TypeSet({ACL_FLOAT}),
        .computes_bf16 = false,
        .computes_double = false,
        .has_kl_div_target_backward = false,
    },
    {
        // Atlas inference series (310P)
        .socs = {"Ascend310P1", "Ascend310P3", "Ascend310P5", "Ascend310P7"},
        .npu_arch = 2002,
        .max_streams = 1024,
        .max_events = 1023,
        .max_notifies = 1024,
        .timeout_interval_us = 547 * kSecond / 254,
        .default_execution_us = 547 * kSecond,
        .max_execution_us = 547 * kSecond,
        .default_stream_has_failure_mode = false,
        .copies_rows_on_device = false,
        .waits_for_other_devices = false,
        .has_value_tasks = false,
        .copies_batches = false,
        .copies_with_offsets = false,
        .copies_by_description = false,
        .fills_words = false,
        .flags_event_uses = false,
        .captures_streams = true,
        .reduced_types = TypeSet({ACL_FLOAT, ACL_FLOAT16, ACL_INT16}),
        .computes_bf16 = false,
        .computes_double = false,
        .has_kl_div_target_backward = false,
    },
};

}  // namespace

bool FindSoc(std::string_view name, Soc* soc) {
  for (const Generation& generation : kGenerations) {
    for (const char* candidate : generation.socs) {
      if (candidate == nullptr || name != candidate) continue;
      *soc = {candidate, &generation};
      return true;
    }
  }
  return false;
}

std::string SocNames() {
  std::string names;
  for (const Generation& generation : kGenerations) {
    for (const char* name : generation.socs) {
      if (name != nullptr) names += Concat(names.empty() ? "" : ", ", name);
    }
  }
  return names;
}

Soc DefaultSoc() {
  Soc soc{};
  FindSoc("Ascend910B3", &soc);
  return soc;
}

const Soc& CurrentSoc() { return Runtime::Get().settings().soc; }

}  // namespace opserve::host_cann
