// The raw echo as a program of its own, for clients in other languages: raw_server SOCKET
//
// It also listens on a TCP port that the system chooses.
#include <cstdio>

#include "tests/benchmark/raw_server.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: raw_server SOCKET\n");
    return 2;
  }
  opserve::benchmark::ServeRaw(argv[1], /*tcp_port=*/0);
}
