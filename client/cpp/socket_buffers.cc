#include "client/cpp/socket_buffers.h"

#include <sys/socket.h>

#include "grpc/support/sync.h"
#include "grpcpp/version_info.h"

// gRPC lets its users set options of the sockets it makes (ChannelArguments::SetSocketMutator), but
// installs no header that defines a mutator. These versions have this definition.
#if GRPC_CPP_VERSION_MAJOR == 1 && GRPC_CPP_VERSION_MINOR >= 44 && GRPC_CPP_VERSION_MINOR <= 51

struct grpc_mutate_socket_info;

struct grpc_socket_mutator_vtable {
  bool (*mutate_fd)(int fd, grpc_socket_mutator* mutator);
  int (*compare)(grpc_socket_mutator* a, grpc_socket_mutator* b);
  void (*destroy)(grpc_socket_mutator* mutator);
  bool (*mutate_fd_2)(const grpc_mutate_socket_info* info, grpc_socket_mutator* mutator);
};

struct grpc_socket_mutator {
  const grpc_socket_mutator_vtable* vtable;
  gpr_refcount references;
};

void grpc_socket_mutator_init(grpc_socket_mutator* mutator,
                              const grpc_socket_mutator_vtable* vtable);

namespace opserve {
namespace {

constexpr int kBytes = 1 << 20;

// A connection without it still works, so that it always succeeds.
bool Enlarge(int fd, grpc_socket_mutator* /*mutator*/) {
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kBytes, sizeof(kBytes));
  return true;
}

// All are equal, so that they do not tell connections apart.
int Compare(grpc_socket_mutator* /*a*/, grpc_socket_mutator* /*b*/) { return 0; }

void Destroy(grpc_socket_mutator* mutator) { delete mutator; }

constexpr grpc_socket_mutator_vtable kVtable = {Enlarge, Compare, Destroy, nullptr};

}  // namespace

void EnlargeUnixSendBuffers(grpc::ChannelArguments* arguments) {
  auto* mutator = new grpc_socket_mutator;  // deleted with the last channel that has it
  grpc_socket_mutator_init(mutator, &kVtable);
  arguments->SetSocketMutator(mutator);
}

}  // namespace opserve

#else

namespace opserve {

void EnlargeUnixSendBuffers(grpc::ChannelArguments* /*arguments*/) {}

}  // namespace opserve

#endif
