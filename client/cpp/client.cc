#include "client/cpp/client.h"

#include <unistd.h>

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cpp/async_calls.h"
#include "client/cpp/given_up_programs.h"
#include "client/cpp/message.h"
#include "client/cpp/time_message.h"
#include "client/cpp/transfer.h"
#include "client/cpp/transport.h"
#include "google/protobuf/message_lite.h"
#include "opserve/v1/tensor_service.pb.h"
#include "proto/codec/payload_message.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr char kListOperators[] = "/opserve.v1.OperatorService/ListOperators";
constexpr char kGetServerStatus[] = "/opserve.v1.OperatorService/GetServerStatus";
constexpr char kReleasePrograms[] = "/opserve.v1.OperatorService/ReleasePrograms";
constexpr char kRenew[] = "/opserve.v1.TensorService/Renew";
constexpr char kRelease[] = "/opserve.v1.TensorService/Release";
constexpr char kListTensors[] = "/opserve.v1.TensorService/List";

TensorInfo ToTensorInfo(const v1::TensorSummary& summary, absl::Time now) {
  TensorInfo listed{.tensor = {.handle = summary.handle(),
                               .dtype = summary.dtype(),
                               .shape = {summary.shape().begin(), summary.shape().end()},
                               .lease_end = DecodeTime(summary.lease_end()),
                               .device = summary.device()},
                    .num_bytes = summary.bytes(),
                    .age = now - DecodeTime(summary.creation_time())};
  listed.lease_left = listed.tensor.lease_end - now;
  return listed;
}

// A call with messages that have no payloads.
absl::Status CallWithoutPayloads(Transport& transport, const char* method,
                                 const google::protobuf::MessageLite& request,
                                 absl::Duration timeout, google::protobuf::MessageLite* response) {
  grpc::ByteBuffer sent = codec::BuildPayloadMessage(request, {});
  grpc::ByteBuffer received;
  absl::Status status = transport.Call(method, &sent, timeout, &received);
  return status.ok() ? DecodeMessage(received, response) : status;
}

}  // namespace

Client::Client(std::unique_ptr<Transport> transport)
    : transport_(std::move(transport)),
      given_up_programs_(std::make_shared<GivenUpPrograms>()),
      calls_(std::make_shared<AsyncCalls>(transport_.get())) {}

Client::~Client() = default;

std::string Client::DefaultTarget() {
  const char* target = std::getenv("OPSERVE_TARGET");
  if (target != nullptr && *target != '\0') return target;
  const char* runtime_dir = std::getenv("XDG_RUNTIME_DIR");
  if (runtime_dir != nullptr && *runtime_dir != '\0') {
    return absl::StrCat("unix:", runtime_dir, "/opserve/opserve.sock");
  }
  return absl::StrCat("unix:/tmp/opserve-", getuid(), "/opserve.sock");
}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& target,
                                                        const ConnectOptions& options) {
  OPSERVE_ASSIGN_OR_RETURN(std::unique_ptr<Transport> transport,
                           Transport::Create(target, options));
  return std::unique_ptr<Client>(new Client(std::move(transport)));
}

absl::StatusOr<Response> Client::Execute(const Request& request) {
  // Not copied: a copy of its buffer would hold the slices, and Call awaits their return.
  absl::StatusOr<EncodedRequest> encoded = EncodeRequest(request, &transport_->request_numbers());
  if (!encoded.ok()) return encoded.status();
  grpc::ByteBuffer response;
  OPSERVE_RETURN_IF_ERROR(
      CallExecute(*transport_, calls_.get(), &*encoded, request.timeout, &response));
  return DecodeResponse(response);
}

absl::StatusOr<Response> Client::Execute(const v1::ExecuteRequest& request,
                                         const std::vector<Tensor>& payloads,
                                         absl::Duration timeout) {
  const bool needs_identity = NeedsIdentity(request);
  v1::ExecuteRequest identified;
  RequestNumbers::Ticket number;
  if (needs_identity) {
    identified = request;
    number = transport_->request_numbers().Take(identified.mutable_identity());
  }
  absl::StatusOr<EncodedRequest> encoded =
      EncodeMessage(needs_identity ? identified : request, payloads);
  if (!encoded.ok()) return encoded.status();
  grpc::ByteBuffer response;
  OPSERVE_RETURN_IF_ERROR(CallExecute(*transport_, calls_.get(), &*encoded, timeout, &response));
  return DecodeResponse(response);
}

absl::StatusOr<Response> Client::Execute(Invocation invocation) {
  Request request;
  request.invocations.push_back(std::move(invocation));
  return Execute(request);
}

CallHandle Client::ExecuteAsync(const Request& request, Callback callback) {
  absl::StatusOr<EncodedRequest> encoded = EncodeRequest(request, &transport_->request_numbers());
  if (!encoded.ok()) {
    std::move(callback)(encoded.status());
    return CallHandle();
  }
  auto done = [callback = std::move(callback)](const absl::Status& status,
                                               const grpc::ByteBuffer& response) mutable {
    std::move(callback)(status.ok() ? DecodeResponse(response) : status);
  };
  return CallHandle(calls_->Start(&*encoded, request.timeout, std::move(done)));
}

