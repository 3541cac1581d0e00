// What long programs cost: to be made runnable, and to be run again and again. Ends with 1 if a
// limit is missed.
//
//   T21  10,000 nodes, from the parsed header to a runnable program, in ms
//   T22  the memory plan of it, in ms
//   T23  the same with a window of shared memory for an input and a result of each node, beside
//        payloads
//   T24  500 nodes launched one by one beside one replay, with 10 us for each launch

#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/prepared_program.h"
#include "client/cpp/program.h"
#include "server/native/native_request.h"
#include "server/program/bind_program.h"
#include "server/program/memory_plan.h"
#include "tests/benchmark/peers.h"
#include "tests/benchmark/report.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/unit/server/shared_files.h"
#include "tests/unit/server/test_operators.h"

namespace opserve::server {
namespace {

using benchmark::Median;
using benchmark::Report;
using benchmark::Require;

constexpr int kNodes = 10'000;
constexpr int64_t kElements = 64;
constexpr uint64_t kBytes = kElements * sizeof(float);

// Of this thread's processor time, which other processes do not lengthen by running.
double Milliseconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return absl::DurationFromTimespec(time);
  };
  const absl::Duration start = now();
  work();
  return absl::ToDoubleMilliseconds(now() - start);
}

double MedianOf(int repetitions, const std::function<double()>& measure) {
  measure();  // the first one is slower
  std::vector<double> values;
  for (int i = 0; i < repetitions; ++i) values.push_back(measure());
  return Median(std::move(values));
}

v1::Tensor* AddInput(const char* name, v1::Invocation* invocation) {
  v1::NamedTensor* input = invocation->add_inputs();
  input->set_name(name);
  return input->mutable_tensor();
}

void Describe(v1::Tensor* tensor) {
  tensor->set_dtype(v1::DATA_TYPE_FLOAT);
  tensor->add_shape(kElements);
}

// A forward pass, each of whose results stays for the node of the backward pass that mirrors it.
v1::ExecuteRequest Training() {
  v1::ExecuteRequest request;
  for (int i = 0; i < kNodes; ++i) {
    const bool is_forward = i < kNodes / 2;
    v1::Invocation* node = request.add_invocations();
    node->set_operator_(!is_forward ? "Mul" : i % 2 == 0 ? "Gelu" : "Add");
    v1::Tensor* self = AddInput("self", node);
    if (i == 0) {
      Describe(self);
      self->set_payload(0);
    } else {
      self->mutable_invocation_output()->set_invocation(static_cast<uint32_t>(i - 1));
    }
    if (is_forward && i % 2 == 0) continue;
    v1::Tensor* other = AddInput("other", node);
    if (is_forward) {
      Describe(other);
      other->set_payload(0);
    } else {
      other->mutable_invocation_output()->set_invocation(static_cast<uint32_t>(kNodes - 1 - i));
    }
  }
  return request;
}

// A chain whose nodes have an input and a result of their own each: payloads, or windows of region
// 0.
v1::ExecuteRequest Chain(bool has_windows) {
  v1::ExecuteRequest request;
  for (uint32_t i = 0; i < kNodes; ++i) {
    v1::Invocation* node = request.add_invocations();
    node->set_operator_("Add");
    v1::Tensor* other = AddInput("other", node);
    Describe(other);
    v1::WantedResult* result = request.add_results();
    result->set_invocation(i);
    if (has_windows) {
      other->mutable_shared_memory()->set_offset(i * kBytes);
      other->mutable_shared_memory()->set_size(kBytes);
      result->mutable_shared_memory()->set_offset((kNodes + i) * kBytes);
      result->mutable_shared_memory()->set_size(kBytes);
    } else {
      other->set_payload(i);
    }
    v1::Tensor* self = AddInput("self", node);
    if (i == 0) {
      *self = *other;
    } else {
      self->mutable_invocation_output()->set_invocation(i - 1);
    }
  }
  return request;
}

class Binding {
 public:
  Binding(v1::ExecuteRequest request, size_t payloads,
          std::shared_ptr<SharedRegion> region = nullptr)
      : request_(std::move(request)),
        payload_bytes_(payloads, kBytes),
        region_(std::move(region)) {}

