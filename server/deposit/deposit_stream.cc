#include "server/deposit/deposit_stream.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "proto/status/status_macros.h"
#include "server/config/read_file.h"
#include "server/grpc/message_bytes.h"
#include "server/net/pem.h"

namespace opserve::server {
namespace {

constexpr char kMethod[] = "/opserve.v1.PeerService/Deposit";
// A dead link is noticed after so long without a byte, twice at most.
constexpr int kKeepaliveMs = 3000;

absl::StatusOr<std::string> Read(absl::string_view field, const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return text;
  return absl::InvalidArgumentError(
      absl::StrCat("deposit.", field, ": ", path, ": ", text.status().message()));
}

absl::StatusOr<grpc::SslCredentialsOptions> ReadCredentials(const DepositConfig& config) {
  grpc::SslCredentialsOptions options;
  OPSERVE_ASSIGN_OR_RETURN(options.pem_root_certs, Read("ca", config.ca));
  OPSERVE_ASSIGN_OR_RETURN(options.pem_cert_chain, Read("certificate", config.certificate));
  OPSERVE_ASSIGN_OR_RETURN(options.pem_private_key, Read("key", config.key));
  return options;
}

bool HasTls(const DepositConfig& config) { return !config.ca.empty(); }

absl::Status ToAbsl(const grpc::Status& status) {
  return {static_cast<absl::StatusCode>(status.error_code()), status.error_message()};
}

}  // namespace

absl::Status CheckDepositFiles(const DepositConfig& config) {
  if (!HasTls(config)) return absl::OkStatus();
  OPSERVE_ASSIGN_OR_RETURN(const grpc::SslCredentialsOptions options, ReadCredentials(config));
  const auto broken = [](absl::string_view field, const std::string& path,
                         absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("deposit.", field, ": ", path, ": ", problem));
  };
  if (ReadCertificates(options.pem_root_certs).empty()) {
    return broken("ca", config.ca, "no certificate in PEM");
  }
  const std::vector<Certificate> chain = ReadCertificates(options.pem_cert_chain);
  if (chain.empty()) return broken("certificate", config.certificate, "no certificate in PEM");
  const PrivateKey key = ReadPrivateKey(options.pem_private_key);
  if (key == nullptr) return broken("key", config.key, TakeOpensslError());
  if (X509_check_private_key(chain.front().get(), key.get()) == 1) return absl::OkStatus();
  TakeOpensslError();
  return broken("key", config.key, absl::StrCat("is not the key of ", config.certificate));
}

DepositStream::DepositStream(std::shared_ptr<grpc::Channel> channel)
    : channel_(std::move(channel)), stub_(channel_) {}

absl::StatusOr<std::unique_ptr<DepositStream>> DepositStream::Create(const DepositConfig& config,
                                                                     absl::Time deadline) {
  grpc::ChannelArguments arguments;
  // A connection of its own: a new attempt does not wait for what an older one has learnt.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveMs);
  if (!config.server_name.empty()) arguments.SetSslTargetNameOverride(config.server_name);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (HasTls(config)) {
    OPSERVE_ASSIGN_OR_RETURN(const grpc::SslCredentialsOptions options, ReadCredentials(config));
    credentials = grpc::SslCredentials(options);
  }
  auto stream = std::unique_ptr<DepositStream>(
      new DepositStream(grpc::CreateCustomChannel(config.address, credentials, arguments)));
  stream->context_.set_deadline(absl::ToChronoTime(deadline));
  return stream;
}

absl::Status DepositStream::Begin() {
  call_ = stub_.PrepareCall(&context_, kMethod, &queue_);
  call_->StartCall(nullptr);
  is_over_ = false;
  return Await() ? absl::OkStatus() : Ended();
}

DepositStream::~DepositStream() {
  if (!is_over_) {
    context_.TryCancel();
    End().IgnoreError();
  }
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
  }
}

bool DepositStream::Await() {
  void* tag = nullptr;
  bool ok = false;
  return queue_.Next(&tag, &ok) && ok;
}

absl::Status DepositStream::End() {
  grpc::Status status;
  call_->Finish(&status, nullptr);
  Await();
  is_over_ = true;
  return ToAbsl(status);
}

absl::Status DepositStream::Send(const grpc::ByteBuffer& message) {
  call_->Write(message, nullptr);
  return Await() ? absl::OkStatus() : Ended();
}

absl::Status DepositStream::Ended() {
  const absl::Status status = End();
  return status.ok() ? absl::UnavailableError("the receiver ended the deposit") : status;
}

absl::Status DepositStream::Send(const v1::DepositRequest& request) {
  return Send(ToByteBuffer(request));
}

absl::StatusOr<v1::DepositResponse> DepositStream::Receive(v1::DepositResponse::StepCase expected) {
  grpc::ByteBuffer message;
  call_->Read(&message, nullptr);
  if (!Await()) return Ended();
  v1::DepositResponse response;
  if (!grpc::SerializationTraits<v1::DepositResponse>::Deserialize(&message, &response).ok() ||
      response.step_case() != expected) {
    return absl::InternalError(absl::StrCat("the receiver answered step ", response.step_case(),
                                            " of the protocol, expected ", expected));
  }
  return response;
}

absl::Status DepositStream::Close() {
  call_->WritesDone(nullptr);
  Await();
  return End();
}

}  // namespace opserve::server
