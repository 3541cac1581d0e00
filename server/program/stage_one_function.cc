#include "server/program/stage_one_function.h"

#include <cstdlib>

#include "absl/container/inlined_vector.h"

namespace opserve::server {
namespace {

ffi_type* TypeOf(catalog::ArgumentKind kind) {
  switch (kind) {
    case catalog::ArgumentKind::kInt64:
      return &ffi_type_sint64;
    case catalog::ArgumentKind::kUint64:
      return &ffi_type_uint64;
    case catalog::ArgumentKind::kInt32:
    case catalog::ArgumentKind::kDtype:
      return &ffi_type_sint32;
    case catalog::ArgumentKind::kInt8:
      return &ffi_type_sint8;
    case catalog::ArgumentKind::kBool:
      return &ffi_type_uint8;
    case catalog::ArgumentKind::kDouble:
      return &ffi_type_double;
    case catalog::ArgumentKind::kFloat:
      return &ffi_type_float;
    // Tensors, lists, scalars, arrays and texts.
    default:
      return &ffi_type_pointer;
  }
}

}  // namespace

StageOneFunction::StageOneFunction(const catalog::OperatorDescriptor& descriptor, void* address)
    : address_(reinterpret_cast<void (*)()>(address)) {
  for (const catalog::ArgumentDescriptor& argument : descriptor.arguments) {
    types_.push_back(TypeOf(argument.kind));
  }
  types_.push_back(&ffi_type_pointer);  // workspaceSize
  types_.push_back(&ffi_type_pointer);  // executor
  // It fails for types that are none only.
  if (ffi_prep_cif(&interface_, FFI_DEFAULT_ABI, static_cast<unsigned>(types_.size()),
                   &ffi_type_sint32, types_.data()) != FFI_OK) {
    std::abort();
  }
}

aclnnStatus StageOneFunction::Call(absl::Span<const Value> arguments, uint64_t* workspace_bytes,
                                   aclOpExecutor** executor) const {
  absl::InlinedVector<void*, 16> values;
  // libffi takes the address of each argument, also of pointers.
  for (const Value& argument : arguments) values.push_back(const_cast<Value*>(&argument));
  values.push_back(&workspace_bytes);
  values.push_back(&executor);
  // libffi widens small results to a register.
  ffi_arg status = 0;
  ffi_call(&interface_, address_, &status, values.data());
  return static_cast<aclnnStatus>(status);
}

}  // namespace opserve::server
