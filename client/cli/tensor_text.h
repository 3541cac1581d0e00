// Tensors, their ages and the rest of their leases, as text for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/data_type.h"

namespace opserve::cli {

// "FLOAT [2, 3]"
std::string TensorText(DataType dtype, const std::vector<int64_t>& shape);

// In whole seconds: "1h2m3s"; "over" if there is nothing left.
std::string LeaseText(absl::Duration left);
std::string AgeText(absl::Duration age);

}  // namespace opserve::cli
