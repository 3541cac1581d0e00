// What an answer over the wire says beyond its status.
#pragma once

#include <string>

#include "client/cpp/error.h"
#include "grpcpp/support/status.h"
#include "opserve/v1/error.pb.h"

namespace opserve::server {

// Each is empty without one.
inline v1::ErrorDetail DetailOf(const v1::StatusDetails& details) {
  v1::ErrorDetail detail;
  if (details.details_size() > 0) details.details(0).UnpackTo(&detail);
  return detail;
}
inline v1::ErrorDetail DetailOf(const grpc::Status& status) {
  v1::StatusDetails details;
  details.ParseFromString(status.error_details());
  return DetailOf(details);
}
// Of a status that the C++ client gave.
inline v1::ErrorDetail DetailOf(const absl::Status& status) {
  return ErrorDetailOf(status).value_or(v1::ErrorDetail());
}
inline std::string ReasonOf(const absl::Status& status) { return DetailOf(status).reason(); }

}  // namespace opserve::server
