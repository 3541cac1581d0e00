// Where everything a program needs in device memory goes, inside one block.
//
// One allocation for each program: it either gets all its memory before anything is copied or
// queued, or none. Pieces whose lives do not overlap share bytes: those of an intermediate are used
// again once its last reader is queued (one stream, so in order), and workspaces lie on each other.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace opserve::server {

struct Program;

// Offsets from the block's start, multiples of 64 bytes; each piece has CANN's 32 bytes of slack
// behind it. Pieces without bytes are at 0.
struct MemoryPlan {
  absl::InlinedVector<uint64_t, 4> payloads;  // by payload
  uint64_t literals = 0;
  std::vector<uint64_t> windows;                // of inputs that are copied, by window
  std::vector<uint64_t> copies;                 // of views, by position in Program::copies
  absl::InlinedVector<uint64_t, 4> outputs;     // by output (Program::position)
  absl::InlinedVector<uint64_t, 4> workspaces;  // by invocation
  uint64_t total_bytes = 0;
};

// `payload_bytes`: by payload; none, if they lie apart. `workspace_bytes`: by invocation.
// `copied_windows`: the windows of shared memory that the device cannot use in place, by position;
// the others take no memory, as inputs and as outputs; neither do outputs that stay on the device,
// unless `stages_kept`: then those that are not worked in have a place to the end. A payload, the
// literals or a window live from the start to their last reader; an output from its invocation to
// its last reader, or to the end if it is a result; a workspace, and a copy that makes a view
// contiguous, during its invocation.
MemoryPlan PlanMemory(const Program& program, absl::Span<const uint64_t> payload_bytes,
                      absl::Span<const uint64_t> workspace_bytes,
                      const std::vector<bool>& copied_windows = {}, bool stages_kept = false);

// A memory plan with workspaces, remembered for runs of the same program. Thread-safe.
class WorkspacePlan {
 public:
  // PlanMemory of `program`, whose windows are all used in place, with payloads of the program's
  // own sizes: as it was made before if the workspaces are the same.
  std::shared_ptr<const MemoryPlan> For(const Program& program,
                                        absl::Span<const uint64_t> workspace_bytes)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Mutex mutex_;
  std::vector<uint64_t> workspace_bytes_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const MemoryPlan> plan_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
