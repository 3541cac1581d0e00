#include "server/request/tensor_effects.h"

#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"

namespace opserve::server {
namespace {

// A move takes about as long, if there is room.
constexpr int64_t kDrainPushbackMs = 100;

absl::StatusOr<DeviceService*> ChooseDevice(const Scheduler& scheduler,
                                            const ResidentTensors& residents, uint32_t tenant,
                                            const ProgramCall& bound) {
  const Program& program = *bound.program;
  // Kept tensors have no place yet.
  const bool has_place = !bound.residents.empty() || !bound.apart.empty();
  const std::optional<int32_t> device = has_place ? bound.device() : std::nullopt;
  DeviceService* service =
      device ? scheduler.Find(*device)
             : scheduler.BestForTensors(residents, tenant, program.kept_bytes, &program);
  if (service != nullptr) return service;
  // For the reason alone: a device without the operators, or none at all.
  if (DeviceService* lacking = scheduler.BestForTensors(residents, tenant, program.kept_bytes)) {
    if (const LoadedOperator* missing = program.MissingOn(lacking->device().id())) {
      const absl::Status refusal = missing->CheckOfferedBy(lacking->device().id());
      if (!refusal.ok()) return NoDeviceOffers(refusal);
    }
  }
  return MakeError(Reason::kDeviceUnavailable, "no device is ready");
}

}  // namespace

absl::Status CheckLease(absl::Duration lease, absl::Duration longest) {
  if (lease <= longest) return absl::OkStatus();
  return CallError(
      Reason::kInvalid, {.argument = "lease"},
      absl::StrCat("is ", absl::FormatDuration(lease), ", at most ", absl::FormatDuration(longest),
                   " allowed (--resident_max_lease); renew it instead"));
}

absl::Status TensorEffects::CheckLeases(const Program& program, const ResidentLimits& limits) {
  for (const KeptOutput& kept : program.kept) {
    OPSERVE_RETURN_IF_ERROR(CheckLease(kept.lease, limits.max_lease));
  }
  return absl::OkStatus();
}

absl::Status TensorEffects::CheckOneDevice(const Scheduler& scheduler, const ProgramCall& bound) {
  const absl::Status apart = bound.CheckOneDevice();
  if (apart.ok()) return apart;
  for (const BoundResident& resident : bound.residents) {
    const int32_t device = resident.tensor->device;
    if (scheduler.Find(device)->device().state() != DeviceState::kDraining) continue;
    return MakeError(Reason::kDraining,
                     absl::StrCat("a resident tensor of the request has not yet left device ",
                                  device, ", which drains, and others are elsewhere"),
                     kDrainPushbackMs);
  }
  return apart;
}

absl::StatusOr<TensorEffects> TensorEffects::Book(const Scheduler& scheduler,
                                                  ResidentTensors& residents, uint32_t tenant,
                                                  ProgramCall* bound) {
  const Program& program = *bound->program;
  TensorEffects effects(residents, tenant);
  if (program.kept.empty()) return effects;
  OPSERVE_ASSIGN_OR_RETURN(DeviceService* const service,
                           ChooseDevice(scheduler, residents, tenant, *bound));
  const Device& device = service->device();
  // More than a limit can ever be is refused as such, and not as "not now".
  OPSERVE_RETURN_IF_ERROR(service->queue().CheckCanEverHold(tenant, program.kept_bytes));
  for (size_t i = 0; i < program.kept.size(); ++i) {
    const KeptOutput& kept = program.kept[i];
    const uint64_t bytes = program.KeptBytes(kept);
    const auto tensor = std::make_shared<ResidentTensor>();
    bound->kept[i] = tensor;
    tensor->spec = program.output(kept.source).spec;
    tensor->device = device.id();
    tensor->device_generation = device.generation();
    // A result that is made in place has the memory of the tensor it replaces, which is booked. If
    // a download, say, still has the old content, the run takes new memory. No other can come to
    // have it before the run, since this request has the tensor alone.
    const bool is_booked =
        kept.is_in_place && bound->residents[*kept.replaced].tensor->content.use_count() == 1;
    if (!is_booked) {
      OPSERVE_ASSIGN_OR_RETURN(tensor->content->zone_share,
                               service->queue().TakeMemory(tenant, bytes));
    }
    // A replaced tensor has its place in the books.
    if (kept.replaced) continue;
    OPSERVE_ASSIGN_OR_RETURN(ResidentTensors::Reservation reservation,
                             residents.Reserve(tenant, device.id(), bytes));
    effects.new_.push_back({std::move(reservation), tensor, kept.lease});
  }
  return effects;
}

absl::StatusOr<std::vector<KeptTensor>> TensorEffects::Commit(const ProgramCall& bound,
                                                              absl::Time now) {
  OPSERVE_ASSIGN_OR_RETURN(std::vector<ResidentTensors::Added> added,
                           residents_->Add(std::move(new_), now));
  std::vector<KeptTensor> kept_tensors;
  size_t next_new = 0;
  const Program& program = *bound.program;
  for (size_t i = 0; i < program.kept.size(); ++i) {
    const KeptOutput& kept = program.kept[i];
    if (!kept.replaced) {
      ResidentTensors::Added& one = added[next_new++];
      kept_tensors.push_back(
          {.handle = std::move(one.handle), .is_new = true, .lease_end = one.lease_end});
      continue;
    }
    const BoundResident& resident = bound.residents[*kept.replaced];
    // Not shared with this request any more: the next one may work in the memory while this one
    // still writes its answer.
    resident.tensor->content = std::move(bound.kept[i]->content);
    ++resident.tensor->version;
    kept_tensors.push_back({.handle = resident.handle, .version = resident.tensor->version});
  }
  // A donated tensor that is replaced lives on with its new content.
  std::vector<std::string> given_up;
  for (size_t i = 0; i < program.residents.size(); ++i) {
    const ResidentUse& use = program.residents[i];
    if (use.is_donated && !use.is_replaced) given_up.push_back(bound.residents[i].handle);
  }
  residents_->Release(tenant_, given_up);
  TensorChanges& changes = residents_->changes();
  changes.kept.fetch_add(added.size(), std::memory_order_relaxed);
  changes.replaced.fetch_add(kept_tensors.size() - added.size(), std::memory_order_relaxed);
  changes.donated.fetch_add(given_up.size(), std::memory_order_relaxed);
  return kept_tensors;
}

}  // namespace opserve::server
