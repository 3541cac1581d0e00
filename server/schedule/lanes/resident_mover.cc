#include "server/schedule/lanes/resident_mover.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/time/clock.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/observability/log.h"
#include "server/run/tensor_transfer.h"

namespace opserve::server {
namespace {

// Large enough that a step's own cost does not matter. Of a small pool of page-locked memory, which
// requests need for their results, it takes less.
constexpr uint64_t kMostChunkBytes = uint64_t{4} << 20;
constexpr uint64_t kPartOfPinnedMemory = 64;
// Until requests that still run may have kept more tensors, or uploads have ended.
constexpr absl::Duration kLookPeriod = absl::Milliseconds(10);
// Until there may be a place that there was not.
constexpr absl::Duration kPlacePeriod = absl::Seconds(1);
// Until a failed move is tried again: doubled each time, since requests wait for each.
constexpr absl::Duration kFirstRetry = absl::Milliseconds(100);
constexpr absl::Duration kLongestRetry = absl::Seconds(10);
// Then requests that use the tensors are refused, and go elsewhere, rather than keep the device.
constexpr uint32_t kMostFailures = 3;

uint64_t BytesOf(const ResidentTensor& tensor) {
  return static_cast<uint64_t>(NumBytes(tensor.spec));
}

uint64_t BytesOf(absl::Span<const ResidentTensors::Moving> tensors) {
  uint64_t bytes = 0;
  for (const ResidentTensors::Moving& moving : tensors) bytes += BytesOf(*moving.tensor);
  return bytes;
}

ResidentMover::Result ResultOf(const absl::Status& status) {
  if (status.ok()) return ResidentMover::kMoved;
  // Also kFailedPrecondition for what a tenant may never have on the device.
  const Reason reason = ErrorReasonOf(status);
  if (absl::IsResourceExhausted(status) || reason == Reason::kTenantMemory ||
      reason == Reason::kTooLarge) {
    return ResidentMover::kNoRoom;
  }
  return ResidentMover::kFailed;
}

}  // namespace

const char* ResidentMover::ResultName(size_t result) {
  static constexpr const char* kNames[kResults] = {"moved", "no_room", "no_device", "failed"};
  return kNames[result];
}

ResidentMover::ResidentMover(Scheduler& scheduler, ResidentTensors& residents,
                             std::function<std::string(uint32_t tenant)> tenant_name)
    : scheduler_(scheduler),
      residents_(residents),
      tenant_name_(std::move(tenant_name)),
      chunk_bytes_(
          std::min(kMostChunkBytes, scheduler.pinned_zones().capacity() / kPartOfPinnedMemory)),
      steps_(scheduler, residents),
      thread_([this] { Run(); }) {}

ResidentMover::~ResidentMover() {
  {
    absl::MutexLock lock(&mutex_);
    is_stopping_ = true;
  }
  // Ends the wait in which the thread may be.
  steps_.Stop();
  thread_.join();
}

void ResidentMover::Wake() {
  absl::MutexLock lock(&mutex_);
  is_woken_ = true;
}

bool ResidentMover::AwaitLook(absl::Time until) {
  const auto has_work = [this] {
    mutex_.AssertReaderHeld();
    return is_woken_ || is_stopping_;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.AwaitWithDeadline(absl::Condition(&has_work), until);
  is_woken_ = false;
  return !is_stopping_;
}

void ResidentMover::Run() {
  // It sleeps until a device drains, and looks again and again until none does.
  std::vector<Source> sources;
  for (const auto& service : scheduler_.devices()) sources.push_back({service.get()});
  absl::Time next_look = absl::InfiniteFuture();
  while (AwaitLook(next_look)) {
    next_look = absl::InfiniteFuture();
    for (Source& source : sources) next_look = std::min(next_look, MoveFrom(source));
  }
}

absl::Time ResidentMover::MoveFrom(Source& source) {
  DeviceService& service = *source.service;
  const int32_t device = service.device().id();
  const uint64_t drain = service.drains();
  // Setbacks of an earlier drain say nothing about this one.
  if (source.drain != drain) source = {.service = &service, .drain = drain};
  for (const uint32_t tenant : residents_.TenantsOn(device)) {
    // The device may have been resumed in between, or have broken.
    if (steps_.is_stopping() || service.device().state() != DeviceState::kDraining) break;
    const auto setback = source.setbacks.find(tenant);
    if (setback != source.setbacks.end() && setback->second.next_attempt > absl::Now()) continue;
    MoveOrNote(source, tenant);
  }
  // Resumed or broken meanwhile: the next drain wakes the mover.
  if (service.device().state() != DeviceState::kDraining) return absl::InfiniteFuture();
  const std::vector<uint32_t> left = residents_.TenantsOn(device);
  // Tenants that cannot move must not keep the device from being drained.
  const bool are_moved = std::all_of(
      left.begin(), left.end(), [&service](uint32_t tenant) { return service.IsStuck(tenant); });
  service.SetMoved(drain, are_moved);
  return absl::Now() + (are_moved ? kPlacePeriod : kLookPeriod);
}

void ResidentMover::MoveOrNote(Source& source, uint32_t tenant) {
  bool has_begun = false;
  const absl::Status status = MoveTenant(*source.service, tenant, &has_begun);
  moving_bytes_ = 0;
  // There was nothing to move, or the mover stops: neither is a setback.
  if (absl::IsNotFound(status) || absl::IsCancelled(status)) return;
  Result result = ResultOf(status);
  // Later the same reason means that a device broke during the copies.
  if (!has_begun && ErrorReasonOf(status) == Reason::kDeviceUnavailable) result = kNoDevice;
  Note(source, tenant, result, status);
  if (result == kMoved) {
    source.service->SetStuck(tenant, false);
    source.setbacks.erase(tenant);
    return;
  }
  Setback& setback = source.setbacks[tenant];
  absl::Duration wait = kPlacePeriod;
  if (has_begun) {
    wait = std::min(kFirstRetry * (1 << std::min(setback.failures, 10u)), kLongestRetry);
    ++setback.failures;
  }
  setback.next_attempt = absl::Now() + wait;
  setback.reported = result;
  // Without a place requests need not wait for one; a failed copy is first tried again.
  if (result != kFailed || setback.failures >= kMostFailures) {
    source.service->SetStuck(tenant, true);
  }
}

void ResidentMover::Note(const Source& source, uint32_t tenant, Result result,
                         const absl::Status& why) {
  if (result == kMoved) {
    results_[result].fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const auto known = source.setbacks.find(tenant);
  if (result != kFailed && known != source.setbacks.end() && known->second.reported == result) {
    return;
  }
  results_[result].fetch_add(1, std::memory_order_relaxed);
  LogWarning("tensors_not_moved", {{"tenant", tenant_name_(tenant)},
                                   {"device", source.service->device().id()},
                                   {"result", ResultName(result)},
                                   {"error", std::string(why.message())}});
}

absl::Status ResidentMover::MoveTenant(DeviceService& source, uint32_t tenant, bool* has_begun) {
  const absl::Time start = absl::Now();
  const int32_t device = source.device().id();
  const Tensors expected = residents_.TensorsOn(device, tenant);
  if (expected.empty()) return absl::NotFoundError("the tenant has no tensors on the device");
  // Before requests have to wait.
  OPSERVE_ASSIGN_OR_RETURN(DeviceService* const target,
                           scheduler_.RoomForTensors(residents_, tenant, BytesOf(expected)));
  source.SetMoved(source.drains(), false);  // where there was no room before
  Tensors tensors;
  HeldClaims claims(residents_.claims());
  OPSERVE_RETURN_IF_ERROR(ClaimAll(device, tenant, &tensors, &claims));
  *has_begun = true;
  const uint64_t bytes = BytesOf(tensors);
  moving_bytes_ = bytes;
  // Read before the copies: a reset of the target in between shows as another generation.
  const uint64_t generation = target->device().generation();
  OPSERVE_RETURN_IF_ERROR(Book(tenant, *target, &tensors));
  for (const ResidentTensors::Moving& moving : tensors) {
    OPSERVE_RETURN_IF_ERROR(Copy(tenant, *target, generation, moving));
  }
  // The tensors are well where they are; a device that is about to be reset would lose them.
  if (target->device().state() != DeviceState::kReady) {
    return MakeError(Reason::kDeviceUnavailable, "the device that they moved to broke");
  }
  OPSERVE_RETURN_IF_ERROR(
      residents_.Move(absl::MakeSpan(tensors), target->device().id(), generation));
  moved_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  LogInfo("tensors_moved", {{"tenant", tenant_name_(tenant)},
                            {"from_device", device},
                            {"to_device", target->device().id()},
                            {"tensors", tensors.size()},
                            {"bytes", bytes},
                            {"seconds", absl::ToDoubleSeconds(absl::Now() - start)}});
  return absl::OkStatus();
}

absl::Status ResidentMover::ClaimAll(int32_t device, uint32_t tenant, Tensors* tensors,
                                     HeldClaims* claims) {
  absl::flat_hash_set<const ResidentTensor*> claimed;
  while (true) {
    std::vector<const ResidentTensor*> more;
    for (ResidentTensors::Moving& moving : residents_.TensorsOn(device, tenant)) {
      if (!claimed.insert(moving.tensor.get()).second) continue;
      more.push_back(moving.tensor.get());
      tensors->push_back(std::move(moving));
    }
    if (more.empty()) return absl::OkStatus();
    if (!steps_.ClaimAhead(more, claims)) return absl::CancelledError("the daemon ends");
    // Requests that had tensors of these may have kept others before they gave them back.
  }
}

absl::Status ResidentMover::Book(uint32_t tenant, DeviceService& target, Tensors* tensors) const {
  for (ResidentTensors::Moving& moving : *tensors) {
    moving.content = std::make_shared<ResidentContent>();
    const uint64_t bytes = BytesOf(*moving.tensor);
    // A broken tensor moves as a name, without memory.
    if (bytes == 0 || moving.tensor->is_broken) continue;
    OPSERVE_ASSIGN_OR_RETURN(moving.content->zone_share, target.queue().TakeMemory(tenant, bytes));
  }
  return absl::OkStatus();
}

absl::Status ResidentMover::Copy(uint32_t tenant, const DeviceService& target, uint64_t generation,
                                 const ResidentTensors::Moving& moving) {
  const ResidentTensor& tensor = *moving.tensor;
  if (tensor.is_broken) return absl::OkStatus();  // no request can read its elements any more
  ResidentTensor copy;
  copy.spec = tensor.spec;
  copy.device = target.device().id();
  copy.device_generation = generation;
  copy.content = moving.content;
  const uint64_t bytes = BytesOf(tensor);
  for (uint64_t offset = 0; offset < bytes; offset += chunk_bytes_) {
    const uint64_t length = std::min(chunk_bytes_, bytes - offset);
    OPSERVE_ASSIGN_OR_RETURN(const DownloadChunk chunk, steps_.Read(tensor, offset, length));
    codec::Payload payload;
    payload.pieces.emplace_back(static_cast<const char*>(chunk.data.data()), length);
    payload.size = length;
    OPSERVE_RETURN_IF_ERROR(steps_.Run(
        copy.device, /*pinned_bytes=*/0, /*uses_residents=*/false,
        [&](LaneContext& lane, const CallState& call) {
          return CopyToDevice({.payload = payload, .offset = offset, .crc32c = chunk.crc32c}, call,
                              tenant, lane, &copy);
        }));
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
