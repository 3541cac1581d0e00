// Errors of the calling thread, which aclGetRecentErrMsg and aclrtGetLastError return.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "acl/acl.h"

// Returns from the calling function with the code of `expression` unless it is 0.
#define RETURN_IF_FAILED(expression)                                   \
  do {                                                                 \
    if (const aclError failed_code = (expression)) return failed_code; \
  } while (false)

namespace opserve::host_cann {

// Documented prefixes of error texts.
inline constexpr char kBadArgument[] = "EE1001";
inline constexpr char kSyncTimeout[] = "EE1002";
inline constexpr char kWrongContext[] = "EE1010";
inline constexpr char kHostMemory[] = "EE1013";
inline constexpr char kCallOrder[] = "EE1018";
inline constexpr char kExhausted[] = "EE1023";
inline constexpr char kBadValue[] = "EH0001";
inline constexpr char kNullArgument[] = "EH0008";
inline constexpr char kInternal[] = "EE9999";

// Makes `code` this thread's latest error, adds "LABEL: text" to its unread messages, and returns
// `code`. Texts name the argument, its value and the allowed ones; they hold no addresses.
aclError Fail(aclError code, std::string_view label, std::string_view text);

// 100000 for a required pointer that is null, 0 otherwise.
aclError RequireNotNull(const void* pointer, std::string_view name);

// 107000 for a function to call back that is null, 0 otherwise.
aclError RequireCallback(const void* function, std::string_view name);

// Whether all threads share one list of unread messages (err_msg_mode 1), or each has its own.
void ShareMessages(bool share);

}  // namespace opserve::host_cann
