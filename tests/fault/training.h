// A client that trains a layer by one prepared program a step, with parameters on the pool,
// whatever happens to its devices.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cpp/client.h"
#include "tests/training_step.h"

namespace opserve {

inline constexpr int kSteps = 64;  // of a training; then it begins anew

struct Job {
  std::string tenant;  // and its token
  TrainingShape shape;
  bool donates = true;
};

class Training {
 public:
  // Of another tensor that some steps have beside them.
  static constexpr int64_t kOtherBytes = 192 << 10;

  struct Observer {
    // Of a step whose answer came; the first is number 0.
    std::function<void(int step, float loss)> loss;
    // A state that no documented error explains.
    std::function<void(const std::string& what)> wrong;
  };

  Training(const std::string& target, const Job& job, uint32_t seed, Observer observer);
  ~Training();

  // A step, or the restoration that has to come before it. Errors: of a call. A state that outlives
  // a failed step is gone on with; one that is lost begins again from the last snapshot.
  absl::Status GoOn(absl::Duration timeout = absl::Seconds(20));

  // Something that clients do. Errors: of a call.
  absl::Status GoOnSomehow();

  void ReleaseProgram() { program_.reset(); }
  int64_t steps_done() const { return steps_done_; }
  int64_t states_lost() const { return states_lost_; }
  int64_t states_gone_on_with() const { return states_gone_on_with_; }

 private:
  // The content of the tensors on the pool: steps done, w and its moments.
  struct Snapshot {
    int step = 0;
    std::vector<int64_t> done = {0};
    std::array<std::vector<float>, 3> parameters;
  };

  absl::Status Restore();
  // The tensors' content at one moment. It belongs to one step, which is this training's last or
  // the next.
  absl::StatusOr<Snapshot> Read();
  // After a step, whether its answer came or not.
  absl::Status EndStep();
  absl::Status Save();
  void Settle(const absl::Status& failure);
  std::vector<std::string> Handles() const;
  void GiveTensorsUp();

  const Job job_;
  const std::unique_ptr<Client> client_;
  std::mt19937 random_;
  const Observer observer_;
  std::optional<PreparedProgram> program_;
  std::vector<PreparedProgram::Input> inputs_;  // empty: not uploaded
  Snapshot snapshot_;
  int step_ = 0;
  int64_t steps_done_ = 0;
  int64_t states_lost_ = 0;
  int64_t states_gone_on_with_ = 0;
};

// Whether devices, drains, ended leases and cancelled steps may bring it about.
bool IsDocumented(const absl::Status& status);

}  // namespace opserve
