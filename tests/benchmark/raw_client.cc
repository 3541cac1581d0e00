#include "tests/benchmark/raw_client.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/create_channel_posix.h"
#include "tests/benchmark/socket_buffers.h"

namespace opserve::benchmark {
namespace {

void Require(bool is_true, const char* what) {
  if (is_true) return;
  std::fprintf(stderr, "raw client: %s failed\n", what);
  std::exit(1);
}

int ConnectUnix(absl::string_view path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  Require(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
          "connecting");
  EnlargeSendBuffer(fd);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

std::shared_ptr<grpc::Channel> ChannelTo(const std::string& target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  absl::string_view path = target;
  if (absl::ConsumePrefix(&path, "unix:")) {
    return grpc::CreateCustomInsecureChannelFromFd("raw", ConnectUnix(path), arguments);
  }
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), arguments);
}

constexpr char kExecute[] = "/opserve.v1.OperatorService/Execute";
constexpr char kExecuteStream[] = "/opserve.v1.OperatorService/ExecuteStream";

grpc::ByteBuffer Message(size_t bytes) {
  grpc::Slice slice(bytes);
  std::memset(const_cast<uint8_t*>(slice.begin()), 1, bytes);
  return {&slice, 1};
}

struct OneCall {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer response;
  grpc::Status status;
  absl::Time start;
};

}  // namespace

RawClient::RawClient(const std::string& target) : channel_(ChannelTo(target)), stub_(channel_) {}

Load RawClient::Call(size_t request_bytes, int in_flight, int calls) {
  const grpc::ByteBuffer request = Message(request_bytes);
  std::vector<double> latencies;
  latencies.reserve(calls);
  int started = 0;
  const auto start_one = [&] {
    ++started;
    auto* call = new OneCall;
    call->start = absl::Now();
    call->reader = stub_.PrepareUnaryCall(&call->context, kExecute, request, &queue_);
    call->reader->StartCall();
    call->reader->Finish(&call->response, &call->status, call);
  };
  const absl::Time start = absl::Now();
  for (int i = 0; i < std::min(in_flight, calls); ++i) start_one();
  while (static_cast<int>(latencies.size()) < calls) {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    const std::unique_ptr<OneCall> call(static_cast<OneCall*>(tag));
    Require(call->status.ok() && call->response.Length() == request_bytes / 3, "a call");
    latencies.push_back(absl::ToDoubleMicroseconds(absl::Now() - call->start));
    if (started < calls) start_one();
  }
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start);
  std::nth_element(latencies.begin(), latencies.begin() + calls / 2, latencies.end());
  return {.per_second = calls / seconds, .p50_us = latencies[calls / 2]};
}

Load RawClient::Stream(size_t request_bytes, int window, int messages) {
  const grpc::ByteBuffer request = Message(request_bytes);
  enum Tag : intptr_t { kBegun = 1, kWritten, kRead, kFinished };
  const auto tag_of = [](Tag tag) { return reinterpret_cast<void*>(tag); };
  grpc::ClientContext context;
  const auto stream = stub_.PrepareCall(&context, kExecuteStream, &queue_);
  stream->StartCall(tag_of(kBegun));
  grpc::ByteBuffer response;
  grpc::Status status;
  int sent = 0;
  int answered = 0;
  bool may_write = false;
  bool is_closing = false;
  absl::Time start;
  absl::Time end;
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const auto event = static_cast<Tag>(reinterpret_cast<intptr_t>(tag));
    Require(ok, "a stream");
    if (event == kFinished) break;
    if (event == kBegun) start = absl::Now();
    if (event == kBegun || event == kWritten) may_write = !is_closing;
    if (event == kRead) {
      if (++answered == messages) {
        end = absl::Now();
        stream->Finish(&status, tag_of(kFinished));
        continue;
      }
    }
    if (event == kBegun || event == kRead) stream->Read(&response, tag_of(kRead));
    if (may_write && sent < messages && sent - answered < window) {
      may_write = false;
      ++sent;
      grpc::WriteOptions options;
      if (sent < messages && sent - answered < window) options.set_buffer_hint();
      stream->Write(request, options, tag_of(kWritten));
    } else if (may_write && sent == messages) {
      may_write = false;
      is_closing = true;
      stream->WritesDone(tag_of(kWritten));
    }
  }
  Require(status.ok(), "a stream");
  return {.per_second = messages / absl::ToDoubleSeconds(end - start)};
}

}  // namespace opserve::benchmark
