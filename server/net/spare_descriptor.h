// Keeps a file descriptor for when there are no more.
#pragma once

#include "server/net/file_descriptor.h"

namespace opserve::server {

// Without a free descriptor a connection could not even be taken to be closed, and would be
// reported again and again. Not thread-safe.
class SpareDescriptor {
 public:
  // False: there is none to keep.
  bool Open();

  // Takes the next connection of the listening `socket` and closes it.
  void TurnAway(int socket);

 private:
  FileDescriptor spare_;
};

}  // namespace opserve::server
