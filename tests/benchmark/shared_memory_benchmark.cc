// What a call costs whose tensors are in shared memory: KlDivBackward of three inputs, reduction
// mean. Target T6 compares it with the same kernel in this process on memory of the same kind, T7
// what it takes beyond that with a small message of a stream.
//
// usage: shared_memory_benchmark [--repetitions=N]

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
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
constexpr size_t kPingBytes = 64;

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

// A mapped memory file, as a region is.
class MappedFile {
 public:
  explicit MappedFile(size_t bytes) : bytes_(bytes) {
    const int file = memfd_create("benchmark", MFD_CLOEXEC);
    const bool is_made = file >= 0 && ftruncate(file, static_cast<off_t>(bytes)) == 0;
    if (is_made) address_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0) close(file);
    if (address_ == MAP_FAILED) Require(absl::ErrnoToStatus(errno, "no memory file"));
  }
  ~MappedFile() { munmap(address_, bytes_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  char* data() const { return static_cast<char*>(address_); }

 private:
  const size_t bytes_;
  void* address_ = MAP_FAILED;
};

// The same work here, with as many threads as the device has.
class OwnCall {
 public:
  explicit OwnCall(size_t tensor_bytes) : memory_(4 * (tensor_bytes + kSlack)) {
    const size_t count = tensor_bytes / sizeof(float);
    const kernels::Layout flat =
        kernels::Contiguous(kernels::Dtype::kFloat, {static_cast<int64_t>(count)});
    call_ = kernels::KlDivCase(false, "", flat, flat, flat);
    for (size_t i = 0; i < 4; ++i) {
      char* const tensor = memory_.data() + i * (tensor_bytes + kSlack);
      std::fill_n(reinterpret_cast<float*>(tensor), count, 0.5f);
      (i < 3 ? inputs_ : outputs_).push_back(tensor);
    }
  }

  void operator()() { call_.kernel->Run(inputs_.data(), outputs_.data(), nullptr, Cores()); }

 private:
  // Its helpers live as long as the process, and so does the pool.
  static host_cann::CorePool& Cores() {
    static auto* const cores =
        new host_cann::CorePool(static_cast<int>(std::thread::hardware_concurrency()));
    return *cores;
  }

  const MappedFile memory_;
  kernels::KernelCase call_;
  std::vector<void*> inputs_;
  std::vector<void*> outputs_;
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
            .at_most = 1.05});
  }
  SharedCall shared(peers, kMi);
  OwnCall own(kMi);
  RawClient raw(peers.RawUnix());
  // The mean of one after another.
  const auto ping = [&] { return 1e6 / raw.Stream(kPingBytes, 1, 2000).per_second; };
  ping();
  const Pair pair = Compare(
      repetitions,
      [&] { return MedianTime(200, std::ref(shared)) - MedianTime(200, std::ref(own)); }, ping);
  Report({.target = "T7",
          .what = "1 MiB in shared memory, beyond the kernel / raw echo of a stream",
          .ours = pair.ours,
          .peer = pair.peer,
          .unit = "us",
          .ratio = pair.ratio,
          .at_most = 1.3});
}

}  // namespace
}  // namespace opserve::benchmark

int main(int argc, char** argv) {
  using namespace opserve::benchmark;
  KeepFreedMemory();
  Run(ParseArguments(argc, argv).repetitions);
}
