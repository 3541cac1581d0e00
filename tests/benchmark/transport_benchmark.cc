// What the way to the daemon costs, client and daemon included, against the most that gRPC can
// carry (raw_server.h) in the same run: KlDivBackward of three inputs, reduction mean. Targets T1
// to T5, T14, T15 and T17.
//
// usage: transport_benchmark [--repetitions=N] [SECTION...]: small, session, large, huge, program,
// tenants

#include <algorithm>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "tests/benchmark/peers.h"
#include "tests/benchmark/raw_client.h"
#include "tests/benchmark/report.h"

namespace opserve::benchmark {
namespace {

constexpr size_t kKi = 1 << 10;
constexpr size_t kMi = 1 << 20;

int g_repetitions = 5;

Tensor Filled(size_t bytes, float value) {
  const auto count = static_cast<int64_t>(bytes / sizeof(float));
  return Tensor::Owning<float>({count}, std::vector<float>(count, value));
}

Request KlRequest(size_t tensor_bytes) {
  return {.invocations = {{.operator_name = "KlDivBackward",
                           .inputs = {{"grad_output", Filled(tensor_bytes, 1)},
                                      {"self", Filled(tensor_bytes, -1)},
                                      {"target", Filled(tensor_bytes, 0.5f)}},
                           .attributes = {{"reduction", "mean"}}}},
          .timeout = absl::Minutes(5)};
}

// How a load makes its calls.
struct Caller {
  using Done = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

  std::function<absl::Status()> call;
  std::function<void(Done done)> begin;
};

// `client` and `request` outlive it.
Caller CallerOf(Client& client, const Request& request) {
  return {.call = [&] { return client.Execute(request).status(); },
          .begin = [&](Caller::Done done) { client.ExecuteAsync(request, std::move(done)); }};
}

// Of a program whose tensors travel with each call.
Caller CallerOf(const PreparedProgram& program) {
  return {.call = [program] { return program({}).status(); },
          .begin = [program](Caller::Done done) { program.CallAsync({}, std::move(done)); }};
}

// Keeps `in_flight` calls running until `calls` have ended, as RawClient::Call does.
class OurLoad {
 public:
  OurLoad(Caller caller, int calls) : caller_(std::move(caller)), calls_(calls) {}
  OurLoad(Client& client, const Request& request, int calls)
      : OurLoad(CallerOf(client, request), calls) {}

  Load Run(int in_flight) {
    latencies_.reserve(calls_);
    const absl::Time start = absl::Now();
    if (in_flight == 1) {
      for (int i = 0; i < calls_; ++i) {
        const absl::Time call_start = absl::Now();
        Require(caller_.call());
        latencies_.push_back(absl::ToDoubleMicroseconds(absl::Now() - call_start));
      }
    } else {
      {
        absl::MutexLock lock(&mutex_);
        started_ = std::min(in_flight, calls_);
      }
      for (int i = 0; i < std::min(in_flight, calls_); ++i) Start();
      absl::MutexLock lock(&mutex_);
      mutex_.Await(absl::Condition(this, &OurLoad::IsOver));
    }
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
    return {.per_second = calls_ / seconds, .p50_us = Median(latencies_)};
  }

 private:
  void Start() {
    caller_.begin([this, start = absl::Now()](absl::StatusOr<Response> response) {
      Require(response.status());
      bool is_another = false;
      {
        absl::MutexLock lock(&mutex_);
        latencies_.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
        is_another = started_ < calls_;
        if (is_another) ++started_;
      }
      if (is_another) Start();
    });
  }
  bool IsOver() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(latencies_.size()) == calls_;
  }

