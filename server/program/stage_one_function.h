// Calls a stage one of any signature through libffi, by the kinds of arguments that the operator's
// description names.
#pragma once

#include <ffi.h>

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "aclnn/aclnn_base.h"
#include "ops/catalog/operator_descriptor.h"

namespace opserve::server {

// Thread-safe.
class StageOneFunction {
 public:
  // An argument; which member counts, its kind tells.
  union Value {
    const void* pointer;
    int64_t integer64;
    uint64_t unsigned64;
    int32_t integer32;
    int8_t integer8;
    uint8_t truth;
    double real64;
    float real32;
  };

  // `address`: the function; null: Call must not be used. `descriptor` may go.
  StageOneFunction(const catalog::OperatorDescriptor& descriptor, void* address);
  // libffi keeps addresses inside the object.
  StageOneFunction(const StageOneFunction&) = delete;
  StageOneFunction& operator=(const StageOneFunction&) = delete;

  // `arguments`: in the order of the declaration, without the last two. Their objects are alive.
  aclnnStatus Call(absl::Span<const Value> arguments, uint64_t* workspace_bytes,
                   aclOpExecutor** executor) const;

 private:
  void (*const address_)();
  std::vector<ffi_type*> types_;
  mutable ffi_cif interface_;  // libffi declares it mutable, but only reads it in calls
};

}  // namespace opserve::server
