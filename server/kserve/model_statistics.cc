#include "server/kserve/model_statistics.h"

#include <initializer_list>
#include <numeric>
#include <string>

#include "server/kserve/models.h"

namespace opserve::server {

void DescribeStatistics(absl::string_view model, const OperatorStatistics::Totals& totals,
                        inference::ModelStatistics* statistics) {
  const auto set = [&totals](std::initializer_list<Stage> stages,
                             inference::StatisticDuration* duration) {
    duration->set_count(totals.successes);
    for (Stage stage : stages) {
      duration->set_ns(duration->ns() + totals.success_nanoseconds[static_cast<int>(stage)]);
    }
  };
  // Triton's three parts of a computation, made of the stages.
  const auto set_compute = [&set](auto* to) {
    set({Stage::kH2d, Stage::kPrepare}, to->mutable_compute_input());
    set({Stage::kExecute}, to->mutable_compute_infer());
    set({Stage::kD2h, Stage::kWrite}, to->mutable_compute_output());
  };
  statistics->set_name(std::string(model));
  statistics->set_version(std::string(kModelVersion));
  statistics->set_last_inference(static_cast<uint64_t>(absl::ToUnixMillis(totals.last)));
  statistics->set_inference_count(totals.successes);
  // Requests are not batched, so an execution serves one request.
  statistics->set_execution_count(totals.successes);
  inference::InferStatistics* stats = statistics->mutable_inference_stats();
  stats->mutable_success()->set_count(totals.successes);
  stats->mutable_success()->set_ns(std::accumulate(totals.success_nanoseconds.begin(),
                                                   totals.success_nanoseconds.end(), uint64_t{0}));
  stats->mutable_fail()->set_count(totals.failures);
  stats->mutable_fail()->set_ns(totals.failure_nanoseconds);
  set({Stage::kQueue}, stats->mutable_queue());
  set_compute(stats);
  // A batch size that never ran has no entry.
  if (totals.successes == 0) return;
  inference::InferBatchStatistics* batch = statistics->add_batch_stats();
  batch->set_batch_size(1);
  set_compute(batch);
}

}  // namespace opserve::server
