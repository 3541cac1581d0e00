#include "client/cpp/transport.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cpp/borrow.h"
#include "client/cpp/credentials.h"
#include "client/cpp/deadline.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/socket_buffers.h"
#include "client/cpp/target.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "proto/session/session_frames.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

// Requests go in turn to the daemons that are connected and say that they serve: one that drains or
// dies gets no more.
constexpr char kBalancing[] =
    R"({"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}})";

absl::Status CheckKeepalive(const KeepaliveOptions& options) {
  for (const auto& [name, value] :
       {std::pair("time", options.time), std::pair("timeout", options.timeout)}) {
    if (value >= absl::Milliseconds(1)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "keepalive.", name, " is ", absl::FormatDuration(value), "; expected at least 1ms"));
  }
  return absl::OkStatus();
}

// As gRPC takes it; INT_MAX means never.
int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), INT_MAX));
}

// The timeout is also TCP's limit for bytes that were sent and not acknowledged.
void SetKeepalive(const KeepaliveOptions& options, grpc::ChannelArguments* arguments) {
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(options.time));
  arguments->SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, Milliseconds(options.timeout));
  // However long a call runs: gRPC would ask twice and then no more. (The daemon bears any number.)
  arguments->SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
}

grpc::ChannelArguments ArgumentsFor(const Target& target, const ConnectOptions& options) {
  grpc::ChannelArguments arguments;
  // gRPC's own retries keep a copy of each message and know no request that may not be repeated.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  if (target.is_local) arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // gRPC would wait a second, later up to two minutes, to try a restarted daemon again; attempts
  // made in between fail without having tried.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  SetKeepalive(options.keepalive, &arguments);
  // A connection of its own for each client; gRPC would share one between equal channels.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  if (absl::StartsWith(target.uri, "unix:")) EnlargeUnixSendBuffers(&arguments);
  if (target.is_balanced) arguments.SetServiceConfigJSON(kBalancing);
  if (options.tls && !options.tls->server_name_override.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name_override);
  } else if (!target.authority.empty()) {
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, target.authority);
  }
  return arguments;
}

// gRPC fails calls that have metadata with characters that HTTP/2 does not allow, and a daemon the
// session of a request with a longer one.
bool IsTraceParent(const std::string& text) {
  constexpr char kCharacters[] = "0123456789abcdef-";
  return text.size() <= codec::kMaxTraceParentBytes &&
         text.find_first_not_of(kCharacters) == std::string::npos;
}

// gRPC would otherwise end with its last channel and start anew with the next one: threads are
// joined, and after a broken connection it looks for leaks for ten seconds.
void KeepGrpcRunning() { [[maybe_unused]] static const bool is_running = (grpc_init(), true); }

}  // namespace

CallReach::CallReach(Transport* transport)
    : transport_(transport), was_connected_(transport->IsConnected()) {}

bool CallReach::MayHaveRun() const { return was_connected_ || transport_->IsConnected(); }

void UnaryCall::Start(Transport& transport, const std::string& method,
                      const grpc::ByteBuffer& request, absl::Time deadline,
                      grpc::CompletionQueue* queue, void* tag) {
  reach_.emplace(&transport);
  context_ = transport.NewContext(deadline);
  response_.Clear();
  reader_ = transport.stub().PrepareUnaryCall(context_.get(), method, request, queue);
  reader_->StartCall();
  reader_->Finish(&response_, &status_, tag);
}

absl::Status UnaryCall::Finish(grpc::ByteBuffer* response) {
  absl::Status status = FromGrpcStatus(status_, *context_);
  reader_ = nullptr;
  context_ = nullptr;
  response->Clear();
  if (status.ok()) response->Swap(&response_);
  return status;
}

Transport::Transport(std::string target, const ConnectOptions& options, bool is_balanced,
                     std::shared_ptr<grpc::Channel> channel)
    : target_(std::move(target)),
      traceparent_(options.traceparent),
      authorization_(options.token.empty() ? "" : absl::StrCat("Bearer ", options.token)),
      uses_sessions_(options.session),
      is_balanced_(is_balanced),
      channel_(std::move(channel)),
      stub_(channel_),
      retry_policy_(options.retry) {}

absl::StatusOr<std::unique_ptr<Transport>> Transport::Create(const std::string& target,
                                                             const ConnectOptions& options) {
  OPSERVE_RETURN_IF_ERROR(RetryPolicy::Check(options.retry));
  OPSERVE_RETURN_IF_ERROR(CheckKeepalive(options.keepalive));
  OPSERVE_ASSIGN_OR_RETURN(const Target parsed, ParseTarget(target));
  KeepGrpcRunning();
  OPSERVE_ASSIGN_OR_RETURN(const auto credentials, CredentialsFor(parsed, options));
  std::unique_ptr<Transport> transport(new Transport(
      target, options, parsed.is_balanced,
      grpc::CreateCustomChannel(parsed.uri, credentials, ArgumentsFor(parsed, options))));
  if (options.wait_for_ready) {
    absl::Status status = transport->WaitForConnection(*options.wait_for_ready);
    if (!status.ok()) return status;
  }
  return transport;
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

std::unique_ptr<grpc::ClientContext> Transport::NewSessionContext() const {
  auto context = std::make_unique<grpc::ClientContext>();
  if (!authorization_.empty()) context->AddMetadata("authorization", authorization_);
  return context;
}

std::unique_ptr<grpc::ClientContext> Transport::NewContext(absl::Time deadline) const {
  std::unique_ptr<grpc::ClientContext> context = NewSessionContext();
  context->set_deadline(absl::ToChronoTime(deadline));
  if (const std::string text = TraceParent(); !text.empty()) {
    context->AddMetadata("traceparent", text);
  }
  return context;
}

std::string Transport::TraceParent() const {
  if (!traceparent_) return "";
  std::string text = traceparent_();
  return IsTraceParent(text) ? text : "";
}

absl::Status Transport::Call(const std::string& method, grpc::ByteBuffer* request,
                             absl::Duration timeout, grpc::ByteBuffer* response,
                             const Borrow* borrow) {
  const absl::Time deadline = absl::Now() + timeout;
  QueuePool::Lease lease(&queues_);
  grpc::CompletionQueue& queue = lease.queue();
  UnaryCall call;
  void* tag = nullptr;
  bool ok = false;
  absl::Status status;
  CallAttempts attempts(&retry_policy_);
  for (;;) {
    call.Start(*this, method, *request, deadline, &queue, &call);
    queue.Next(&tag, &ok);
    status = call.Finish(response);
    if (status.ok()) {
      retry_policy_.RecordSuccess();
      break;
    }
    const auto wait = attempts.WaitAfter(deadline - absl::Now(), call.MayHaveRun(), &status);
    if (!wait) break;
    // No event comes; but gRPC uses this thread to finish its writes.
    queue.AsyncNext(&tag, &ok, DeadlineAfter(*wait));
  }
  request->Clear();
  if (borrow != nullptr) WaitUntilReleased(*borrow, &queue);
  return status;
}

}  // namespace opserve
