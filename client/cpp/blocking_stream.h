// Internal: streaming calls with a caller that waits for each step.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/borrow.h"
#include "client/cpp/queue_pool.h"
#include "client/cpp/transport.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"

namespace opserve {

// One call with a stream in one direction or both: first at least one Write, then any, the last of
// them with is_last, then Reads until one fails, then Finish. A Write or Read fails when the call
// has ended; only Finish tells how. Not thread-safe.
class BlockingStream {
 public:
  // `method` is the full path. `transport` outlives the call. Nothing is sent before the first
  // Write.
  BlockingStream(Transport& transport, const std::string& method, absl::Time deadline);

  // Cancels the call if it was not finished.
  ~BlockingStream();
  BlockingStream(const BlockingStream&) = delete;
  BlockingStream& operator=(const BlockingStream&) = delete;

  // Sends the contents of `message` and leaves it empty; waits until the peer's flow control has
  // let it pass, not until it is sent.
  bool Write(grpc::ByteBuffer* message, bool is_last);

  bool Read(grpc::ByteBuffer* message);

  // Waits for the peer's status; messages it still sends are dropped. Returns only once `borrow` is
  // released. The call may have failed with Write, Read or not at all.
  absl::Status Finish(const Borrow& borrow = {});

  // After Finish.
  bool MayHaveRun() const { return reach_.MayHaveRun(); }

 private:
  // Waits for the event of the step just begun; false: the call has ended.
  bool Wait();

  QueuePool::Lease lease_;
  const CallReach reach_;
  std::unique_ptr<grpc::ClientContext> context_;  // null once the call is finished
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

// Makes one call with `attempt`, which gives its outcome, again as long as no daemon was there to
// take it: as the retry policy says of calls that are not repeated otherwise.
absl::Status CallByStream(Transport& transport, const std::string& method, absl::Duration timeout,
                          absl::FunctionRef<absl::Status(BlockingStream&)> attempt);

}  // namespace opserve
