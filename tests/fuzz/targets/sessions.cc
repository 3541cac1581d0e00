// Sessions of a client that sends anything, through a daemon: a model of the protocol says which
// frame ends a session, and the daemon agrees; each request before it is answered once, each ping
// by its pong, in order; nothing else comes but credits, nothing stays behind. Whether a chunk is
// right is a matter of time: after one the model does not say how the session ends.
//
// Input: messages, each as a byte of flags, its size in two bytes, its bytes. Flag 1: the bytes are
// frames, and the field around them is right. At most 4096 bytes: so much is sent without reading.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "opserve/v1/error.pb.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/session.pb.h"
#include "tests/await.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/fuzz/targets/plain_frames.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {
namespace {

using fuzz::Check;
using fuzz::PlainFrame;

enum Kind {
  kHello = 1,
  kRequest,
  kAnswer,
  kError,
  kCancel,
  kPing,
  kPong,
  kGoingAway,
  kAnnouncement,
  kChunk,
  kCredit,
  kPart
};

constexpr size_t kMaxMessages = 16;
constexpr size_t kMaxInputBytes = 4096;
// More than the requests of any input: whether a window is full is a matter of time.
constexpr size_t kWindow = kMaxInputBytes / 16;
constexpr uint64_t kMaxTensorBytes = 1 << 16;

std::vector<std::string> ReadMessages(fuzz::Input input) {
  std::vector<std::string> messages;
  while (!input.AtEnd() && messages.size() < kMaxMessages) {
    const bool is_frames = (input.Byte() & 1) != 0;
    const uint16_t size = input.Short();
    const absl::string_view bytes = input.Take(size);
    v1::SessionMessage message;
    message.set_frames(std::string(bytes));
    messages.push_back(is_frames ? message.SerializeAsString() : std::string(bytes));
  }
  return messages;
}

// What the protocol says of a client's messages.
class Model {
 public:
  explicit Model(const std::vector<std::string>& messages) {
    for (const std::string& message : messages) {
      if (is_valid_) is_valid_ = TakeMessage(message);
    }
  }

  bool is_valid() const { return is_valid_; }
  // Whether that, and what comes after, is known.
  bool is_certain() const { return is_certain_; }
  // Until the first frame that is wrong.
  bool has_hello() const { return has_hello_; }
  const std::map<uint64_t, bool>& requests() const { return requests_; }  // false: not answered yet
  const std::vector<uint64_t>& pings() const { return pings_; }

 private:
  bool TakeMessage(absl::string_view message) {
    const std::optional<absl::string_view> field = fuzz::PlainField(message);
    if (!field.has_value()) return false;
    absl::string_view frames = *field;
    while (!frames.empty()) {
      const std::optional<PlainFrame> frame = fuzz::PlainNext(&frames);
      if (!frame.has_value() || !TakeFrame(*frame)) return false;
    }
    return true;
  }

  bool TakeFrame(const PlainFrame& frame) {
    if (frame.kind == kHello) return TakeHello(frame);
    if (!has_hello_) return false;
    switch (frame.kind) {
      case kRequest:
        return TakeRequest(frame);
      case kAnnouncement:
        return TakeAnnouncement(frame);
      case kChunk:
        is_certain_ = requests_.empty();  // of no request, it is wrong
        return false;
      case kPing:
        if (frame.body.empty()) pings_.push_back(frame.number);
        return frame.body.empty();
      case kCancel:
      case kPong:
        return frame.body.empty();
      default:
        return false;
    }
  }

  bool TakeHello(const PlainFrame& frame) {
    v1::SessionHello hello;
    const bool is_right = !has_hello_ && frame.number == 0 &&
                          hello.ParseFromString(std::string(frame.body)) && hello.version() > 0;
    has_hello_ = has_hello_ || is_right;
    return is_right;
  }

  bool TakeRequest(const PlainFrame& frame) {
    if (frame.number <= last_request_ || frame.body.size() < 12) return false;
    const uint64_t trace_bytes = fuzz::NumberAt(frame.body, 8, 4);
    if (trace_bytes > 256 || trace_bytes > frame.body.size() - 12) return false;
    last_request_ = frame.number;
    requests_.emplace(frame.number, false);
    return true;
  }

  bool TakeAnnouncement(const PlainFrame& frame) {
    if (frame.number <= last_request_ || frame.body.size() < 16) return false;
    const uint64_t trace_bytes = fuzz::NumberAt(frame.body, 8, 4);
    if (trace_bytes > 256 || trace_bytes > frame.body.size() - 16) return false;
    const uint64_t count = fuzz::NumberAt(frame.body, 12 + trace_bytes, 4);
    const uint64_t left = frame.body.size() - 16 - trace_bytes;
    if (count > 4096 || count > left / 8) return false;
    last_request_ = frame.number;
    requests_.emplace(frame.number, false);
    return true;
  }

