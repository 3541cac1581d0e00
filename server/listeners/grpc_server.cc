#include "server/listeners/grpc_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "ops/catalog/descriptor_proto.h"
#include "proto/status/status_macros.h"
#include "server/grpc/compression.h"
#include "server/grpc/poll_probe.h"
#include "server/grpc/unknown_method_call.h"
#include "server/native/download_call.h"
#include "server/native/execute_call.h"
#include "server/native/execute_stream_call.h"
#include "server/native/program_calls.h"
#include "server/native/upload_call.h"
#include "server/net/connection_limits.h"
#include "server/net/listener.h"
#include "server/net/socket_functions.h"
#include "server/program/random_bytes.h"
#include "server/schedule/lanes/visitor.h"
#include "server/session/session_call.h"

namespace opserve::server {
namespace {

// Calls of each kind that wait to be matched with an arriving one. gRPC holds back a call that
// finds none waiting, so a few save it the detour under load.
constexpr int kListeningCalls = 16;

// Room in a message beside a chunk's bytes.
constexpr uint64_t kChunkHeaderBytes = 64 << 10;

// For the answers to calls that come while the server ends, and for clients to take them.
constexpr absl::Duration kLastAnswersTimeout = absl::Seconds(1);

// As gRPC takes it.
int Milliseconds(absl::Duration duration) {
  return static_cast<int>(std::min<int64_t>(absl::ToInt64Milliseconds(duration), INT32_MAX));
}

// The limits of a connection, as gRPC's channel arguments.
void SetConnectionLimits(const Config& config, grpc::ServerBuilder* builder) {
  // gRPC looks at a message's size when all of it is there, and then answers RESOURCE_EXHAUSTED,
  // which says "try again", without trailers. So the calls look at it themselves
  // (CheckMessageBytes), as late; memory is bounded by the quota in either case. Results that would
  // make an answer too large are refused before they are computed (CheckResponseFits). Without
  // either limit calls go through one filter less.
  builder->SetMaxReceiveMessageSize(-1);
  builder->SetMaxSendMessageSize(-1);
  RefuseCompression(builder);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                              static_cast<int>(config.max_streams_per_connection));
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // gRPC would set a timer for each call, which cancels it. The daemon keeps the deadlines of
  // requests itself, as it must in sessions, and a client cancels what it waits for no longer.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_DEADLINE_CHECKS, 0);
  // Counts of gRPC's own for a service that the daemon does not have.
  builder->AddChannelArgument(GRPC_ARG_ENABLE_CHANNELZ, 0);
  // Pings are answered, however many: gRPC 1.51 spends tens of MiB on closing a connection because
  // of many of them (tests/integration/flood_test.cc), while unsent answers are bounded.
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, Milliseconds(config.keepalive_time));
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS,
                              Milliseconds(config.keepalive_timeout));
  builder->AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, 20'000);
  // gRPC varies the age by 10 %, so that connections made together do not end together.
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS,
                              Milliseconds(config.max_connection_age));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS,
                              Milliseconds(config.max_connection_age_grace));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS,
                              Milliseconds(config.max_connection_idle));
  grpc::ResourceQuota quota("opserved");
  quota.Resize(config.grpc_memory_quota_bytes);
  builder->SetResourceQuota(quota);
}

