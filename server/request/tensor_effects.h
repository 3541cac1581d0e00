// The effects of a request on resident tensors: those that it keeps, replaces and gives up.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/program/program.h"
#include "server/request/request_answer.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"

namespace opserve::server {

// kInvalidArgument: above `longest`. Refused, not cut: a caller that is not told would come back to
// a tensor that is gone.
absl::Status CheckLease(absl::Duration lease, absl::Duration longest);

// From the booking of memory, before the run, to the moment when the results are there. Whatever it
// holds when it is destroyed was not kept. Used by one thread at a time.
class TensorEffects {
 public:
  // Errors: those of CheckLease, for what the program keeps.
  static absl::Status CheckLeases(const Program& program, const ResidentLimits& limits);

  // Whether the call's resident tensors, which are claimed, are on one device.
  // kFailedPrecondition: they are not.  kUnavailable (reason "draining"): nor are they, but some
  // are about to leave a device that drains.
  static absl::Status CheckOneDevice(const Scheduler& scheduler, const ProgramCall& bound);

  // Books the memory of all that `bound` keeps: on the device of its resident tensors, which are
  // claimed, else on the one that Scheduler::BestForTensors names. Sets ProgramCall::kept.
  //
  // Errors: those of ResidentTensors::Reserve and DeviceQueue::TakeMemory; kUnavailable (reason
  // "device_unavailable"): no device is ready; (reason "operator_unavailable"): none of them offers
  // the program's operators.
  static absl::StatusOr<TensorEffects> Book(const Scheduler& scheduler, ResidentTensors& residents,
                                            uint32_t tenant, ProgramCall* bound);

  // After the run has succeeded: new tensors are known, replaced ones have their content, donated
  // ones are gone. All or, on an error, none. Returns the answer's entry for each KeptOutput; those
  // of ProgramCall::kept that replaced a content have none any more.
  //
  // Errors: those of ResidentTensors::Add.
  absl::StatusOr<std::vector<KeptTensor>> Commit(const ProgramCall& bound, absl::Time now);

 private:
  TensorEffects(ResidentTensors& residents, uint32_t tenant)
      : residents_(&residents), tenant_(tenant) {}

  ResidentTensors* residents_;
  uint32_t tenant_;
  std::vector<ResidentTensors::New> new_;  // in the order of Program::kept
};

}  // namespace opserve::server
