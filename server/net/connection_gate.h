// How accepted connections enter a gRPC server: with which credentials, and known by which user id.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "grpcpp/security/auth_metadata_processor.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"

namespace opserve::server {

using GrpcAcceptor = grpc::experimental::ExternalConnectionAcceptor;

// A user id that is not known yet, or never, is kNoUid.
using SharedUid = std::shared_ptr<std::atomic<int64_t>>;
inline constexpr int64_t kNoUid = -1;

// Made before the server is built; used by one thread.
class ConnectionGate {
 public:
  virtual ~ConnectionGate() = default;
  // The acceptor that takes the connection `fd`. Lives as long as the gate.
  virtual GrpcAcceptor& For(int fd) = 0;
};

// All connections enter in the same way.
class CommonGate final : public ConnectionGate {
 public:
  CommonGate(const std::shared_ptr<grpc::ServerCredentials>& credentials,
             grpc::ServerBuilder* builder);
  GrpcAcceptor& For(int fd) override;

 private:
  const std::unique_ptr<GrpcAcceptor> acceptor_;
};

// For Unix sockets. A connection of a user that matters enters through an acceptor reserved for
// that user, so that its calls know the user. gRPC lets calls know of their connection only its
// acceptor, and acceptors are made before the server starts: there are kMaxUsers, each given to a
// user for good at the first connection. Later users enter as users that do not matter.
class UserGate final : public ConnectionGate {
 public:
  static constexpr int kMaxUsers = 64;

  // `processor`: makes the processor that checks calls of one acceptor. `matters`: whether calls of
  // this user have to know the user.
  UserGate(const std::function<std::shared_ptr<grpc::AuthMetadataProcessor>(SharedUid)>& processor,
           std::function<bool(uint32_t uid)> matters, grpc::ServerBuilder* builder);
  GrpcAcceptor& For(int fd) override;

 private:
  struct Way {
    SharedUid uid;
    std::unique_ptr<GrpcAcceptor> acceptor;
  };
  std::vector<Way> ways_;  // the last: for users that do not matter
  const std::function<bool(uint32_t uid)> matters_;
};

}  // namespace opserve::server