  double Time() {
    // Many small results stay for the backward pass.
    const ProgramLimits limits = {.max_output_ratio = 100'000};
    return Milliseconds([this, &limits] {
      absl::StatusOr<ProgramCall> bound = BindProgram(
          TranslateProgram(request_), payload_bytes_, TestOperators(), limits,
          [](absl::string_view) { return absl::NotFoundError("none"); },
          [this](const MemoryRange&) -> absl::StatusOr<std::shared_ptr<SharedRegion>> {
            return region_;
          });
      Require(bound.status());
      call_ = *std::move(bound);
    });
  }
  double PlanTime() const {
    const std::vector<uint64_t> workspaces(kNodes, 0);
    return Milliseconds([&] {
      if (PlanMemory(*call_.program, payload_bytes_, workspaces).total_bytes == 0) std::abort();
    });
  }
  double ParseTime() const {
    const std::string bytes = request_.SerializeAsString();
    return Milliseconds([&bytes] {
      v1::ExecuteRequest request;
      if (!request.ParseFromString(bytes)) std::abort();
    });
  }

 private:
  const v1::ExecuteRequest request_;
  const std::vector<uint64_t> payload_bytes_;
  const std::shared_ptr<SharedRegion> region_;
  ProgramCall call_;
};

bool BenchmarkBinding(int repetitions) {
  Binding training(Training(), 1);
  const double parse = MedianOf(repetitions, [&] { return training.ParseTime(); });
  const double all = MedianOf(repetitions, [&] { return training.Time(); });
  const double plan = MedianOf(repetitions, [&] { return training.PlanTime(); });
  // The plan is a part of binding, with a limit of its own.
  bool is_met = Report({.target = "T21",
                        .what = "10,000 nodes, from parsed to runnable (peer: parsing), ms",
                        .ours = all - plan,
                        .peer = parse,
                        .unit = "ms",
                        .ratio = all - plan,
                        .at_most = 20});
  is_met &= Report({.target = "T22",
                    .what = "10,000 nodes, the memory plan, ms",
                    .ours = plan,
                    .peer = all,
                    .unit = "ms",
                    .ratio = plan,
                    .at_most = 50});

  const FileDescriptor file = SealedFile(2 * kNodes * kBytes);
  const SharedRegion::Retire retire = [](int32_t, std::shared_ptr<const HostRegistration>) {};
  auto region =
      SharedRegion::Map(file.get(), {.size = 2 * kNodes * kBytes}, retire,
                        []() -> absl::StatusOr<std::shared_ptr<void>> { return nullptr; });
  Require(region.status());
  Binding windows(Chain(/*has_windows=*/true), 0, *std::move(region));
  Binding payloads(Chain(/*has_windows=*/false), kNodes);
  // In turn, so that both see the machine alike.
  std::vector<double> times[2];
  for (int i = 0; i <= repetitions; ++i) {
    const double of_windows = windows.Time();
    const double of_payloads = payloads.Time();
    if (i == 0) continue;
    times[0].push_back(of_windows);
    times[1].push_back(of_payloads);
  }
  const double ours = Median(std::move(times[0]));
  const double peer = Median(std::move(times[1]));
  is_met &= Report({.target = "T23",
                    .what = "10,000 nodes with 20,000 windows / with payloads",
                    .ours = ours,
                    .peer = peer,
                    .unit = "ms",
                    .ratio = ours / peer,
                    .at_most = 1.5});
  return is_met;
}

// A call of a program of 500 nodes, by a client, in us; the median of many.
double CallTime(bool may_capture) {
  constexpr int kCalls = 50;
  Config config = InProcessDaemon::OneLane();
  config.captured_max_bytes_per_device = may_capture ? uint64_t{1} << 30 : 0;
  InProcessDaemon daemon(config);
  opserve::Program p;
  const InputOf x = p.Input(v1::DATA_TYPE_FLOAT, {kElements});
  OutputOf sum = p.Add(x, x);
  for (int i = 1; i < 500; ++i) sum = p.Add(sum, x);
  p.Return(sum);
  const auto program = daemon.client().Prepare(p.request());
  Require(program.status());
  const std::vector<float> ones(kElements, 1);
  const std::vector<opserve::PreparedProgram::Input> inputs = {
      Tensor::Of<float>({kElements}, ones)};
  std::vector<double> times;
  // Its first runs launch in any case: they are captured once their time is known.
  for (int i = 0; static_cast<int>(times.size()) < kCalls; ++i) {
    const absl::Time start = absl::Now();
    const auto response = (*program)(inputs, {.want_receipt = true});
    const double took = absl::ToDoubleMicroseconds(absl::Now() - start);
    Require(response.status());
    if (i > 1000) Require(absl::InternalError("the program is not replayed"));
    if (i < 5 || response->receipt->replayed() != may_capture) continue;
    times.push_back(took);
  }
  return Median(std::move(times));
}

bool BenchmarkReplay(int repetitions) {
  std::vector<double> ratios;
  std::vector<double> launched;
  std::vector<double> replayed;
  for (int i = 0; i < repetitions; ++i) {
    launched.push_back(CallTime(/*may_capture=*/false));
    replayed.push_back(CallTime(/*may_capture=*/true));
    ratios.push_back(launched.back() / replayed.back());
  }
  return Report({.target = "T24",
                 .what = "500 nodes launched / replayed, 10 us each launch",
                 .ours = Median(std::move(replayed)),
                 .peer = Median(std::move(launched)),
                 .unit = "us",
                 .ratio = Median(std::move(ratios)),
                 .at_least = 10});
}

}  // namespace
}  // namespace opserve::server

int main(int argc, char** argv) {
  // Before the libraries are loaded, which read it once.
  setenv("OPSERVE_HOST_LAUNCH_US", "10", 1);
  opserve::benchmark::KeepFreedMemory();
  const int repetitions = opserve::benchmark::ParseArguments(argc, argv).repetitions;
  bool is_met = opserve::server::BenchmarkBinding(repetitions);
  is_met &= opserve::server::BenchmarkReplay(repetitions);
  return is_met ? 0 : 1;
}
