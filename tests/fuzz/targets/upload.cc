// Uploads in chunks, through a daemon: a model of the protocol says whether the messages make a
// tensor, and the daemon agrees; what it took it gives back byte for byte; what it refused leaves
// nothing behind.
//
// Input: messages, each as a byte of flags, its size in two bytes, its bytes. Flag 1: the checksum
// is set right before it is sent, or few inputs would get beyond it.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "google/protobuf/stubs/logging.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "opserve/v1/tensor_service.pb.h"
#include "proto/codec/crc32c.h"
#include "proto/codec/payload_message.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/run/resident_tensors.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using fuzz::Check;

constexpr uint64_t kMaxTensorBytes = 1 << 16;
constexpr size_t kMaxMessages = 16;

std::vector<std::string> ReadMessages(fuzz::Input input) {
  std::vector<std::string> messages;
  while (!input.AtEnd() && messages.size() < kMaxMessages) {
    const bool sets_checksum = (input.Byte() & 1) != 0;
    const uint16_t size = input.Short();
    std::string bytes(input.Take(size));
    v1::UploadRequest request;
    if (sets_checksum && request.ParseFromString(bytes)) {
      request.set_crc32c(codec::Crc32c(request.data()));
      bytes = request.SerializeAsString();
    }
    messages.push_back(std::move(bytes));
  }
  return messages;
}

// What the protocol says of a sequence of messages.
class Model {
 public:
  explicit Model(const std::vector<std::string>& messages) {
    for (const std::string& bytes : messages) {
      has_more_ = is_complete_;
      if (is_complete_ || !Take(bytes)) break;
      is_complete_ = data_.size() == total_bytes_;
    }
  }

  // Messages make a tensor.
  bool is_complete() const { return is_complete_; }
  // And others follow, which are refused unless the answer comes first.
  bool has_more() const { return has_more_; }
  const std::string& data() const { return data_; }  // if it is complete

 private:
  bool Take(const std::string& bytes) {
    const auto split = codec::PayloadMessage::Split(fuzz::Delivered(bytes, 0), /*max_payloads=*/1);
    v1::UploadRequest request;
    if (!split.ok() || !split->ParseHeader(&request).ok()) return false;
    if (request.has_header() == has_header_) return false;
    if (!split->payloads().empty()) {
      for (absl::string_view piece : split->payloads()[0].pieces) {
        request.mutable_data()->append(piece.data(), piece.size());
      }
    }
    if (request.has_header()) {
      if (!TakeHeader(request.header())) return false;
      if (request.data().empty()) return true;
    }
    const uint64_t expected = std::min<uint64_t>(chunk_bytes_, total_bytes_ - data_.size());
    if (expected == 0 || request.data().size() != expected) return false;
    data_ += request.data();
    return request.crc32c() == codec::Crc32c(request.data());
  }

  bool TakeHeader(const v1::UploadHeader& header) {
    has_header_ = true;
    const absl::Span<const int64_t> shape(header.shape().data(), header.shape().size());
    if (DtypeBytes(header.dtype()) == 0 || !CheckShape(header.dtype(), shape).ok()) {
      return false;
    }
    total_bytes_ = NumElements(shape) * DtypeBytes(header.dtype());
    chunk_bytes_ = header.chunk_bytes();
    const absl::Duration lease =
        absl::Seconds(header.lease().seconds()) + absl::Nanoseconds(header.lease().nanos());
    return total_bytes_ <= kMaxTensorBytes && chunk_bytes_ > 0 && chunk_bytes_ <= (63 << 20) &&
           lease >= absl::ZeroDuration() && header.device() < 2;
  }

  bool is_complete_ = false;
  bool has_more_ = false;
  bool has_header_ = false;
  uint64_t total_bytes_ = 0;
  uint64_t chunk_bytes_ = 0;
  std::string data_;
};

struct Answer {
  grpc::Status status;
  v1::UploadResponse response;
};

class Uploads {
 public:
  static Uploads& Get() {
    static Uploads* const uploads = new Uploads;
    return *uploads;
  }

  // Sends bytes as they are.
  Answer Send(const std::vector<std::string>& messages) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub_.PrepareCall(&context, "/opserve.v1.TensorService/Upload", &queue);
    call->StartCall(nullptr);
    bool goes_on = Await(queue);
    for (size_t i = 0; i < messages.size() && goes_on; ++i) {
      call->Write(fuzz::Delivered(messages[i], 0), nullptr);
      goes_on = Await(queue);  // not after a refusal; the status says why
    }
    call->WritesDone(nullptr);
    Await(queue);
    Answer answer;
    grpc::ByteBuffer bytes;
    call->Read(&bytes, nullptr);
    const bool has_response = Await(queue);
    call->Finish(&answer.status, nullptr);
    Await(queue);
    if (has_response) Check(answer.response.ParseFromString(fuzz::Joined(bytes)), "it is one");
    return answer;
  }

  void CheckHolds(const Answer& answer, const std::string& data) {
    const std::string& handle = answer.response.handle();
    const TensorCalls::DownloadResult download = calls_.Download(handle, /*chunk_bytes=*/1000);
    Check(download.status.ok() && download.checksums_are_right, "what was taken can be had");
    Check(download.bytes == data, "byte for byte");
    Check(calls_.Release(handle) == 1, "and released");
  }

  void CheckIsEmpty() const {
    for (int32_t device : {0, 1}) {
      const auto usage = daemon_.daemon().residents().UsageOfDevice(device);
      Check(usage.bytes == 0 && usage.tensors == 0, "nothing stays behind");
    }
  }

 private:
  static Config SmallConfig() {
    Config config = InProcessDaemon::DefaultConfig();
    config.max_tensor_bytes = kMaxTensorBytes;
    config.max_message_bytes = 64 << 20;
    return config;
  }

  static bool Await(grpc::CompletionQueue& queue) {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  }

  InProcessDaemon daemon_{SmallConfig()};
  TensorCalls calls_{daemon_.target()};
  grpc::GenericStub stub_{
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials())};
};

void Upload(fuzz::Input input) {
  const std::vector<std::string> messages = ReadMessages(input);
  const Model model(messages);
  Uploads& uploads = Uploads::Get();
  const Answer answer = uploads.Send(messages);
  Check(answer.status.ok() == model.is_complete() || model.has_more(),
        "accepted if and only if it is a valid upload");
  if (answer.status.ok()) {
    uploads.CheckHolds(answer, model.data());
  } else {
    const grpc::StatusCode code = answer.status.error_code();
    Check(code == grpc::StatusCode::INVALID_ARGUMENT || code == grpc::StatusCode::DATA_LOSS,
          "a refusal is about the messages");
  }
  uploads.CheckIsEmpty();
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::server::Upload(opserve::fuzz::Input(data, size));
  return 0;
}
