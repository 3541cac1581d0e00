// The most that gRPC can carry: a server that answers messages without looking at them, with a
// third of their bytes (three inputs, one output). What the daemon is compared to.
//
// It is set up in the way that measurements found best: completion queue, one polling thread, raw
// slices, freed memory kept, large socket buffers.
#pragma once

#include <string>

namespace opserve::benchmark {

// Serves Execute and ExecuteStream of OperatorService until the process is killed. What malloc
// keeps is for the caller to say.
[[noreturn]] void ServeRaw(const std::string& unix_path, int tcp_port);

}  // namespace opserve::benchmark
