// From a request to a checked program and a call of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/program/operator_table.h"
#include "server/program/program.h"
#include "server/program/program_limits.h"
#include "server/program/program_request.h"
#include "server/program/resident_tensor.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Finds the resident tensor of a handle, or says why there is none.
using ResidentLookup =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<ResidentTensor>>(absl::string_view)>;

// Finds the region of a range, or says why there is none.
using RegionLookup =
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<SharedRegion>>(const MemoryRange&)>;

// That of a daemon without shared memory: kUnimplemented (reason "shm_disabled").
absl::StatusOr<std::shared_ptr<SharedRegion>> NoSharedMemory(const MemoryRange& range);

// Checks `request` against the catalogue and `limits`. `payload_bytes`: the size of each payload of
// the message. Reads metadata only and changes nothing.
//
// kInvalidArgument     a mistake in the request, a size above a limit (reason "too_large") or a
//                      window that is not as it must be ("shm_invalid"); the message names
//                      operator, argument, expected and actual value
// kPermissionDenied    a result for a read-only region (reason "forbidden")
// kFailedPrecondition  outputs out of proportion to the inputs (reason "amplification"), more work
//                      than a request may ask for ("work_limit"), or `find_resident`'s
// kNotFound            `find_resident`'s. All of `find_region`'s, too
// kOutOfRange          the range for a result is too small, in a region that is not mapped (for
//                      others a range has exactly the result's size)
// kUnimplemented       the ACL libraries lack the operator
absl::StatusOr<ProgramCall> BindProgram(const ProgramRequest& request,
                                        absl::Span<const uint64_t> payload_bytes,
                                        const OperatorTable& operators, const ProgramLimits& limits,
                                        ResidentLookup find_resident,
                                        RegionLookup find_region = NoSharedMemory);

// The same of a request whose payloads are not in its message, but in device memory: `apart`, one
// for each (ProgramCall::apart). They may arrive later.
absl::StatusOr<ProgramCall> BindApart(const ProgramRequest& request,
                                      absl::Span<const uint64_t> payload_bytes,
                                      absl::Span<const std::shared_ptr<ResidentTensor>> apart,
                                      const OperatorTable& operators, const ProgramLimits& limits,
                                      ResidentLookup find_resident, RegionLookup find_region);

// The same for a program whose `inputs` are named by InputStorage and come later: those
// that are payloads are the payloads of each call, in their order. The call has tensors of the
// inputs' specs in place of the resident ones, and empty windows; shared memory cannot be named
// otherwise. kInvalidArgument also: an input that nothing uses.
absl::StatusOr<ProgramCall> BindTemplate(const ProgramRequest& request,
                                         absl::Span<const ProgramInput> inputs,
                                         const OperatorTable& operators,
                                         const ProgramLimits& limits, ResidentLookup find_resident);

// The part of shared memory that `range` is in `region`, for elements of `dtype`.
// kInvalidArgument (reason "shm_invalid"): it leaves the region, or is not aligned.
absl::StatusOr<SharedWindow> WindowIn(std::shared_ptr<SharedRegion> region,
                                      const MemoryRange& range, Dtype dtype);

}  // namespace opserve::server
