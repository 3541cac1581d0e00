// Execute and ExecuteStream with generated classes and stubs, in calls short enough for tests.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "opserve/v1/error.pb.h"
#include "opserve/v1/operator_service.grpc.pb.h"

namespace opserve::server {

// L1LossBackward of `count` FLOAT elements with self above target everywhere: every element of the
// gradient is 1 (reduction sum, gradient 1). The payloads are not in it.
v1::ExecuteRequest OnesProgram(int64_t count);
// Its payloads, to be added to whatever message holds the program: ExecuteRequest or
// ExecuteStreamRequest.
template <typename Message>
void AddOnesPayloads(int64_t count, Message* message) {
  for (const float value : {1.0f, 3.0f, 2.0f}) {
    const std::string bytes(reinterpret_cast<const char*>(&value), sizeof(value));
    std::string* payload = message->add_payloads();
    for (int64_t i = 0; i < (value == 1.0f ? 1 : count); ++i) payload->append(bytes);
  }
}
v1::ExecuteRequest OnesRequest(int64_t count, const std::string& idempotency_key);
v1::ExecuteStreamRequest OnesStreamRequest(uint64_t id, int64_t count = 10);

// Whether it is the one result of OnesProgram(count).
bool IsAllOnes(const v1::ExecuteResponse& response, int64_t count);
bool IsAllOnes(const v1::ExecuteStreamResponse& response, int64_t count = 10);

// With a connection of its own.
std::unique_ptr<v1::OperatorService::Stub> NewStub(const std::string& target);

// Requests waiting and executing, on all devices.
uint32_t CountRequests(v1::OperatorService::Stub& stub);

// One ExecuteStream call.
class TestStream {
 public:
  // `timeout`: of the whole call. Without one it ends before the test program would.
  explicit TestStream(v1::OperatorService::Stub& stub, absl::Duration timeout = absl::Minutes(2));

  bool Send(const v1::ExecuteStreamRequest& request) { return stream_->Write(request); }
  void SendNoMore() { stream_->WritesDone(); }
  // The next answer; id 0 and no outcome if there is none.
  v1::ExecuteStreamResponse Receive();
  // After the last answer.
  grpc::Status Finish() { return stream_->Finish(); }
  void Cancel() { context_.TryCancel(); }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::ExecuteStreamRequest, v1::ExecuteStreamResponse>>
      stream_;
};

}  // namespace opserve::server
