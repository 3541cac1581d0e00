// Copies that a call asks for: the kinds of their addresses, and the two ways to do them.
#pragma once

#include "acl/acl.h"
#include "ops/host_cann/runtime/context.h"
#include "ops/host_cann/runtime/copy_task.h"
#include "ops/host_cann/runtime/memory_table.h"
#include "ops/host_cann/runtime/stream.h"

namespace opserve::host_cann {

// The blocks that the two sides of a copy begin in, as MemoryTable::FindOwned finds them.
struct CopyBlocks {
  CopyBlocks(const void* dst, const void* src);

  BlockPtr to;
  BlockPtr from;
};

// Fills in which sides of the copy are device memory, and checks both (107000). `kind` is one of
// those that name a direction.
aclError ResolveSides(const Device& device, aclrtMemcpyKind kind, const CopyBlocks& blocks,
                      Copy* copy);

// Copies in the stream's order. With host memory that is not page-locked the call waits for the
// stream and returns the error of an earlier task instead of copying. 107027: the stream is
// captured. 107041: other captures of the context do not let the thread use memory. `found`: the
// blocks of its sides, if the caller has them.
aclError SubmitCopy(Stream& stream, Copy copy, const CopyBlocks* found = nullptr);

// Copies at once, on the calling thread. 107030: captures of the context do not let it. `held`: the
// blocks of its sides, if the caller has them.
aclError CopyNow(Context& context, const Copy& copy, const CopyBlocks* held = nullptr);

}  // namespace opserve::host_cann