  const Caller caller_;
  const int calls_;
  absl::Mutex mutex_;
  int started_ = 0;
  std::vector<double> latencies_;
};

struct Work {
  const char* target;
  const char* name;
  size_t tensor_bytes;
  bool is_unix;
  int in_flight;
  int calls;
  bool session = false;  // ours go over a session
  bool prepared = false;
};

constexpr double kMegabyte = 1e6;

// Requests or bytes per second, and page faults and memory of the same calls.
void CompareThroughput(const Peers& peers, const Work& work, double at_least) {
  const auto client = peers.Connect(work.is_unix ? peers.OurUnix() : peers.OurTcp(), work.session);
  RawClient raw(work.is_unix ? peers.RawUnix() : peers.RawTcp());
  const Request request = KlRequest(work.tensor_bytes);
  const bool is_small = work.tensor_bytes < kMi;
  const double unit = is_small ? 1 : 3 * static_cast<double>(work.tensor_bytes) / kMegabyte;
  double our_client_seconds = 0;
  double raw_client_seconds = 0;
  const auto ours = [&] {
    const double before = OwnSeconds();
    const Load load = OurLoad(*client, request, work.calls).Run(work.in_flight);
    our_client_seconds += OwnSeconds() - before;
    return load.per_second * unit;
  };
  // Raw calls carry nothing larger so well.
  const size_t raw_bytes = std::min(work.tensor_bytes, 64 * kMi);
  const auto theirs = [&] {
    const double before = OwnSeconds();
    const auto raw_calls = static_cast<int>(work.calls * (work.tensor_bytes / raw_bytes));
    const Load load = raw.Call(3 * raw_bytes, work.in_flight, raw_calls);
    raw_client_seconds += OwnSeconds() - before;
    return load.per_second * unit * static_cast<double>(raw_bytes) /
           static_cast<double>(work.tensor_bytes);
  };
  // Until memory is as large as it gets.
  for (int i = 0; i < 3; ++i) {
    ours();
    theirs();
  }
  our_client_seconds = raw_client_seconds = 0;
  const Usage our_usage = peers.OurUsage();
  const Usage raw_usage = peers.RawUsage();
  const int64_t resident = peers.ResidentBytes();
  const Pair pair = Compare(g_repetitions, ours, theirs);
  const int64_t faults = peers.OurUsage().page_faults - our_usage.page_faults;
  const double our_seconds = peers.OurUsage().seconds - our_usage.seconds;
  const double raw_seconds = peers.RawUsage().seconds - raw_usage.seconds;
  Report({.target = work.target,
          .what = work.name,
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = is_small ? "req/s" : "MB/s",
          .ratio = pair.ratio,
          .at_least = at_least});
  const double requests = static_cast<double>(g_repetitions) * work.calls;
  Report({.target = "",
          .what = absl::StrCat("processor time of the servers: ", work.name),
          .ours = our_seconds / requests * 1e6,
          .peer = raw_seconds / requests * 1e6,
          .unit = "us",
          .ratio = our_seconds / raw_seconds});
  Report({.target = "",
          .what = absl::StrCat("processor time of the clients: ", work.name),
          .ours = our_client_seconds / requests * 1e6,
          .peer = raw_client_seconds / requests * 1e6,
          .unit = "us",
          .ratio = our_client_seconds / raw_client_seconds});
  Report({.target = "T14",
          .what = absl::StrCat("page faults per request: ", work.name),
          .ours = static_cast<double>(faults),
          .peer = requests,
          .unit = "count",
          .ratio = static_cast<double>(faults) / requests,
          .at_most = 0.1});
  Report({.target = "T14",
          .what = absl::StrCat("growth of memory, MiB: ", work.name),
          .ours = static_cast<double>(peers.ResidentBytes()) / kMi,
          .peer = static_cast<double>(resident) / kMi,
          .unit = "MiB",
          .ratio = static_cast<double>(peers.ResidentBytes() - resident) / kMi,
          .at_most = 1});
}

void CompareLatency(const Peers& peers, const Work& work, double at_most) {
  const auto client = peers.Connect(peers.OurUnix(), work.session);
  RawClient raw(peers.RawUnix());
  const Request request = KlRequest(work.tensor_bytes);
  const auto ours = [&] { return OurLoad(*client, request, work.calls).Run(1).p50_us; };
  const auto theirs = [&] { return raw.Call(3 * work.tensor_bytes, 1, work.calls).p50_us; };
  ours();
  theirs();
  const Pair pair = Compare(g_repetitions, ours, theirs);
  Report({.target = work.target,
          .what = work.name,
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "us",
          .ratio = pair.ratio,
          .at_most = at_most});
}

// Small requests beside a large one in the same session, and alone.
void CompareBeside(const Peers& peers) {
  const auto client = peers.Connect(peers.OurUnix(), /*session=*/true);
  const Request small = KlRequest(kKi);
  const Request large = KlRequest(340 * kMi);  // a GiB of inputs
  OurLoad(*client, small, 100).Run(1);
  Require(client->Execute(large).status());
  const auto beside = [&] {
    std::vector<double> latencies;
    auto response = client->ExecuteAsync(large);
    do {
      latencies.push_back(OurLoad(*client, small, 1).Run(1).p50_us);
    } while (response.wait_for(std::chrono::seconds(0)) != std::future_status::ready);
    Require(response.get().status());
    return Median(latencies);
  };
  const Pair pair =
      Compare(g_repetitions, beside, [&] { return OurLoad(*client, small, 200).Run(1).p50_us; });
  Report({.target = "5.4",
          .what = "1 KiB beside 1 GiB in a session / alone, p50",
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "us",
          .ratio = pair.ratio,
          .at_most = 5});
}

// Requests in a session beside raw messages, each of its own, in one stream.
void CompareSession(const Peers& peers, const Work& work, double at_least) {
  const auto client = peers.Connect(peers.OurUnix(), /*session=*/true);
  RawClient raw(peers.RawUnix());
  const Request request = KlRequest(work.tensor_bytes);
  Caller caller = CallerOf(*client, request);
  if (work.prepared) {
    absl::StatusOr<PreparedProgram> program = client->Prepare(request);
    Require(program.status());
    caller = CallerOf(*program);
  }
  const auto ours = [&] { return OurLoad(caller, work.calls).Run(work.in_flight).per_second; };
  ours();  // opens the session
  const Pair pair = Compare(g_repetitions, ours, [&] {
    return raw.Stream(3 * work.tensor_bytes, work.in_flight, work.calls).per_second;
  });
  Report({.target = work.target,
          .what = work.name,
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "req/s",
          .ratio = pair.ratio,
          .at_least = at_least});
}

void CompareProgram(const Peers& peers) {
  const auto client = peers.Connect(peers.OurUnix());
  constexpr int64_t kRows = 1024;
  const auto filled = [](float value) {
    return Tensor::Owning<float>({kRows, 1024}, std::vector<float>(kRows * 1024, value));
  };
  const Tensor student = filled(-1);
  const Invocation kl = {.operator_name = "KlDivBackward",
                         .inputs = {{"grad_output", Tensor::Owning<float>({}, {1.0f})},
                                    {"self", student},
                                    {"target", filled(0.5f)}},
                         .attributes = {{"reduction", "batchmean"}}};
  const auto softmax = [&](auto grad) {
    return Invocation{.operator_name = "LogSoftmaxBackward",
                      .inputs = {{"grad_output", grad}, {"output", student}}};
  };
  constexpr int kCalls = 20;
  const auto milliseconds = [](absl::Time start) {
    return absl::ToDoubleMilliseconds(absl::Now() - start) / kCalls;
  };
  const auto one_call = [&] {
    const absl::Time start = absl::Now();
    for (int i = 0; i < kCalls; ++i) {
      Require(client->Execute({.invocations = {kl, softmax(OutputOf{.invocation = 0})}}).status());
    }
    return milliseconds(start);
  };
  const auto two_calls = [&] {
    const absl::Time start = absl::Now();
    for (int i = 0; i < kCalls; ++i) {
      const auto first = client->Execute(kl);
      Require(first.status());
      const Tensor grad = Tensor::Of<float>({kRows, 1024}, *first->results[0].values<float>());
      Require(client->Execute(softmax(grad)).status());
    }
    return milliseconds(start);
  };
  const Pair pair = Compare(g_repetitions, one_call, two_calls);
  Report({.target = "T15",
          .what = "program of two invocations / two calls, 4 MiB",
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "ms",
          .ratio = pair.ratio,
          .at_most = 0.6});
}

// Their tokens are a to d: printf %s a | sha256sum
constexpr char kTenants[] = R"(
  tenant { name: "a"
           token_sha256: "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb" }
  tenant { name: "b"
           token_sha256: "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d" }
  tenant { name: "c"
           token_sha256: "2e7d2c03a9507ae265ecf5b5356885a53393a2029d241394997265a1a25aefc6" }
  tenant { name: "d"
           token_sha256: "18ac3e7343f016890c510e93f935261169d9e3f565436429830faf0934f4f8e4" }
)";

