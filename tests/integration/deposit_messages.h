// Two daemons' parts of a deposit, for tests: configurations, credentials, and messages.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "opserve/v1/peer_service.grpc.pb.h"
#include "proto/codec/crc32c.h"
#include "server/config/read_file.h"
#include "tests/adding_program.h"
#include "tests/integration/certificates.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/two_tenants.h"

namespace opserve::server {

inline constexpr uint64_t kPeerMaxBytes = uint64_t{8} << 20;

// A daemon with the tenants "a" and "b" that takes their tensors from the peer "peer.test", by TLS
// at its second address.
inline Config ReceiverConfig(const Certificates& certificates) {
  Config config = InProcessDaemon::DefaultConfig();
  AddTwoTenants(&config);
  config.listen.push_back({.is_unix = false, .path = "", .host = "127.0.0.1", .port = 0});
  config.tls = TlsFilesConfig{.cert = certificates.File("server"),
                              .key = certificates.Key("server"),
                              .client_ca = certificates.File("ca"),
                              .crl = ""};
  config.peers = {{.certificate_name = "dns:peer.test",
                   .uid = std::nullopt,
                   .tenants = {"a", "b"},
                   .max_bytes = kPeerMaxBytes}};
  return config;
}

// A daemon with the same tenants that deposits at `address`, with the certificate `name`.
inline Config SenderConfig(const Certificates& certificates, const std::string& address,
                           const std::string& name = "peer") {
  Config config = InProcessDaemon::DefaultConfig();
  AddTwoTenants(&config);
  config.deposit = DepositConfig{.address = address,
                                 .ca = certificates.File("ca"),
                                 .certificate = certificates.File(name),
                                 .key = certificates.Key(name),
                                 .server_name = "daemon.test",
                                 .client_address = "new.place:1"};
  return config;
}

// The service at `address`, called with the certificate `name`.
inline std::unique_ptr<v1::PeerService::Stub> PeerStub(const Certificates& certificates,
                                                       const std::string& address,
                                                       const std::string& name) {
  const grpc::SslCredentialsOptions options = {
      .pem_root_certs = *ReadFile(certificates.File("ca")),
      .pem_private_key = *ReadFile(certificates.Key(name)),
      .pem_cert_chain = *ReadFile(certificates.File(name))};
  return v1::PeerService::NewStub(grpc::CreateChannel(address, grpc::SslCredentials(options)));
}

inline constexpr char kSenderRun[] = "the run!";  // 8 bytes

inline std::string HandleOf(char letter) { return std::string(22, letter) + kSenderRun; }

inline v1::DepositRequest HelloStep(const std::string& run = kSenderRun) {
  v1::DepositRequest request;
  request.mutable_hello()->set_run(run);
  return request;
}

// Of FLOAT tensors with these numbers of elements, whose handles are HandleOf 'A', 'B', ...
inline v1::DepositRequest OfferStep(const std::vector<int64_t>& elements,
                                    const std::string& tenant = "b") {
  v1::DepositRequest request;
  request.mutable_offer()->set_tenant(tenant);
  char letter = 'A';
  for (const int64_t count : elements) {
    v1::DepositedTensor* tensor = request.mutable_offer()->add_tensors();
    tensor->set_handle(HandleOf(letter++));
    tensor->set_dtype(v1::DATA_TYPE_FLOAT);
    tensor->add_shape(count);
    tensor->set_version(3);
    tensor->mutable_lease()->set_seconds(60);
  }
  return request;
}

inline v1::DepositRequest ChunkStep(const std::string& data) {
  v1::DepositRequest request;
  request.mutable_chunk()->set_crc32c(codec::Crc32c(data));
  request.set_data(data);
  return request;
}

inline std::string ProgramHandleOf(char letter) { return std::string(16, letter); }

// A program of `count` invocations on one payload of 2 FLOATs and a tensor, AddingProgram's, with
// the first handles of ProgramHandleOf 'a', 'b', ...
inline v1::DepositRequest ProgramStep(int count, int handles = 1, const std::string& tenant = "b") {
  v1::DepositRequest request;
  v1::DepositedProgram* program = request.mutable_program();
  program->set_tenant(tenant);
  *program->mutable_program() = AddingProgram("Add", count, 2);
  program->mutable_program()->mutable_program()->add_results()->set_invocation(
      static_cast<uint32_t>(count - 1));
  for (int i = 0; i < handles; ++i) {
    v1::DepositedHandle* handle = program->add_handles();
    handle->set_handle(ProgramHandleOf(static_cast<char>('a' + i)));
    handle->mutable_lease()->set_seconds(60);
    handle->mutable_lease_left()->set_seconds(30);
  }
  return request;
}

inline v1::DepositRequest CommitStep() {
  v1::DepositRequest request;
  request.mutable_commit();
  return request;
}

}  // namespace opserve::server
