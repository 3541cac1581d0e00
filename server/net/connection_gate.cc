#include "server/net/connection_gate.h"

#include <sys/socket.h>

#include <utility>

namespace opserve::server {
namespace {

std::unique_ptr<GrpcAcceptor> MakeAcceptor(
    const std::shared_ptr<grpc::ServerCredentials>& credentials, grpc::ServerBuilder* builder) {
  return builder->experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
}

int64_t PeerUid(int fd) {
  ucred peer = {};
  socklen_t size = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? int64_t{peer.uid} : kNoUid;
}

}  // namespace

CommonGate::CommonGate(const std::shared_ptr<grpc::ServerCredentials>& credentials,
                       grpc::ServerBuilder* builder)
    : acceptor_(MakeAcceptor(credentials, builder)) {}

GrpcAcceptor& CommonGate::For(int /*fd*/) { return *acceptor_; }

UserGate::UserGate(
    const std::function<std::shared_ptr<grpc::AuthMetadataProcessor>(SharedUid)>& processor,
    std::function<bool(uint32_t uid)> matters, grpc::ServerBuilder* builder)
    : matters_(std::move(matters)) {
  // One more than users: the last is for those that do not matter.
  for (int i = 0; i <= kMaxUsers; ++i) {
    auto uid = std::make_shared<std::atomic<int64_t>>(kNoUid);
    // Local credentials exchange no bytes; any client without encryption understands them.
    const auto credentials = grpc::experimental::LocalServerCredentials(UDS);
    credentials->SetAuthMetadataProcessor(processor(uid));
    ways_.push_back({std::move(uid), MakeAcceptor(credentials, builder)});
  }
}

GrpcAcceptor& UserGate::For(int fd) {
  const int64_t uid = PeerUid(fd);
  // Users without a tenant or peer would use up the few acceptors.
  if (uid != kNoUid && matters_(static_cast<uint32_t>(uid))) {
    for (int i = 0; i < kMaxUsers; ++i) {
      const int64_t owner = ways_[i].uid->load(std::memory_order_relaxed);
      // For good: calls of earlier connections read it concurrently.
      if (owner == kNoUid) ways_[i].uid->store(uid, std::memory_order_relaxed);
      if (owner == kNoUid || owner == uid) return *ways_[i].acceptor;
    }
  }
  return *ways_.back().acceptor;
}

}  // namespace opserve::server
