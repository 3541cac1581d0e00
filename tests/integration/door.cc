#include "tests/integration/door.h"

#include "absl/time/clock.h"
#include "tests/integration/execute_stream_calls.h"

namespace opserve::server {

DoorCaller::DoorCaller(const std::string& target, Door door, const std::string& token)
    : door_(door), token_(token), stub_(NewStub(target)) {
  if (door == Door::kSession) session_ = std::make_unique<TestSession>(*stub_, true, 0, token);
}

grpc::Status DoorCaller::Execute(const v1::ExecuteRequest& request, v1::ExecuteResponse* response,
                                 absl::Duration timeout) {
  return door_ == Door::kCall ? ExecuteByCall(request, response, timeout)
                              : ExecuteInSession(request, response, timeout);
}

grpc::Status DoorCaller::ExecuteOnes(int64_t count) {
  v1::ExecuteResponse response;
  const grpc::Status status = Execute(OnesRequest(count, ""), &response);
  EXPECT_EQ(status.ok(), IsAllOnes(response, count));
  return status;
}

void DoorCaller::Cancel() {
  const absl::MutexLock lock(&mutex_);
  if (session_ != nullptr) {
    session_->Send(FrameBytes(kCancelFrame, number_));
  } else if (call_ != nullptr) {
    call_->TryCancel();
  }
}

grpc::Status DoorCaller::ExecuteByCall(const v1::ExecuteRequest& request,
                                       v1::ExecuteResponse* response, absl::Duration timeout) {
  const auto context = std::make_shared<grpc::ClientContext>();
  if (timeout > absl::ZeroDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  AddToken(token_, context.get());
  {
    const absl::MutexLock lock(&mutex_);
    call_ = context;
  }
  return stub_->Execute(context.get(), request, response);
}

grpc::Status DoorCaller::ExecuteInSession(const v1::ExecuteRequest& request,
                                          v1::ExecuteResponse* response, absl::Duration timeout) {
  {
    const absl::MutexLock lock(&mutex_);
    if (!session_->Send(RequestFrame(++number_, request, timeout))) return session_->Finish();
  }
  const TestFrame frame = session_->ReceiveEnd();
  if (frame.kind == kAnswerFrame) {
    EXPECT_TRUE(response->ParseFromString(frame.body));
    return grpc::Status::OK;
  }
  if (frame.kind != kErrorFrame) return session_->Finish();
  const v1::StatusDetails error = ErrorOf(frame);
  return grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message(),
                      error.SerializeAsString());
}

}  // namespace opserve::server
