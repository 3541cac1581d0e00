#include "client/cli/bench/arrival_schedule.h"

namespace opserve::cli {
namespace {

constexpr uint64_t kArrivalSeed = 20231114;

}  // namespace

ArrivalSchedule::ArrivalSchedule(double rate) : random_(kArrivalSeed), gap_seconds_(rate) {}

absl::Duration ArrivalSchedule::Next() { return last_ += absl::Seconds(gap_seconds_(random_)); }

}  // namespace opserve::cli