// The bounds on each connection.
ConnectionLedger::Options LedgerOptions(const Config& config) {
  // Accounts hold so many seconds of their rates. A client may cancel all its calls at once.
  constexpr double kControlSeconds = 10;
  constexpr double kResetSeconds = 20;
  // Calls that a client begins at once wait for their identification together. An identified client
  // may cancel all it has and begin as many, and its calls may fail.
  constexpr double kLeastStreamBurst = 128;
  constexpr double kIdentifiedStreams = 8;
  constexpr double kIdentifiedStreamRate = 10;
  // A message above the limit is refused when all of it is there. A client that makes this mistake
  // in its first call is to learn of it, so the bound is above the limit.
  constexpr uint64_t kLeastUnidentifiedBytes = 64 << 20;
  ConnectionLedger::Options options;
  options.has_tls = config.tls.has_value();
  Http2Limits& limits = options.limits;
  limits.stream_burst = std::max<double>(kLeastStreamBurst, config.max_streams_per_connection);
  limits.identified_stream_burst = kIdentifiedStreams * limits.stream_burst;
  limits.streams_per_second = config.unidentified_calls_per_second;
  limits.identified_streams_per_second = kIdentifiedStreamRate * limits.streams_per_second;
  limits.resets_per_second = config.stream_resets_per_second;
  limits.identified_reset_burst = kResetSeconds * limits.resets_per_second;
  limits.control_per_second = config.control_frames_per_second;
  limits.control_burst = kControlSeconds * limits.control_per_second;
  limits.identified_control_burst = limits.control_burst;
  limits.unidentified_bytes =
      static_cast<double>(std::max(kLeastUnidentifiedBytes, 2 * config.max_message_bytes));
  return options;
}

}  // namespace

// Measured with echo servers: one polling thread per queue; two threads on one queue reach two
// thirds of its rate. A queue per four cores leaves the others to the devices' threads.
uint32_t GrpcServer::NumPollers() {
  return std::clamp<uint32_t>(std::thread::hardware_concurrency() / 4, 1, 8);
}

absl::StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::Start(const Config& config,
                                                              std::vector<Listener> listeners,
                                                              Parts parts) {
  auto server = std::unique_ptr<GrpcServer>(new GrpcServer(config, std::move(parts)));
  OPSERVE_RETURN_IF_ERROR(server->Listen(config, std::move(listeners)));
  return server;
}

GrpcServer::GrpcServer(const Config& config, Parts parts)
    : parts_(std::move(parts)),
      ledger_(LedgerOptions(config)),
      authenticator_(*parts_.tenants, *parts_.peers, *parts_.requests.metrics, ledger_),
      calls_(config.max_message_bytes, config.max_header_bytes, config.write_stall_timeout),
      health_(calls_, authenticator_, ledger_, config.max_anonymous_streams),
      idempotency_({.max_bytes = config.idempotency_cache_bytes}),
      statistics_(parts_.requests.operators->operators().size()),
      inference_({.operators = *parts_.requests.operators,
                  .statistics = statistics_,
                  .scheduler = *parts_.requests.scheduler,
                  .metrics = *parts_.requests.metrics,
                  .authenticator = authenticator_,
                  .calls = calls_,
                  .is_serving = [this] { return health_.is_serving(); },
                  .named_regions = parts_.named_regions},
                 execute_),
      acceptor_({.limits = ConnectionLimits(config, config.listen.size()),
                 .stall_timeout = config.write_stall_timeout},
                ledger_) {
  execute_.service = &operator_service_;
  execute_.calls = &calls_;
  static_cast<RequestParts&>(execute_) = parts_.requests;
  execute_.idempotency = &idempotency_;
  execute_.statistics = &statistics_;
  execute_.authenticator = &authenticator_;
  execute_.limits.max_tensor_bytes = config.max_tensor_bytes;
  execute_.limits.max_program_bytes = config.max_request_bytes;
  execute_.limits.max_output_ratio = config.max_output_ratio;
  execute_.limits.max_work = config.max_request_work;
  // A request is allowed at least the work of a single invocation.
  execute_.limits.max_program_work = std::min(
      std::max(config.max_program_work, config.max_request_work), config.queue_work_per_tenant);
  execute_.limits.max_invocations = config.max_invocations;
  execute_.max_response_bytes = config.max_message_bytes;
  execute_.default_deadline = config.default_deadline;
  execute_.max_deadline = config.max_deadline;
  execute_.upload_stall_timeout = config.upload_stall_timeout;
  execute_.upload_min_bytes_per_second = config.upload_min_bytes_per_second;
  execute_.stream_window = config.stream_window;
  execute_.run = absl::BytesToHexString(RandomBytes(8));
  execute_.sessions = &sessions_;
  // Most of the grace, so that requests that have begun may end in the rest of it.
  execute_.longest_session =
      0.8 * std::min(config.max_connection_age, config.max_connection_age_grace);
  tensors_.service = &tensor_service_;
  tensors_.calls = &calls_;
  tensors_.scheduler = parts_.requests.scheduler;
  tensors_.residents = parts_.requests.residents;
  tensors_.metrics = parts_.requests.metrics;
  tensors_.authenticator = &authenticator_;
  tensors_.max_tensor_bytes = config.max_tensor_bytes;
  tensors_.max_chunk_bytes = config.max_message_bytes - kChunkHeaderBytes;
  tensors_.max_deadline = config.max_deadline;
  tensors_.upload_stall_timeout = config.upload_stall_timeout;
  tensors_.upload_min_bytes_per_second = config.upload_min_bytes_per_second;
  tensors_.transfers = &transfers_;
  tensors_.is_draining = &execute_.is_draining;
  tensors_.moved_to = &execute_.moved_to;
  tensors_.in_flight = &execute_.in_flight;
  deposits_.service = &peer_service_;
  deposits_.tensors = &tensors_;
  deposits_.tenants = parts_.tenants;
  deposits_.metrics = parts_.deposits;
  deposits_.execute = &execute_;
  deposits_.calls = &deposit_calls_;
  deposits_.end_alarms = &execute_.end_alarms;
  deposits_.is_leaving = &execute_.is_leaving;
  DescribeUnaryMethods();
}

