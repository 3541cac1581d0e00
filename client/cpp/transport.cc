#include "client/cpp/transport.h"

#include <sys/un.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/cpp/borrow.h"
#include "client/cpp/deadline.h"
#include "client/cpp/grpc_status.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/support/channel_arguments.h"

namespace opserve {
namespace {

absl::Status CheckTarget(absl::string_view target) {
  absl::string_view rest = target;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (rest.empty() || rest == "//") {
      return absl::InvalidArgumentError(absl::StrCat("target \"", target, "\": no socket path"));
    }
    absl::ConsumePrefix(&rest, "//");
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) {
      return absl::InvalidArgumentError(
          absl::StrCat("target \"", target, "\": a socket's path can have ",
                       sizeof(sockaddr_un::sun_path) - 1, " bytes, this has ", rest.size()));
    }
    return absl::OkStatus();
  }
  const size_t colon = target.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(target.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat("target \"", target, "\" is neither unix:PATH nor HOST:PORT"));
  }
  return absl::OkStatus();
}

bool IsLocal(absl::string_view target) {
  return absl::StartsWith(target, "unix:") || absl::StartsWith(target, "localhost:") ||
         absl::StartsWith(target, "127.") || absl::StartsWith(target, "[::1]:");
}

grpc::ChannelArguments ChannelArgumentsFor(absl::string_view target) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES,
                   0);  // keeping messages for a retry costs more than it gives
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  if (IsLocal(target)) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC would wait up to two minutes to try a restarted daemon again.
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  // A connection of its own for each client; gRPC would share one between equal channels.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// gRPC would otherwise end with its last channel and start anew with the next one: threads are
// joined, and after a broken connection it looks for leaks for ten seconds.
void KeepGrpcRunning() { [[maybe_unused]] static const bool is_running = (grpc_init(), true); }

}  // namespace

void UnaryCall::Start(grpc::GenericStub& stub, const std::string& method, grpc::ByteBuffer* request,
                      absl::Duration timeout, grpc::CompletionQueue* queue, void* tag) {
  context_ = std::make_unique<grpc::ClientContext>();
  context_->set_deadline(DeadlineAfter(timeout));
  reader_ = stub.PrepareUnaryCall(context_.get(), method, *request, queue);
  reader_->StartCall();
  reader_->Finish(&response_, &status_, tag);
  request->Clear();  // gRPC has its own references
}

absl::Status UnaryCall::Finish(grpc::ByteBuffer* response) {
  absl::Status status = FromGrpcStatus(status_, *context_);
  reader_ = nullptr;
  context_ = nullptr;
  response->Clear();
  if (status.ok()) response->Swap(&response_);
  return status;
}

Transport::Transport(std::string target, std::shared_ptr<grpc::Channel> channel)
    : target_(std::move(target)), channel_(std::move(channel)), stub_(channel_) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::Create(const std::string& target) {
  if (absl::Status status = CheckTarget(target); !status.ok()) return status;
  KeepGrpcRunning();
  return std::unique_ptr<Transport>(
      new Transport(target, grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                                      ChannelArgumentsFor(target))));
}

// gRPC 1.51 never closes the socket of a channel that is destroyed between the connection and the
// daemon's first frame; a program that makes and drops clients would run out of descriptors.
Transport::~Transport() {
  const auto deadline = DeadlineAfter(kSettleTime);
  while (channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_CONNECTING &&
         channel_->WaitForStateChange(GRPC_CHANNEL_CONNECTING, deadline)) {
  }
}

absl::Status Transport::WaitForConnection(absl::Duration timeout) {
  if (channel_->WaitForConnected(DeadlineAfter(timeout))) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("no connection to ", target_, " within ", absl::FormatDuration(timeout)));
}

bool Transport::IsConnected() {
  return channel_->GetState(/*try_to_connect=*/false) == GRPC_CHANNEL_READY;
}

absl::Status Transport::Call(const std::string& method, grpc::ByteBuffer* request,
                             absl::Duration timeout, grpc::ByteBuffer* response,
                             const Borrow* borrow) {
  QueuePool::Lease lease(&queues_);
  UnaryCall call;
  void* tag = nullptr;
  bool ok = false;
  call.Start(stub_, method, request, timeout, &lease.queue(), &call);
  lease.queue().Next(&tag, &ok);
  absl::Status status = call.Finish(response);
  if (borrow != nullptr) WaitUntilReleased(*borrow, &lease.queue());
  return status;
}

}  // namespace opserve
