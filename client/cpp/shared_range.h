// Tensors in memory that the client shares with the daemon (see shared_memory.h), as calls name
// them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/cpp/data_type.h"

namespace opserve {

// A part of a region. A value type; does not keep the region.
struct SharedRange {
  std::string connection = {};  // as the daemon named the connection that registered the region
  uint64_t region = 0;
  uint64_t offset = 0;  // in bytes
  uint64_t size = 0;    // in bytes
};

// An input stored in shared memory. Its region must be there until the call has ended, and the
// elements must not change until then: the daemon, or a device, reads them where they are.
struct SharedTensor {
  DataType dtype = v1::DATA_TYPE_UNSPECIFIED;
  std::vector<int64_t> shape = {};
  SharedRange range = {};             // of exactly the elements' bytes, if it is contiguous
  std::vector<int64_t> strides = {};  // in elements; empty: contiguous, row-major
  int64_t offset = 0;                 // of the first element, in elements
};

}  // namespace opserve