  bool is_valid_ = true;
  bool is_certain_ = true;
  bool has_hello_ = false;
  uint64_t last_request_ = 0;
  std::map<uint64_t, bool> requests_;
  std::vector<uint64_t> pings_;
};

struct Outcome {
  std::vector<std::string> messages;  // of the daemon
  grpc::Status status;
};

class Sessions {
 public:
  static Sessions& Get() {
    static Sessions* const sessions = new Sessions;
    return *sessions;
  }

  // Sends bytes as they are, then no more, and reads to the end.
  Outcome Run(const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub_.PrepareCall(&context, "/opserve.v1.OperatorService/Session", &queue);
    call->StartCall(nullptr);
    bool goes_on = Next(queue);
    for (size_t i = 0; i < messages.size() && goes_on; ++i) {
      call->Write(fuzz::Delivered(messages[i], 0), nullptr);
      goes_on = Next(queue);  // not after a refusal; the status says why
    }
    call->WritesDone(nullptr);
    Next(queue);
    Outcome outcome;
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    while (Next(queue)) {
      outcome.messages.push_back(fuzz::Joined(bytes));
      call->Read(&bytes, nullptr);
    }
    call->Finish(&outcome.status, nullptr);
    Next(queue);
    return outcome;
  }

  void CheckHoldsNothing() {
    daemon_.EndLeases();
    Check(Await([this] { return daemon_.HeldByRequests() == 0; }), "nothing stays behind");
  }

 private:
  static Config RoomyConfig() {
    Config config = InProcessDaemon::DefaultConfig();
    config.stream_window = kWindow;
    config.max_tensor_bytes = kMaxTensorBytes;
    return config;
  }

  static bool Next(grpc::CompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  }

  InProcessDaemon daemon_{RoomyConfig()};
  grpc::GenericStub stub_{
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials())};
};

// What a right daemon says to the client of the model.
void CheckAnswers(const Model& model, const std::vector<std::string>& messages) {
  std::map<uint64_t, bool> requests = model.requests();
  std::vector<uint64_t> pongs;
  std::map<uint64_t, std::string> parts;  // of answers that are not there yet
  size_t hellos = 0;
  for (const std::string& message : messages) {
    const std::optional<absl::string_view> field = fuzz::PlainField(message);
    Check(field.has_value(), "the daemon sends SessionMessages");
    absl::string_view frames = *field;
    while (!frames.empty()) {
      const std::optional<PlainFrame> frame = fuzz::PlainNext(&frames);
      Check(frame.has_value(), "of frames that are right");
      Check((hellos == 0) == (frame->kind == kHello), "the first one is hello, and no other");
      if (frame->kind == kHello) {
        ++hellos;
      } else if (frame->kind == kPong) {
        pongs.push_back(frame->number);
      } else if (frame->kind == kCredit) {
        Check(frame->body.size() == 8 && requests.contains(frame->number), "credits are right");
      } else if (frame->kind == kPart) {
        Check(!frame->body.empty(), "parts have bytes");
        parts[frame->number] += std::string(frame->body);
      } else {
        const std::string body = frame->kind == kAnswer
                                     ? parts[frame->number] + std::string(frame->body)
                                     : std::string(frame->body);
        parts.erase(frame->number);
        Check(frame->kind == kAnswer
                  ? v1::ExecuteResponse().ParseFromString(body)
                  : frame->kind == kError && v1::StatusDetails().ParseFromString(body),
              "the others are answers and errors");
        const auto request = requests.find(frame->number);
        Check(request != requests.end() && !request->second, "of requests, and one each");
        request->second = true;
      }
    }
  }
  Check((hellos == 1) == model.has_hello(), "hello is answered");
  Check(pongs == model.pings(), "pings are answered, in order");
  for (const auto& [number, is_answered] : requests) Check(is_answered, "all are answered");
  Check(parts.empty(), "answers in parts are complete");
}

void RunSession(fuzz::Input input) {
  const std::vector<std::string> messages = ReadMessages(input);
  const Model model(messages);
  Sessions& sessions = Sessions::Get();
  const Outcome outcome = sessions.Run(messages);
  if (!model.is_certain()) {
    sessions.CheckHoldsNothing();
    return;
  }
  CheckAnswers(model, outcome.messages);
  if (model.is_valid()) {
    Check(outcome.status.ok(), "a session whose client keeps the rules ends with OK");
  } else {
    Check(outcome.status.error_code() == grpc::StatusCode::INVALID_ARGUMENT &&
              !outcome.status.error_message().empty(),
          "a session ends at the first frame that breaks a rule");
  }
  sessions.CheckHoldsNothing();
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  size = std::min(size, opserve::server::kMaxInputBytes);
  opserve::server::RunSession(opserve::fuzz::Input(data, size));
  return 0;
}
