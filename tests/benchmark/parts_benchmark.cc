// What the parts on every request's way cost: taking messages apart and putting them together, next
// to protobuf's own parser, and lending memory.

#include <memory>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "opserve/v1/operator_service.pb.h"
#include "proto/codec/header_arena.h"
#include "proto/codec/payload_message.h"
#include "server/device/device.h"
#include "server/device/memory/pinned_pool.h"
#include "tests/unit/server/acl_environment.h"

namespace opserve::server {
namespace {

// KlDivBackward of three tensors of `tensor_bytes` bytes.
v1::ExecuteRequest Header(int64_t tensor_bytes) {
  v1::ExecuteRequest request;
  v1::Invocation* invocation = request.add_invocations();
  invocation->set_operator_("KlDivBackward");
  for (const char* name : {"grad_output", "self", "target"}) {
    v1::NamedTensor* input = invocation->add_inputs();
    input->set_name(name);
    input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
    input->mutable_tensor()->add_shape(tensor_bytes / 4);
    input->mutable_tensor()->set_payload(invocation->inputs_size() - 1);
  }
  return request;
}

std::vector<grpc::Slice> Payloads(int64_t tensor_bytes) {
  return std::vector<grpc::Slice>(3, grpc::Slice(std::string(tensor_bytes, 'x')));
}

void BM_BuildMessage(benchmark::State& state) {
  const v1::ExecuteRequest header = Header(state.range(0));
  const std::vector<grpc::Slice> payloads = Payloads(state.range(0));
  for (auto _ : state) {
    benchmark::DoNotOptimize(codec::BuildPayloadMessage(header, payloads).Length());
  }
}
BENCHMARK(BM_BuildMessage)->Arg(1 << 10)->Arg(4 << 20);

void BM_SplitMessage(benchmark::State& state) {
  const grpc::ByteBuffer message =
      codec::BuildPayloadMessage(Header(state.range(0)), Payloads(state.range(0)));
  for (auto _ : state) {
    codec::HeaderArena arena;
    auto& header = arena.Make<v1::ExecuteRequest>();
    const auto split = codec::PayloadMessage::Split(message, 16);
    if (!split.ok() || !split->ParseHeader(&header).ok()) state.SkipWithError("malformed");
    benchmark::DoNotOptimize(split->payloads().size());
  }
}
BENCHMARK(BM_SplitMessage)->Arg(1 << 10)->Arg(4 << 20);

// What a plain service does: all of the message becomes one protobuf object.
void BM_StockParser(benchmark::State& state) {
  v1::ExecuteRequest whole = Header(state.range(0));
  for (int i = 0; i < 3; ++i) whole.add_payloads(std::string(state.range(0), 'x'));
  const std::string bytes = whole.SerializeAsString();
  for (auto _ : state) {
    v1::ExecuteRequest request;
    if (!request.ParseFromString(bytes)) state.SkipWithError("malformed");
    benchmark::DoNotOptimize(request.payloads_size());
  }
}
BENCHMARK(BM_StockParser)->Arg(1 << 10)->Arg(4 << 20);

void BM_DeviceMemory(benchmark::State& state) {
  Device device(TestAcl(), 0, {.max_bytes = 0});
  if (!device.Open().ok()) return state.SkipWithError("no device");
  aclrtStream stream = nullptr;
  TestAcl().aclrtCreateStream(&stream);
  for (auto _ : state) {
    const auto buffer = device.memory().Allocate(
        {.bytes = static_cast<size_t>(state.range(0)), .stream = stream, .tenant = 1});
    benchmark::DoNotOptimize(buffer->data());
  }
  TestAcl().aclrtDestroyStream(stream);
}
BENCHMARK(BM_DeviceMemory)->Arg(16 << 10)->Arg(16 << 20);

void BM_PinnedMemory(benchmark::State& state) {
  Device device(TestAcl(), 0, {.max_bytes = 0});
  if (!device.Open().ok()) return state.SkipWithError("no device");
  const auto pool = PinnedPool::Create(TestAcl(), 64 << 20);
  for (auto _ : state) {
    const auto buffer = pool->Allocate(static_cast<size_t>(state.range(0)));
    benchmark::DoNotOptimize(buffer->data());
  }
  pool->Close();
}
BENCHMARK(BM_PinnedMemory)->Arg(16 << 10)->Arg(16 << 20);

}  // namespace
}  // namespace opserve::server

BENCHMARK_MAIN();
