#include "tests/integration/door.h"

#include <algorithm>
#include <vector>

#include "absl/time/clock.h"
#include "tests/integration/execute_stream_calls.h"

namespace opserve::server {

DoorCaller::DoorCaller(const std::string& target, Door door, const std::string& token)
    : door_(door), token_(token), stub_(NewStub(target)) {
  if (door != Door::kCall) session_ = std::make_unique<TestSession>(*stub_, true, 0, token);
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
  TestFrame frame;
  if (door_ == Door::kAnnounced) {
    frame = Announce(request, timeout);
  } else {
    {
      const absl::MutexLock lock(&mutex_);
      if (!session_->Send(RequestFrame(++number_, request, timeout))) return session_->Finish();
    }
    frame = session_->ReceiveEnd();
  }
  if (frame.kind == kAnswerFrame) {
    EXPECT_TRUE(response->ParseFromString(frame.body));
    return grpc::Status::OK;
  }
  if (frame.kind != kErrorFrame) return session_->Finish();
  const v1::StatusDetails error = ErrorOf(frame);
  return grpc::Status(static_cast<grpc::StatusCode>(error.code()), error.message(),
                      error.SerializeAsString());
}

TestFrame DoorCaller::Announce(const v1::ExecuteRequest& request, absl::Duration timeout) {
  v1::ExecuteRequest header = request;
  header.clear_payloads();
  std::vector<uint64_t> sizes;
  for (const std::string& payload : request.payloads()) sizes.push_back(payload.size());
  uint64_t number = 0;
  {
    const absl::MutexLock lock(&mutex_);
    number = ++number_;
    if (!session_->Send(AnnouncementFrame(number, header, sizes, timeout))) return {};
  }
  const TestFrame early = SendPayloads(number, request);
  if (early.kind == 0) return session_->ReceiveEnd();
  // No chunk follows.
  const absl::MutexLock lock(&mutex_);
  session_->Send(FrameBytes(kCancelFrame, number));
  return early;
}

// A frame that ended the request before; else none.
TestFrame DoorCaller::SendPayloads(uint64_t number, const v1::ExecuteRequest& request) {
  constexpr uint64_t kChunk = 256 << 10;
  uint64_t credit = 0;
  for (const std::string& payload : request.payloads()) {
    for (uint64_t sent = 0; sent < payload.size();) {
      while (credit == 0) {
        const TestFrame frame = session_->Receive();
        if (frame.kind != kCreditFrame) return frame;
        credit += CreditOf(frame);
      }
      const uint64_t part = std::min({payload.size() - sent, kChunk, credit});
      const absl::MutexLock lock(&mutex_);
      session_->Send(FrameBytes(kChunkFrame, number, payload.substr(sent, part)));
      sent += part;
      credit -= part;
    }
  }
  return {};
}

}  // namespace opserve::server
