// Calls messages of any bytes, as fast as gRPC can.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/generic/generic_stub.h"

namespace opserve::benchmark {

// What a load measured.
struct Load {
  double per_second = 0;
  double p50_us = 0;  // of one call; streams: not measured
};

class RawClient {
 public:
  // "unix:PATH" or "HOST:PORT".
  explicit RawClient(const std::string& target);

  // Keeps `in_flight` calls with `request_bytes` bytes running until `calls` have ended.
  Load Call(size_t request_bytes, int in_flight, int calls);

  // Sends `messages` messages over one stream, of which `window` are unanswered at most.
  Load Stream(size_t request_bytes, int window, int messages);

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
};

}  // namespace opserve::benchmark