// `receive` asks gRPC for the next call of a method, and `answer` serves one. Both run on polling
// threads, so an answer must not block.
void GrpcServer::DescribeUnaryMethods() {
  list_operators_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue, void* tag) {
    operator_service_.RequestListOperators(rpc, request, writer, queue, queue, tag);
  };
  list_operators_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return ListOperators(caller.tenant, request, response);
  };
  get_server_status_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue,
                                      void* tag) {
    operator_service_.RequestGetServerStatus(rpc, request, writer, queue, queue, tag);
  };
  get_server_status_.answer = [this](const Caller& caller, const auto& /*request*/,
                                     auto* response) {
    *response = parts_.status();
    // The status so far is the same for everybody; these parts are the caller's own.
    const ResidentTensors::Usage residents =
        parts_.requests.residents->UsageOfTenant(caller.tenant.id());
    response->set_resident_tensors(residents.tensors);
    response->set_resident_bytes(residents.bytes);
    const PreparedPrograms::Usage prepared =
        parts_.requests.prepared->UsageOfTenant(caller.tenant.id());
    response->set_sessions(static_cast<uint32_t>(sessions_.open()));
    response->set_arriving_requests(static_cast<uint32_t>(sessions_.arriving()));
    response->set_departing_requests(static_cast<uint32_t>(sessions_.departing()));
    response->set_prepared_programs(prepared.handles);
    response->set_prepared_bytes(prepared.bytes);
    return absl::OkStatus();
  };
  prepare_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue, void* tag) {
    operator_service_.RequestPrepare(rpc, request, writer, queue, queue, tag);
  };
  prepare_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return Prepare(execute_, caller.tenant, request, response);
  };
  release_programs_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue,
                                     void* tag) {
    operator_service_.RequestReleasePrograms(rpc, request, writer, queue, queue, tag);
  };
  release_programs_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return ReleasePrograms(execute_, caller.tenant, request, response);
  };
  prepare_.authenticator = &authenticator_;
  release_programs_.authenticator = &authenticator_;
  renew_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue, void* tag) {
    tensor_service_.RequestRenew(rpc, request, writer, queue, queue, tag);
  };
  renew_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return Renew(tensors_, caller.tenant, request, response);
  };
  release_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue, void* tag) {
    tensor_service_.RequestRelease(rpc, request, writer, queue, queue, tag);
  };
  release_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return Release(tensors_, caller.tenant, request, response);
  };
  list_tensors_.receive = [this](auto* rpc, auto* request, auto* writer, auto* queue, void* tag) {
    tensor_service_.RequestList(rpc, request, writer, queue, queue, tag);
  };
  list_tensors_.answer = [this](const Caller& caller, const auto& request, auto* response) {
    return List(tensors_, caller.tenant, request, response);
  };
  list_tensors_.authenticator = &authenticator_;
  list_operators_.authenticator = &authenticator_;
  get_server_status_.authenticator = &authenticator_;
  renew_.authenticator = &authenticator_;
  release_.authenticator = &authenticator_;
}

