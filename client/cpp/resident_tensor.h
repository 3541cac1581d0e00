// Tensors that stay with the daemon: uploaded once, used by any number of calls.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cpp/data_type.h"

namespace opserve {

// Refers to a tensor in the memory of one of the daemon's devices: contiguous, row-major. The
// daemon frees it at the end of its lease (Client::Renew) or when told to (Client::Release), not
// when this value is destroyed.
//
// As an input only the handle is looked at: that is enough to use a tensor of which nothing else is
// known. A call can use tensors of one device only.
//
// A value type.
struct ResidentTensor {
  std::string handle = {};  // opaque bytes; they alone give access to the tensor, within the tenant
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};
  absl::Time lease_end = absl::InfinitePast();  // as of its creation
  uint32_t device = 0;
  uint64_t version = 1;  // as of the answer that told of it; each replacement adds 1
};

// A resident tensor as the daemon has it in its books.
struct TensorInfo {
  ResidentTensor tensor = {};
  uint64_t num_bytes = 0;
  absl::Duration age = absl::ZeroDuration();         // by the daemon's clock, as
  absl::Duration lease_left = absl::ZeroDuration();  // that; negative: in its grace
};

}  // namespace opserve
