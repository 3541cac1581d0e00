// Times as people write and read them.
#pragma once

#include <string>

#include "absl/time/time.h"

namespace opserve::cli {

// A reader of flags, as CLI11 wants them: nothing if `text` is a positive time such as "30s", which
// *time then is, else what is wrong.
std::string ReadTime(const std::string& text, absl::Duration* time);

// "2023-11-14 22:13:20 UTC"
std::string TimeText(absl::Time time);

}  // namespace opserve::cli