absl::Status GrpcServer::Listen(const Config& config, std::vector<Listener> listeners) {
  OPSERVE_RETURN_IF_ERROR(CheckSocketFunctions());
  // The daemon has its own (health_service.h).
  grpc::EnableDefaultHealthCheckService(false);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetConnectionLimits(config, &builder);
  builder.RegisterService(&operator_service_);
  builder.RegisterService(&tensor_service_);
  builder.RegisterService(&peer_service_);
  builder.RegisterService(&inference_.service());
  builder.RegisterService(&health_.service());
  // Takes the calls of methods that no service has.
  builder.RegisterAsyncGenericService(&unknown_methods_);
  for (Listener& listener : listeners) {
    addresses_.push_back(listener.address().ToString());
    auto gate = GateFor(listener.address(), &builder);
    acceptor_.Add(std::move(listener), std::move(gate));
  }
  for (uint32_t i = 0; i < NumPollers(); ++i) {
    queues_.push_back(builder.AddCompletionQueue());
    // A cache for each polling thread, so that none waits for another.
    execute_.known_requests.push_back(std::make_unique<KnownRequests>(known_requests_));
    inference_.AddPoller(known_requests_);
  }
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start");
  for (const auto& queue : queues_) {
    ListenForCalls(queue.get());
    pollers_.emplace_back([this, queue = queue.get(), number = pollers_.size()] {
      const Visitor visitor(static_cast<uint32_t>(number));
      Poll(queue);
    });
  }
  // Last: a connection that is accepted needs all of the above.
  return acceptor_.Start();
}

std::unique_ptr<ConnectionGate> GrpcServer::GateFor(const ListenAddress& address,
                                                    grpc::ServerBuilder* builder) const {
  if (address.is_unix) {
    return std::make_unique<UserGate>(
        [this](SharedUid uid) { return authenticator_.ForClients(std::move(uid)); },
        [this](uint32_t uid) { return parts_.tenants->HasUid(uid) || parts_.peers->HasUid(uid); },
        builder);
  }
  std::shared_ptr<grpc::ServerCredentials> credentials;
  if (parts_.tls == nullptr && !address.is_local()) {
    credentials = grpc::InsecureServerCredentials();  // which take no processor
  } else {
    credentials = parts_.tls != nullptr ? parts_.tls->Credentials()
                                        : grpc::experimental::LocalServerCredentials(LOCAL_TCP);
    credentials->SetAuthMetadataProcessor(authenticator_.ForClients(nullptr));
  }
  return std::make_unique<CommonGate>(credentials, builder);
}

