// Tensors, their ages and the rest of their leases, as text for people.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/resident_tensor.h"
#include "nlohmann/json.hpp"

namespace opserve::cli {

// "FLOAT [2, 3]"
std::string TensorText(DataType dtype, const std::vector<int64_t>& shape);

// "FLOAT [2, 3]  24 B"
std::string SizedTensorText(DataType dtype, const std::vector<int64_t>& shape, uint64_t num_bytes);

// Of its elements; 0 if they are not known.
uint64_t BytesOf(const ResidentTensor& tensor);

// How to find a new resident tensor again: handle, dtype, shape, bytes, device and lease_end.
nlohmann::ordered_json ResidentTensorToJson(const ResidentTensor& tensor, uint64_t num_bytes);
void WriteResidentTensor(const ResidentTensor& tensor, uint64_t num_bytes, std::ostream& out);

// In whole seconds: "1h2m3s"; "over" if there is nothing left.
std::string LeaseText(absl::Duration left);
std::string AgeText(absl::Duration age);

}  // namespace opserve::cli
