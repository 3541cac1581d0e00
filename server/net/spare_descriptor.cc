#include "server/net/spare_descriptor.h"

#include <fcntl.h>
#include <sys/socket.h>

namespace opserve::server {

bool SpareDescriptor::Open() {
  spare_ = FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
  return spare_.get() >= 0;
}

void SpareDescriptor::TurnAway(int socket) {
  // Its descriptor is free for the connection now.
  spare_ = FileDescriptor();
  { const FileDescriptor refused(accept4(socket, nullptr, nullptr, SOCK_CLOEXEC)); }
  Open();
}

}  // namespace opserve::server
