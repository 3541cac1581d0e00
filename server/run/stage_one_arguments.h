// The ACL objects that a call's stage one takes: tensors, lists, scalars and arrays.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/device/acl/acl_handles.h"
#include "server/program/program.h"
#include "server/program/stage_one_function.h"

namespace opserve::server {

// Owns the objects. Used by one thread at a time.
class StageOneArguments {
 public:
  // Makes the objects of `call`. `inputs`, `outputs`: the addresses of its tensors; null: none yet.
  // An input that is written in place has the address of its output.
  // Errors: AclCallStatus; kUnimplemented: the libraries cannot make such objects.
  static absl::StatusOr<StageOneArguments> Make(const AclLibrary& acl, const BoundInvocation& call,
                                                absl::Span<void* const> inputs,
                                                absl::Span<void* const> outputs);

  absl::Span<const StageOneFunction::Value> values() const { return values_; }
  // How many objects there are.
  size_t size() const { return owned_.size() + num_list_tensors_; }

  // Their host memory, estimated: ACL does not tell the size of its objects.
  uint64_t HostBytes() const;

  // Gives the repeatable executor that stage one has made of these arguments, always the same one,
  // other addresses, by tensor as in Make. Those that it has already cost no call: runs of a plan
  // mostly get the memory that the last one had. After an error it is in no defined state.
  absl::Status SetAddresses(aclOpExecutor* executor, absl::Span<void* const> inputs,
                            absl::Span<void* const> outputs);

 private:
  explicit StageOneArguments(const AclLibrary& acl) : acl_(&acl) {}

  // An object and how it is destroyed: void (*)(object), or a status that does not matter.
  class Object {
   public:
    using Destroy = aclnnStatus (*)(const void* object);
    Object(void* object, Destroy destroy) : object_(object, destroy) {}
    void* get() const { return object_.get(); }

   private:
    struct Deleter {
      Destroy destroy;
      Deleter(Destroy function) : destroy(function) {}  // NOLINT: of unique_ptr's constructor
      void operator()(void* object) const { destroy(object); }
    };
    std::unique_ptr<void, Deleter> object_;
  };

  // The tensors of an input or output: one, or a list that owns them.
  struct Group {
    void* object = nullptr;  // null: left out, or written in place as an output
    bool is_list = false;
    bool is_in_place = false;
    uint32_t begin = 0, end = 0;  // positions of its tensors among the call's
  };

  // By tensor, as the executor has them; null: not set.
  using Addresses = absl::InlinedVector<void*, 4>;

  absl::Status Add(void* object, const char* function, Object::Destroy destroy,
                   StageOneFunction::Value* value);
  absl::Status AddTensors(const BoundInvocation& call, const catalog::ArgumentDescriptor& argument,
                          absl::Span<void* const> inputs, absl::Span<void* const> outputs,
                          StageOneFunction::Value* value);
  absl::Status AddAttribute(const catalog::ArgumentDescriptor& argument,
                            const catalog::AttributeValue& attribute,
                            StageOneFunction::Value* value);
  absl::Status AddMask(const BoundInvocation& call, StageOneFunction::Value* value);
  absl::StatusOr<aclScalar*> MakeScalar(const catalog::Scalar& scalar) const;
  absl::Status SetAddress(aclOpExecutor* executor, const Group& group, bool is_input, size_t index,
                          absl::Span<void* const> addresses, Addresses* set) const;

  const AclLibrary* acl_;
  absl::InlinedVector<Object, 4> owned_;
  absl::InlinedVector<StageOneFunction::Value, 8> values_;
  absl::InlinedVector<Group, 4> inputs_, outputs_;  // by those of the descriptor
  std::vector<std::unique_ptr<std::string>> texts_;
  size_t num_list_tensors_ = 0;
  Addresses set_inputs_, set_outputs_;
};

}  // namespace opserve::server