std::future<absl::StatusOr<Response>> Client::ExecuteAsync(const Request& request) {
  std::promise<absl::StatusOr<Response>> promise;
  std::future<absl::StatusOr<Response>> future = promise.get_future();
  ExecuteAsync(request, [promise = std::move(promise)](absl::StatusOr<Response> response) mutable {
    promise.set_value(std::move(response));
  });
  return future;
}

absl::StatusOr<PreparedProgram> Client::Prepare(const Request& request) {
  ReleaseGivenUpPrograms();
  return PreparedProgram::Make(transport_, calls_, given_up_programs_, request);
}

PreparedProgram Client::Prepare(v1::PrepareRequest program) {
  ReleaseGivenUpPrograms();
  return PreparedProgram::Make(transport_, calls_, given_up_programs_, std::move(program));
}

void Client::ReleaseGivenUpPrograms() {
  const std::vector<std::string> handles = given_up_programs_->Take();
  if (handles.empty()) return;
  v1::ReleaseProgramsRequest request;
  request.mutable_handles()->Add(handles.begin(), handles.end());
  v1::ReleaseProgramsResponse response;
  // If it fails, the daemon forgets them at the end of their leases.
  CallWithoutPayloads(*transport_, kReleasePrograms, request, kDefaultTimeout, &response)
      .IgnoreError();
}

absl::StatusOr<std::unique_ptr<ExecuteStream>> Client::OpenStream(const StreamOptions& options) {
  if (options.window < 1) return absl::InvalidArgumentError("a stream's window of 0 requests");
  return std::make_unique<ExecuteStream>(transport_, calls_, options);
}

absl::StatusOr<ResidentTensor> Client::Upload(const Tensor& tensor, const UploadOptions& options) {
  return UploadTensor(*transport_, tensor, options);
}

absl::StatusOr<Result> Client::Download(const std::string& handle, const DownloadOptions& options) {
  OPSERVE_ASSIGN_OR_RETURN(std::vector<SnapshotTensor> tensors,
                           DownloadTensors(*transport_, {handle}, options));
  return std::move(tensors.front().tensor);
}

absl::StatusOr<std::vector<SnapshotTensor>> Client::Snapshot(
    const std::vector<std::string>& handles, const DownloadOptions& options) {
  return DownloadTensors(*transport_, handles, options);
}

absl::StatusOr<std::vector<absl::Time>> Client::Renew(const std::vector<std::string>& handles,
                                                      absl::Duration lease,
                                                      absl::Duration timeout) {
  v1::RenewRequest request;
  request.mutable_handles()->Add(handles.begin(), handles.end());
  EncodeDuration(lease, request.mutable_lease());
  v1::RenewResponse response;
  absl::Status status = CallWithoutPayloads(*transport_, kRenew, request, timeout, &response);
  if (!status.ok()) return status;
  if (static_cast<size_t>(response.lease_ends_size()) != handles.size()) {
    return BadAnswer(
        absl::StrCat(response.lease_ends_size(), " leases for ", handles.size(), " tensors"));
  }
  std::vector<absl::Time> lease_ends;
  for (const auto& lease_end : response.lease_ends()) lease_ends.push_back(DecodeTime(lease_end));
  return lease_ends;
}

absl::StatusOr<uint32_t> Client::Release(const std::vector<std::string>& handles,
                                         absl::Duration timeout) {
  v1::ReleaseRequest request;
  request.mutable_handles()->Add(handles.begin(), handles.end());
  v1::ReleaseResponse response;
  absl::Status status = CallWithoutPayloads(*transport_, kRelease, request, timeout, &response);
  if (!status.ok()) return status;
  return response.released();
}

absl::StatusOr<std::vector<TensorInfo>> Client::ListTensors(absl::Duration timeout) {
  const absl::Time deadline = absl::Now() + timeout;
  std::vector<TensorInfo> tensors;
  v1::ListRequest request;
  v1::ListResponse response;
  do {
    absl::Status status =
        CallWithoutPayloads(*transport_, kListTensors, request, deadline - absl::Now(), &response);
    if (!status.ok()) return status;
    for (const v1::TensorSummary& summary : response.tensors()) {
      if (summary.handle() <= request.after()) return BadAnswer("tensors out of their order");
      request.set_after(summary.handle());
      tensors.push_back(ToTensorInfo(summary, DecodeTime(response.time())));
    }
    if (response.has_more() && response.tensors().empty())
      return BadAnswer("a part without tensors");
  } while (response.has_more());
  return tensors;
}

absl::StatusOr<std::vector<v1::OperatorDescriptor>> Client::ListOperators(
    const std::vector<std::string>& names, absl::Duration timeout) {
  v1::ListOperatorsRequest request;
  request.mutable_names()->Add(names.begin(), names.end());
  v1::ListOperatorsResponse response;
  absl::Status status =
      CallWithoutPayloads(*transport_, kListOperators, request, timeout, &response);
  if (!status.ok()) return status;
  return std::vector<v1::OperatorDescriptor>(response.operators().begin(),
                                             response.operators().end());
}

absl::StatusOr<v1::GetServerStatusResponse> Client::GetServerStatus(absl::Duration timeout) {
  v1::GetServerStatusResponse response;
  absl::Status status = CallWithoutPayloads(*transport_, kGetServerStatus,
                                            v1::GetServerStatusRequest(), timeout, &response);
  if (!status.ok()) return status;
  return response;
}

bool Client::IsConnected() const { return transport_->IsConnected(); }

}  // namespace opserve
