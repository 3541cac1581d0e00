// Copies on the device that make views contiguous, for functions of the ACL library that take only
// contiguous tensors (catalog::InputDescriptor::is_contiguous).
//
// A copy is an invocation of InplaceCopy beside those of the request: it runs right before the
// invocation that reads it, into memory of the program's plan that lives for that invocation. The
// clients' numbers of invocations do not count it.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/program/operator_table.h"
#include "server/program/program.h"

namespace opserve::server {

// Whether a function that takes only contiguous tensors needs a copy of the view. An offset needs
// none.
bool NeedsContiguousCopy(const BoundInput& input);

// Adds to `program` the copy of `input`, which is of its next invocation; the input becomes the
// copy, as a whole. Returns the copy. kUnimplemented or kUnavailable: the ACL libraries do not
// copy.
absl::StatusOr<const ContiguousCopy*> AddContiguousCopy(const OperatorTable& operators,
                                                        BoundInput* input, Program* program);

// The copies that are made right before `invocation`, in the order of its inputs. Their positions
// in Program::copies begin with that of the first one.
absl::Span<const ContiguousCopy> CopiesBefore(const Program& program, uint32_t invocation);

}  // namespace opserve::server