// Several connections of each tenant, all busy, and one connection alone.
void CompareTenants() {
  constexpr int kConnections = 8;
  constexpr int kInFlight = 32;
  constexpr int kCalls = 20000;
  const Peers peers(Peers::WithoutRaw(), kTenants);
  const char* const kTokens[] = {"a", "b", "c", "d"};
  const Request request = KlRequest(kKi);
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < kConnections; ++i) {
    clients.push_back(peers.Connect(peers.OurUnix(), /*session=*/true, kTokens[i % 4]));
  }
  const auto together = [&] {
    const absl::Time start = absl::Now();
    std::vector<std::thread> loads;
    for (const auto& client : clients) {
      loads.emplace_back([&] { OurLoad(*client, request, kCalls / kConnections).Run(kInFlight); });
    }
    for (std::thread& load : loads) load.join();
    return kCalls / absl::ToDoubleSeconds(absl::Now() - start);
  };
  together();  // opens the sessions
  const Pair pair = Compare(g_repetitions, together, [&] {
    return OurLoad(*clients[0], request, kCalls).Run(kInFlight).per_second;
  });
  Report({.target = "T17",
          .what = "1 KiB, 8 connections of 4 tenants / one connection",
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "req/s",
          .ratio = pair.ratio,
          .at_least = 0.9});
}

