// The doors that requests come through. Suites of what holds for all requests take one by
// parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/client_context.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/integration/session_calls.h"

namespace opserve::server {

// kAnnounced: in a session, with the payloads in chunks behind the request.
enum class Door { kCall, kSession, kAnnounced };

inline auto BothDoors() { return testing::Values(Door::kCall, Door::kSession); }
inline auto AllDoors() { return testing::Values(Door::kCall, Door::kSession, Door::kAnnounced); }
inline std::string DoorName(const testing::TestParamInfo<Door>& door) {
  switch (door.param) {
    case Door::kCall:
      return "Call";
    case Door::kSession:
      return "Session";
    case Door::kAnnounced:
      return "Announced";
  }
  return "";
}

// A caller with a connection of its own, and a session of its own where that is the door.
class DoorCaller {
 public:
  // `token`: of a tenant, or none.
  DoorCaller(const std::string& target, Door door, const std::string& token = "");

  // The outcome of a request, which may take `timeout` (zero: the daemon's default). Without a
  // session, that of opening one. One request at a time.
  grpc::Status Execute(const v1::ExecuteRequest& request, v1::ExecuteResponse* response,
                       absl::Duration timeout = absl::ZeroDuration());
  // That of OnesRequest(count), whose results are looked at.
  grpc::Status ExecuteOnes(int64_t count);

  // Gives up the request in progress. From any thread.
  void Cancel();

 private:
  grpc::Status ExecuteByCall(const v1::ExecuteRequest& request, v1::ExecuteResponse* response,
                             absl::Duration timeout);
  grpc::Status ExecuteInSession(const v1::ExecuteRequest& request, v1::ExecuteResponse* response,
                                absl::Duration timeout);
  // Announces it and sends its payloads as credits come. The frame that ends it.
  TestFrame Announce(const v1::ExecuteRequest& request, absl::Duration timeout);
  TestFrame SendPayloads(uint64_t number, const v1::ExecuteRequest& request);

  const Door door_;
  const std::string token_;
  const std::unique_ptr<v1::OperatorService::Stub> stub_;
  std::unique_ptr<TestSession> session_;
  absl::Mutex mutex_;
  std::shared_ptr<grpc::ClientContext> call_ ABSL_GUARDED_BY(mutex_);  // in progress
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;                        // of the last request
};

}  // namespace opserve::server
