// Protocol messages as JSON for programs: fields under their own names, integers as numbers, enum
// values without their prefix ("FLOAT16", "READY"), timestamps as RFC 3339. Fields that are not set
// are left out only where the protocol tells them from zero.
#pragma once

#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

nlohmann::ordered_json ToJson(const google::protobuf::Message& message);

// A timestamp: "2023-11-14T22:13:20Z", with the fraction of the second if there is one.
nlohmann::ordered_json TimeToJson(absl::Time time);

}  // namespace opserve::cli