void GrpcServer::ListenForCalls(grpc::ServerCompletionQueue* queue) {
  for (int i = 0; i < kListeningCalls; ++i) {
    ExecuteCall::Listen(execute_, queue);
    inference_.ListenForInference(queue);
  }
  ExecuteStreamCall::Listen(execute_, queue);
  SessionCall::Listen(execute_, queue);
  inference_.Listen(queue);
  UploadCall::Listen(tensors_, queue);
  DownloadCall::Listen(tensors_, queue);
  DepositCall::Listen(deposits_, queue);
  health_.Listen(queue);
  UnknownMethodCall::Listen(unknown_methods_, calls_, queue);
  UnaryCall<v1::RenewRequest, v1::RenewResponse>::Listen(renew_, calls_, queue);
  UnaryCall<v1::ReleaseRequest, v1::ReleaseResponse>::Listen(release_, calls_, queue);
  UnaryCall<v1::ListRequest, v1::ListResponse>::Listen(list_tensors_, calls_, queue);
  UnaryCall<v1::ListOperatorsRequest, v1::ListOperatorsResponse>::Listen(list_operators_, calls_,
                                                                         queue);
  UnaryCall<v1::PrepareRequest, v1::PrepareResponse>::Listen(prepare_, calls_, queue);
  UnaryCall<v1::ReleaseProgramsRequest, v1::ReleaseProgramsResponse>::Listen(release_programs_,
                                                                             calls_, queue);
  UnaryCall<v1::GetServerStatusRequest, v1::GetServerStatusResponse>::Listen(get_server_status_,
                                                                             calls_, queue);
}

GrpcServer::~GrpcServer() {
  if (server_ != nullptr) EndService();
  // Calls make no successors from here on. A queue may be shut down only when nothing new is
  // started on it, so the last call object must be gone first.
  calls_.accepts_more.store(false, std::memory_order_release);
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  calls_.alive.AwaitNone(absl::InfiniteDuration());
  for (const auto& queue : queues_) queue->Shutdown();
  for (std::thread& poller : pollers_) poller.join();
}

// gRPC's own shutdown answers CANCELLED to every call that has not been handed to us: a call that
// came at that moment, one that waits to be matched, one whose message is still on its way. A
// client takes that for its own doing. So every arrived call is answered first, while calls are
// still matched, and then the connections are ended by us: no later answer of gRPC reaches a
// client, and a call that is still on its way fails as it does when a server is gone, with
// UNAVAILABLE.
void GrpcServer::EndService() {
  RefuseNewCalls();
  execute_.end_alarms.RingAll();
  health_.EndWatches();
  acceptor_.Stop();
  const absl::Time deadline = absl::Now() + kLastAnswersTimeout;
  calls_.open.AwaitNone(kLastAnswersTimeout);
  // A client that finds its connection broken when it writes may not look for answers to read.
  acceptor_.AwaitTaken(deadline);
  acceptor_.EndConnections();
}

void GrpcServer::Poll(grpc::ServerCompletionQueue* queue) {
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) static_cast<CompletionEvent*>(tag)->Complete(ok);
}

bool GrpcServer::IsPolling(absl::Duration timeout) const {
  // A probe goes through each queue, and its thread counts it down.
  const auto unanswered = std::make_shared<CallCounter>();
  for (const auto& queue : queues_) PollProbe::Send(queue.get(), unanswered);
  return unanswered->AwaitNone(timeout) == 0;
}

void GrpcServer::BeginLeaving() {
  SetServing(false);
  execute_.is_leaving.store(true, std::memory_order_release);
  execute_.end_alarms.RingEarly();
}

void GrpcServer::RefuseNewCalls() { execute_.is_draining.store(true); }

absl::Status GrpcServer::ListOperators(const Tenant& tenant,
                                       const v1::ListOperatorsRequest& request,
                                       v1::ListOperatorsResponse* response) const {
  const auto add = [this, &tenant, response](const LoadedOperator& op) {
    v1::OperatorDescriptor* descriptor = response->add_operators();
    *descriptor = catalog::ToProto(*op.descriptor);
    descriptor->set_pack(op.pack);
    descriptor->set_available(parts_.requests.scheduler->IsOffered(op));
    // Listed all the same, so that a client can tell a prohibition from a lack.
    descriptor->set_forbidden(!tenant.CheckMayCall(op.descriptor->name).ok());
  };
  for (const std::string& name : request.names()) {
    const LoadedOperator* op = parts_.requests.operators->Find(name);
    if (op == nullptr) return absl::NotFoundError(absl::StrCat("no operator \"", name, "\""));
    add(*op);
  }
  if (request.names().empty()) {
    for (const LoadedOperator& op : parts_.requests.operators->operators()) add(op);
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
