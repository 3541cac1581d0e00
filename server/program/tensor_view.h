// How the elements of a given tensor lie in their storage.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/program/program.h"
#include "server/program/program_request.h"

namespace opserve::server {

// Reads dtype, shape, strides and offset of `tensor` into `bound` (not its source), with the
// number of elements its storage must have. kInvalidArgument, a sentence without the argument's
// name: the view is malformed or reaches beyond 2^63 bytes.
absl::Status ReadView(const GivenTensor& tensor, BoundInput* bound);

// The same of a contiguous tensor of `spec`, which errors call a `kind`; a tensor that says
// nothing means all of it. kInvalidArgument also: another dtype, or a view that leaves the tensor.
absl::Status ReadViewOf(const TensorSpec& spec, absl::string_view kind, const GivenTensor& tensor,
                        BoundInput* bound);

// Whether the view is the whole of a storage of its own size, as far as the request says.
bool IsPlain(const GivenTensor& tensor);

// Makes `bound` the whole of a contiguous tensor of `spec`.
void ViewWhole(const TensorSpec& spec, BoundInput* bound);

// Bytes of the storage that `bound` addresses, from its start.
uint64_t StorageBytes(const BoundInput& bound);

}  // namespace opserve::server
