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
  // Who takes the connection `fd`. Lives as long as the gate.
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

// Of Unix sockets: connections of users who matter enter through a way of their own, so that calls
// know the user. gRPC lets calls know of their connection only what its way in says, and ways in
// are made before the server starts: there are kMaxUsers, each given to a user at the first
// connection, for good. Users beyond that enter as users who do not matter.
class UserGate final : public ConnectionGate {
 public:
  static constexpr int kMaxUsers = 64;

  // `processor`: makes what checks the calls of one way in. `matters`: whether this user's calls
  // have to know the user.
  UserGate(const std::function<std::shared_ptr<grpc::AuthMetadataProcessor>(SharedUid)>& processor,
           std::function<bool(uint32_t uid)> matters, grpc::ServerBuilder* builder);
  GrpcAcceptor& For(int fd) override;

 private:
  struct Way {
    SharedUid uid;
    std::unique_ptr<GrpcAcceptor> acceptor;
  };
  std::vector<Way> ways_;  // the last: of users who do not matter
  const std::function<bool(uint32_t uid)> matters_;
};

}  // namespace opserve::server