void RunWithoutTenants(const std::function<bool(const char*)>& wants) {
  const Peers peers;
  if (wants("small")) {
    CompareThroughput(peers, {"T1", "1 KiB, Unix, 32 in flight", kKi, true, 32, 20000}, 0.6);
    CompareLatency(peers, {"T2", "1 KiB, Unix, 1 in flight, p50", kKi, true, 1, 4000}, 1.5);
  }
  if (wants("session")) {
    CompareThroughput(peers, {"T1", "1 KiB, session, 32 in flight", kKi, true, 32, 20000, true},
                      1.0);
    CompareLatency(peers, {"T2", "1 KiB, session, 1 in flight, p50", kKi, true, 1, 4000, true},
                   1.1);
    CompareSession(peers, {"T3", "1 KiB, session, 256 in flight", kKi, true, 256, 40000, true},
                   0.7);
    CompareSession(peers,
                   {"T3", "1 KiB, session, 256 in flight, prepared", kKi, true, 256, 40000, true,
                    /*prepared=*/true},
                   0.9);
  }
  if (wants("large")) {
    CompareThroughput(peers, {"T4", "4 MiB, Unix, 1 in flight", 4 * kMi, true, 1, 60, true}, 1.0);
    CompareThroughput(peers, {"T4", "4 MiB, Unix, 8 in flight", 4 * kMi, true, 8, 60, true}, 1.0);
  }
  if (wants("huge")) {
    CompareThroughput(peers, {"T5", "64 MiB, Unix", 64 * kMi, true, 1, 6, true}, 1.0);
    CompareThroughput(peers, {"T5", "64 MiB, TCP", 64 * kMi, false, 1, 6, true}, 1.0);
    CompareBeside(peers);
    CompareThroughput(peers, {"T5", "512 MiB, Unix", 512 * kMi, true, 1, 1, true}, 1.0);
    CompareThroughput(peers, {"T5", "512 MiB, TCP", 512 * kMi, false, 1, 1, true}, 1.0);
  }
  if (wants("program")) CompareProgram(peers);
}

void Run(const std::set<std::string>& sections) {
  const auto wants = [&](const char* name) { return sections.empty() || sections.contains(name); };
  RunWithoutTenants(wants);
  if (wants("tenants")) CompareTenants();
}

}  // namespace
}  // namespace opserve::benchmark

int main(int argc, char** argv) {
  using namespace opserve::benchmark;
  KeepFreedMemory();
  const Arguments arguments = ParseArguments(argc, argv);
  g_repetitions = arguments.repetitions;
  Run(arguments.sections);
}
