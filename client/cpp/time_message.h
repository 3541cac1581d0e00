// Internal: the protocol's times and durations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace opserve {

// Rounded to nanoseconds and cut to the longest that the message can have, 10000 years.
inline void EncodeDuration(absl::Duration duration, google::protobuf::Duration* message) {
  constexpr absl::Duration kLongest = absl::Seconds(315'576'000'000);
  duration = std::clamp(duration, -kLongest, kLongest);
  message->set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  message->set_nanos(static_cast<int32_t>(duration / absl::Nanoseconds(1)));
}

inline absl::Time DecodeTime(const google::protobuf::Timestamp& message) {
  return absl::FromUnixSeconds(message.seconds()) + absl::Nanoseconds(message.nanos());
}

}  // namespace opserve
