// Requests that hold devices and their memory for long: programs that run in slices, results that
// are kept or leave as slowly as their client reads, and tensors that requests read, replace and
// give up. They go through the daemon's own claims, books of resident tensors, placement, queues
// and pools, under a virtual clock, and all of it is drawn from one seed. What must hold is checked
// at every step.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/device/memory/memory_pool.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/device_queue.h"
#include "server/schedule/policy/cost_model.h"
#include "tests/simulation/scenario.h"

namespace opserve::simulation {

class ResidentsSimulation {
 public:
  // kLong: many slices. kKeep: a new tensor. kDepart: results that stay in the run's memory until
  // the client has read them, if its tenant has room for that. kArrive: payloads that come when
  // there is memory for them and for the run. The others use one of the tenant's tensors.
  enum class Kind { kShort, kLong, kKeep, kRead, kReplace, kDonate, kDepart, kArrive };
  static constexpr uint32_t kKinds = 8;

  // A tenant that has `burst` requests in progress all the time.
  struct Tenant {
    uint32_t weight = 1;
    int64_t burst = 1;
    std::vector<Kind> kinds = {};  // drawn from
  };
  struct Plan {
    uint64_t seed = 0;
    size_t devices = 1;
    uint32_t lanes = 1;
    absl::Duration duration = absl::Seconds(5);
    int64_t resets = 0;  // of devices
    double cancel_share = 0;
    double deadline_share = 0;
    double announced_share = 0;  // of requests that use tensors: their payloads come later
    std::vector<Tenant> tenants = {};
  };
  // Every kind of request, several tenants, devices that are reset.
  static Plan RandomPlan(uint64_t seed);

  struct Outcome {
    std::string violation;  // empty: everything held
    std::array<uint64_t, kKinds> done = {};
    uint64_t failed = 0;      // broken off, cancelled, late, or refused
    uint64_t waited = 0;      // for a tensor
    uint64_t cut_short = 0;   // long programs, between two slices
    uint64_t no_memory = 0;   // of those that failed: the tenant's memory or the pool was full
    uint64_t departures = 0;  // results that have left
    uint64_t copied = 0;      // results for which the tenant had no room
    uint64_t arrived = 0;     // payloads of announced requests
    std::vector<absl::Duration> used;  // lane time, by tenant
  };

  explicit ResidentsSimulation(const Plan& plan);
  ~ResidentsSimulation();
  // Once.
  Outcome Run();

 private:
  struct Device;
  struct Job;
  struct Event {
    absl::Time time;
    uint64_t number;
    std::function<void()> action;
    bool operator>(const Event& other) const {
      return time != other.time ? time > other.time : number > other.number;
    }
  };
  struct Known {
    std::string handle;
    std::shared_ptr<server::ResidentTensor> tensor;
  };
  struct Use {
    uint64_t job;
    bool is_alone;
    bool is_granted;
  };

  void At(absl::Time time, std::function<void()> action);
  // A tenant sends one request more.
  void Send(uint32_t tenant);
  // Books the memory of what the request keeps, as the daemon does before it waits for anything.
  absl::Status Book(Job& job);
  void ClaimOrSubmit(uint64_t number);
  // The payloads of an announced request are there, or never will be.
  void EndArrival(uint64_t number);
  void Submit(uint64_t number);
  void FillLanes();
  void Begin(size_t device, server::DeviceQueue::Dispatched dispatched);
  // The memory of a request in chunks is booked: its client may send.
  void BeginArrival(Job& job);
  absl::Status TakeMemory(Job& job);
  void EndSlice(uint64_t number);
  // On its lane.
  void Finish(uint64_t number, bool is_ok);
  void Commit(Job& job);
  // The results stay in the memory of the run that ends, for a time that the client decides.
  void BeginDeparture(Job& job);
  void EndDeparture(uint64_t number, bool is_wanted);
  // A request is over, wherever it was.
  void End(uint64_t number, bool is_ok);
  void Cancel(uint64_t number);
  void Reset(size_t device);
  void KeepHouse();
  bool LoadLasts() const { return now_ < end_; }

  // The simulation's own account.
  void Ask(const Job& job);
  void Grant(const Job& job);
  bool IsGranted(const Job& job) const;
  void GiveUp(const Job& job);
  void CheckBooks();
  void CheckDepartures();
  void CheckEnd();
  void Require(bool holds, absl::string_view what, uint64_t subject);

  const Plan plan_;
  Random random_;
  absl::Time now_ = absl::FromUnixSeconds(1'000'000);
  const absl::Time end_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  uint64_t event_numbers_ = 0;
  const std::shared_ptr<server::PinnedZones> pinned_;
  server::CostModel costs_;
  std::vector<server::TenantSettings> settings_;
  std::vector<std::unique_ptr<Device>> devices_;
  server::ResidentTensors residents_;  // goes before the devices
  size_t turn_ = 0;
  std::vector<std::vector<Known>> known_;  // by tenant, in the order of creation
  std::map<uint64_t, Job> jobs_;
  uint64_t sent_ = 0;
  std::map<const server::ResidentTensor*, std::vector<Use>> uses_;  // in the order of arrival
  Outcome outcome_;
};

}  // namespace opserve::simulation
