// Prepared programs: sent once, run any number of times with other inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
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

struct PreparedCallOptions {
  std::vector<ChangedAttribute> attributes = {};
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
  struct State;  // internal

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

  // The inputs of a call, in their order.
  absl::Span<const InputOf> inputs() const;

  // How often the daemon had lost it and prepared it again.
  uint64_t prepared_again() const;

 private:
  explicit PreparedProgram(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

}  // namespace opserve
