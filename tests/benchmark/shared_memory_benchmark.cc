// What a call costs whose tensors are in shared memory: KlDivBackward of three inputs, reduction
// mean. Target T6 compares it with the same kernel in this process, T7 what it takes beyond that
// with a message without bytes.
//
// usage: shared_memory_benchmark [--repetitions=N]

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/client.h"
#include "client/cpp/shared_memory.h"
#include "ops/host_cann/runtime/core_pool.h"
#include "tests/benchmark/kernel_cases.h"
#include "tests/benchmark/peers.h"
#include "tests/benchmark/raw_client.h"
#include "tests/benchmark/report.h"

namespace opserve::benchmark {
namespace {

constexpr size_t kMi = 1 << 20;
constexpr size_t kSlack = 64;  // between tensors, so that they are used in place

// Median time of a call of `work` in microseconds.
template <typename Work>
double MedianTime(int calls, Work work) {
  std::vector<double> times;
  for (int i = 0; i < calls; ++i) {
    const absl::Time start = absl::Now();
    work();
    times.push_back(absl::ToDoubleMicroseconds(absl::Now() - start));
  }
  return Median(std::move(times));
}

// The request on three tensors and a result in a region of its own.
class SharedCall {
 public:
  SharedCall(const Peers& peers, size_t tensor_bytes)
      : client_(peers.Connect(peers.OurUnix())), bytes_(tensor_bytes) {
    auto memory = SharedMemory::Open(peers.OurUnix());
    Require(memory.status());
    memory_ = *std::move(memory);
    auto region = memory_->CreateRegion(4 * (tensor_bytes + kSlack));
    Require(region.status());
    region_ = *std::move(region);
    request_.invocations = {{.operator_name = "KlDivBackward",
                             .inputs = {{"grad_output", Filled(0, 1)},
                                        {"self", Filled(1, -1)},
                                        {"target", Filled(2, 0.5f)}},
                             .attributes = {{"reduction", "mean"}}}};
    request_.destinations = {region_->Range(3 * (tensor_bytes + kSlack), tensor_bytes)};
  }

  void operator()() { Require(client_->Execute(request_).status()); }

 private:
  SharedTensor Filled(size_t index, float value) {
    const size_t offset = index * (bytes_ + kSlack);
    const size_t count = bytes_ / sizeof(float);
    std::fill_n(reinterpret_cast<float*>(region_->bytes().data() + offset), count, value);
    return {kDataTypeOf<float>, {static_cast<int64_t>(count)}, region_->Range(offset, bytes_)};
  }

  const std::unique_ptr<Client> client_;
  const size_t bytes_;
  std::unique_ptr<SharedMemory> memory_;
  std::unique_ptr<SharedRegion> region_;
  Request request_;
};

// The same work here, with as many threads as the device has.
class OwnCall {
 public:
  explicit OwnCall(size_t tensor_bytes) {
    const kernels::Layout flat = kernels::Contiguous(
        kernels::Dtype::kFloat, {static_cast<int64_t>(tensor_bytes / sizeof(float))});
    call_ = kernels::KlDivCase(false, "", flat, flat, flat);
    for (const kernels::Layout& layout : call_.inputs) {
      inputs_.push_back(kernels::RandomTensor(layout));
      addresses_.push_back(inputs_.back().get());
    }
    out_.push_back(kernels::AllocateTouched(static_cast<int64_t>(tensor_bytes)));
  }

  void operator()() {
    void* const outputs[] = {out_[0].get()};
    call_.kernel->Run(addresses_.data(), outputs, nullptr, Cores());
  }

 private:
  // Its helpers live as long as the process, and so does the pool.
  static host_cann::CorePool& Cores() {
    static auto* const cores =
        new host_cann::CorePool(static_cast<int>(std::thread::hardware_concurrency()));
    return *cores;
  }

  kernels::KernelCase call_;
  std::vector<kernels::Memory> inputs_;
  std::vector<const void*> addresses_;
  std::vector<kernels::Memory> out_;
};

void Run(int repetitions) {
  const Peers peers({"--enable_shm"});
  {
    SharedCall shared(peers, 64 * kMi);
    OwnCall own(64 * kMi);
    const Pair pair = Compare(
        repetitions, [&] { return MedianTime(10, std::ref(shared)); },
        [&] { return MedianTime(10, std::ref(own)); });
    Report({.target = "T6",
            .what = "64 MiB in shared memory / the kernel in-process",
            .ours = pair.ours,
            .peer = pair.peer,
            .unit = "us",
            .ratio = pair.ratio,
            .at_most = 1.1});
  }
  SharedCall shared(peers, kMi);
  OwnCall own(kMi);
  RawClient raw(peers.RawUnix());
  const auto ping = [&] { return raw.Call(/*request_bytes=*/0, 1, 500).p50_us; };
  ping();
  const Pair pair = Compare(
      repetitions,
      [&] { return MedianTime(200, std::ref(shared)) - MedianTime(200, std::ref(own)); }, ping);
  Report({.target = "T7",
          .what = "1 MiB in shared memory, beyond the kernel / raw ping",
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "us",
          .ratio = pair.ratio,
          .at_most = 1.5});
}

}  // namespace
}  // namespace opserve::benchmark

int main(int argc, char** argv) {
  using namespace opserve::benchmark;
  KeepFreedMemory();
  Run(ParseArguments(argc, argv).repetitions);
}
