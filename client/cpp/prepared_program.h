// Prepared programs: sent once, run any number of times with other inputs.
#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/call_handle.h"
#include "client/cpp/request.h"

namespace opserve {

class AsyncCalls;
class GivenUpPrograms;
class Transport;

// An attribute that has another value in one call: a seed, a learning rate.
struct ChangedAttribute {
  uint32_t invocation = 0;  // position in Request::invocations
  NamedAttribute attribute = {};
};

// The version that a resident tensor must have when the call's turn with it comes. So a call that
// is sent before the one that replaces its tensors is answered runs only if that one has succeeded.
struct ExpectedVersion {
  uint32_t input = 0;    // number of the input; a ResidentTensor
  uint64_t version = 0;  // kFailedPrecondition: it has another one, and nothing was done
};

struct PreparedCallOptions {
  std::vector<ChangedAttribute> attributes = {};
  std::vector<ExpectedVersion> versions = {};
  bool want_receipt = false;
  v1::Priority priority = v1::PRIORITY_NORMAL;  // as Request::priority
  std::string idempotency_key = {};             // as Request::idempotency_key
  absl::Duration timeout = kDefaultTimeout;
};

// A program that the daemon has checked, bound and planned; a call gives it inputs and runs it,
// like a function. Made by Client::Prepare, which it may outlive.
//
// Only the inputs travel with a call, and those tensors of the program that are no literals, with
// their elements as of the preparation. Inputs that come in another way than those of the calls
// before (sent, resident, in shared memory) let the client prepare the program for that way, too. A
// daemon that has lost the program, since it was restarted or the lease ended, is made to prepare
// it again, once for each call.
//
// A value type. Copies are the same program; the daemon may forget it after the last of them.
// Thread-safe.
class PreparedProgram {
 public:
  using Input = std::variant<Tensor, ResidentTensor, SharedTensor>;
  using Callback = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;
  struct State;    // internal
  class AsyncRun;  // internal

  // For Client::Prepare. Nothing is sent yet. kInvalidArgument: an input of the program is used by
  // nothing, or has two dtypes or shapes.
  static absl::StatusOr<PreparedProgram> Make(std::shared_ptr<Transport> transport,
                                              std::weak_ptr<AsyncCalls> async_calls,
                                              std::shared_ptr<GivenUpPrograms> given_up,
                                              const Request& request);

  // Likewise, of a program in the protocol's own form, with inputs of any kind and without
  // payloads.
  static PreparedProgram Make(std::shared_ptr<Transport> transport,
                              std::weak_ptr<AsyncCalls> async_calls,
                              std::shared_ptr<GivenUpPrograms> given_up,
                              v1::PrepareRequest program);

  // Prepares the program for inputs that come like these, as the first such call would else do.
  // Errors as of a call.
  absl::Status PrepareFor(absl::Span<const Input> inputs,
                          absl::Duration timeout = kDefaultTimeout) const;

  // Runs it once and waits for the results. `inputs` are in the order of their numbers; tensors as
  // Client::Execute takes them, of which those that are not contiguous are copied first.
  //
  // A call that keeps, replaces or donates tensors carries an identity, as Request says: it runs
  // once, however often it has to be sent.
  //
  // kInvalidArgument: another number of inputs, or one of another dtype or shape. Otherwise as
  // Client::Execute.
  absl::StatusOr<Response> operator()(absl::Span<const Input> inputs,
                                      const PreparedCallOptions& options = {}) const;

  // Runs it once; `callback` is called as Client::ExecuteAsync does. Calls of one client that use
  // the same resident tensors run in the order in which they were made, so step n+1 can be sent
  // before step n is answered. Tensors have to be kept as Tensor says until the callback runs.
  //
  // Waits only while the program must be prepared for inputs that come so: the first time
  // (PrepareFor does that beforehand) and, in the client's thread, when the daemon has lost it.
  // Once the client is destroyed, calls end with kCancelled.
  CallHandle CallAsync(absl::Span<const Input> inputs, Callback callback,
                       const PreparedCallOptions& options = {}) const;

  // The same, with the response in a future.
  std::future<absl::StatusOr<Response>> CallAsync(absl::Span<const Input> inputs,
                                                  const PreparedCallOptions& options = {}) const;

  // The inputs of a call, in their order.
  absl::Span<const InputOf> inputs() const;

  // How often the daemon had lost it and prepared it again.
  uint64_t prepared_again() const;

 private:
  explicit PreparedProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace opserve
