#include "tests/benchmark/raw_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <unordered_map>

#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/server_posix.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/benchmark/socket_buffers.h"

namespace opserve::benchmark {
namespace {

using Service = v1::OperatorService::WithRawMethod_Execute<
    v1::OperatorService::WithRawMethod_ExecuteStream<v1::OperatorService::Service>>;

// What an event of the queue calls.
class Event {
 public:
  virtual ~Event() = default;
  virtual void Happen(bool ok) = 0;
};

// Answers by their size, so that their memory is there already.
const grpc::ByteBuffer& AnswerTo(const grpc::ByteBuffer& request) {
  static auto& answers = *new std::unordered_map<size_t, grpc::ByteBuffer>;
  const size_t bytes = request.Length() / 3;
  const auto [at, is_new] = answers.try_emplace(bytes);
  if (is_new) {
    grpc::Slice slice(bytes);
    std::memset(const_cast<uint8_t*>(slice.begin()), 1, bytes);
    at->second = grpc::ByteBuffer(&slice, 1);
  }
  return at->second;
}

class UnaryCall final : public Event {
 public:
  UnaryCall(Service* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service->RequestExecute(&context_, &request_, &writer_, queue, queue, this);
  }

  void Happen(bool ok) override {
    if (!ok || is_answered_) return delete this;
    is_answered_ = true;
    new UnaryCall(service_, queue_);
    writer_.Finish(AnswerTo(request_), grpc::Status::OK, this);
  }

 private:
  Service* service_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_;
  bool is_answered_ = false;
};

// Reads on while it writes.
class StreamCall final : public Event {
 public:
  StreamCall(Service* service, grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), stream_(&context_) {
    service->RequestExecuteStream(&context_, &stream_, queue, queue, this);
  }

  // The call has begun, or ended.
  void Happen(bool ok) override {
    if (!ok || is_finishing_) return delete this;
    new StreamCall(service_, queue_);
    stream_.Read(&request_, &read_);
  }

 private:
  struct Read final : Event {
    explicit Read(StreamCall* call) : call(call) {}
    void Happen(bool ok) override { call->OnRead(ok); }
    StreamCall* call;
  };
  struct Written final : Event {
    explicit Written(StreamCall* call) : call(call) {}
    void Happen(bool ok) override { call->OnWritten(ok); }
    StreamCall* call;
  };

  void OnRead(bool ok) {
    if (ok) {
      ++unanswered_;
      answer_ = AnswerTo(request_);
      stream_.Read(&request_, &read_);
    } else {
      has_read_all_ = true;
    }
    WriteNext();
  }

  void OnWritten(bool ok) {
    is_writing_ = false;
    if (!ok) unanswered_ = 0;
    WriteNext();
  }

  void WriteNext() {
    if (is_writing_) return;
    if (unanswered_ > 0) {
      --unanswered_;
      is_writing_ = true;
      grpc::WriteOptions options;
      if (unanswered_ > 0) options.set_buffer_hint();
      stream_.Write(answer_, options, &written_);
    } else if (has_read_all_) {
      is_finishing_ = true;
      stream_.Finish(grpc::Status::OK, this);
    }
  }

  Service* service_;
  grpc::ServerCompletionQueue* queue_;
  grpc::ServerContext context_;
  grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer> stream_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer answer_;
  uint64_t unanswered_ = 0;
  bool is_writing_ = false;
  bool has_read_all_ = false;
  bool is_finishing_ = false;
  Read read_{this};
  Written written_{this};
};

int Listen(const sockaddr* address, socklen_t bytes) {
  const int listener = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (bind(listener, address, bytes) != 0 || listen(listener, 64) != 0) {
    std::perror("raw server");
    std::exit(1);
  }
  return listener;
}

int ListenUnix(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  return Listen(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

int ListenTcp(int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return Listen(reinterpret_cast<const sockaddr*>(&address), sizeof(address));
}

void Accept(int listener, bool is_unix, grpc::Server* server) {
  int fd = -1;
  while ((fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
    const int on = 1;
    if (is_unix) {
      EnlargeSendBuffer(fd);
    } else {
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    }
    grpc::AddInsecureChannelFromFd(server, fd);
  }
}

}  // namespace

void ServeRaw(const std::string& unix_path, int tcp_port) {
  Service service;
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  for (int i = 0; i < 64; ++i) new UnaryCall(&service, queue.get());
  new StreamCall(&service, queue.get());
  std::thread(Accept, ListenTcp(tcp_port), false, server.get()).detach();
  std::thread(Accept, ListenUnix(unix_path), true, server.get()).detach();
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<Event*>(tag)->Happen(ok);
  std::exit(0);
}

}  // namespace opserve::benchmark
