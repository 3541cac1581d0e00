// Calls of former clients, and the answers of the daemon of that day, as recorded in
// tests/data/wire.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace opserve::server {

// A call and its answer: messages as they were on the wire, in their order.
struct RecordedCall {
  std::string name;    // unique in its file
  std::string method;  // "/opserve.v1.OperatorService/Execute"
  std::vector<std::string> requests;
  std::vector<std::string> answers;
  int code = 0;               // of the gRPC status
  std::string error_details;  // trailer grpc-status-details-bin: a StatusDetails; or empty
  std::map<std::string, std::string> trailers;  // the daemon's others
};

// The calls of a file of tests/data/wire, in their order. Aborts the test program if it cannot be
// read.
std::vector<RecordedCall> ReadRecording(const std::string& file);

}  // namespace opserve::server
