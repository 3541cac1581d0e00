// Deposits of another daemon's tensors, message by message: the receiver takes a step if and only
// if a model of the protocol does; what it took belongs to its owner, byte for byte; of a batch
// without a commit nothing stays behind. Programs between batches are taken or refused.
//
// Input: messages, each as a byte of flags, its size in two bytes, its bytes. Flag 1: the checksum
// is set right before it is sent. Flag 2: handles get the run of the first message, and a chunk
// gets the size that is expected, or few inputs would get beyond them.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "google/protobuf/stubs/logging.h"
#include "opserve/v1/peer_service.pb.h"
#include "proto/codec/crc32c.h"
#include "proto/codec/payload_message.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/deposit/deposit_stream.h"
#include "server/run/prepared_programs.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/two_tenants.h"

namespace opserve::server {
namespace {

using fuzz::Check;

constexpr uint64_t kPeerBytes = 1 << 16;
constexpr size_t kMaxMessages = 24;
constexpr size_t kRunBytes = 8;
constexpr size_t kHandleBytes = 30;

struct Message {
  uint8_t flags = 0;
  std::string bytes;
};

std::vector<Message> ReadMessages(fuzz::Input input) {
  std::vector<Message> messages;
  while (!input.AtEnd() && messages.size() < kMaxMessages) {
    Message& message = messages.emplace_back();
    message.flags = input.Byte();
    message.bytes = std::string(input.Take(input.Short()));
  }
  return messages;
}

// A tensor of the present offer, with the bytes that have come.
struct Tensor {
  v1::DepositedTensor announced;
  uint64_t bytes = 0;
  std::string data = {};
  bool is_accepted = false;

  // Long enough for this program to find it.
  bool has_lease() const { return announced.lease().seconds() > 60; }
};

bool MayDeposit(const std::string& tenant) { return tenant == "a" || tenant == "b"; }

// The sender's side of one stream, and what the protocol says of each message.
class Model {
 public:
  explicit Model(const std::string& own_run) : own_run_(own_run) {}

  // Makes the message better as its flags say; whether the receiver has to take it.
  bool Take(uint8_t flags, v1::DepositRequest* request) {
    if ((flags & 2) != 0) Mend(request);
    if ((flags & 1) != 0 && request->has_chunk()) {
      request->mutable_chunk()->set_crc32c(codec::Crc32c(request->data()));
    }
    if (request->has_program() && expected_ == v1::DepositRequest::kOffer) {
      tenant_ = request->program().tenant();
      answer_ = v1::DepositResponse::kPrepared;
      return request->data().empty();
    }
    if (request->step_case() != expected_) return false;
    if (!request->has_chunk() && !request->data().empty()) return false;
    switch (expected_) {
      case v1::DepositRequest::kHello:
        run_ = request->hello().run();
        expected_ = v1::DepositRequest::kOffer;
        return run_.size() == kRunBytes && run_ != own_run_;
      case v1::DepositRequest::kOffer:
        return TakeOffer(request->offer());
      case v1::DepositRequest::kChunk:
        return TakeChunk(*request);
      default:
        return TakeCommit(request->commit());
    }
  }
  // Which answer follows the message that was taken last; STEP_NOT_SET: none.
  v1::DepositResponse::StepCase answer() const { return answer_; }

  void TakeVerdict(const v1::ProgramVerdict& verdict) const {
    Check(verdict.taken() == verdict.message().empty(), "a refusal has a reason");
    Check(MayDeposit(tenant_) || !verdict.taken(), "only tenants that it may deposit");
  }

  void TakeVerdict(const v1::DepositVerdict& verdict) {
    Check(verdict.tensors_size() == static_cast<int>(offered_.size()), "a verdict for each");
    uint64_t bytes = 0;
    for (size_t i = 0; i < offered_.size(); ++i) {
      const v1::TensorVerdict& one = verdict.tensors(static_cast<int>(i));
      const auto here = committed_.find({tenant_, offered_[i].announced.handle()});
      const bool is_present = one.answer() == v1::TensorVerdict::ANSWER_PRESENT;
      Check(!is_present || here != committed_.end(), "only what is here is present");
      Check(is_present || here == committed_.end() || !here->second.has_lease() ||
                !MayDeposit(tenant_),
            "what is here is present");
      offered_[i].is_accepted = one.answer() == v1::TensorVerdict::ANSWER_ACCEPTED;
      if (offered_[i].is_accepted) bytes += offered_[i].bytes;
      if (one.answer() == v1::TensorVerdict::ANSWER_REFUSED) {
        Check(!one.reason().empty() && !one.message().empty(), "a refusal has a reason");
      }
    }
    Check(bytes <= kPeerBytes, "a peer has its share at most");
    const bool has_accepted = std::any_of(offered_.begin(), offered_.end(),
                                          [](const Tensor& tensor) { return tensor.is_accepted; });
    Check(!has_accepted || MayDeposit(tenant_), "only tenants that it may deposit");
    if (has_accepted) expected_ = v1::DepositRequest::kChunk;
    SkipComplete();
  }

  // The commit's answer has come.
  void TakeCommitted() {
    for (Tensor& tensor : to_commit_) {
      const std::string handle = tensor.announced.handle();
      committed_.insert_or_assign({tenant_, handle}, std::move(tensor));
    }
    to_commit_.clear();
  }
  // A handle of another tenant's cannot be committed again; the receiver learns it then.
  bool CommitMayFail() const {
    for (const Tensor& tensor : to_commit_) {
      for (const char* tenant : {"a", "b"}) {
        if (committed_.count({tenant, tensor.announced.handle()}) > 0) return true;
      }
    }
    return false;
  }
  // Once after the last chunk of a batch, or the verdict of one without chunks.
  bool TakeIsSealed() { return std::exchange(is_sealed_next_, false); }
  // By tenant and handle.
  const std::map<std::pair<std::string, std::string>, Tensor>& committed() const {
    return committed_;
  }
  // The stream may end here.
  bool is_between_batches() const { return expected_ == v1::DepositRequest::kOffer; }

 private:
  void Mend(v1::DepositRequest* request) const {
    if (request->has_offer()) {
      for (v1::DepositedTensor& tensor : *request->mutable_offer()->mutable_tensors()) {
        std::string handle = tensor.handle();
        handle.resize(kHandleBytes - kRunBytes, 'h');
        tensor.set_handle(handle + run_);
      }
    }
    if (request->has_chunk() && expected_ == v1::DepositRequest::kChunk) {
      request->mutable_data()->resize(offered_[receiving_].bytes, 'd');
    }
  }

  bool TakeOffer(const v1::DepositOffer& offer) {
    tenant_ = offer.tenant();
    offered_.clear();
    receiving_ = 0;
    if (offer.tensors().empty() || offer.tensors_size() > 256) return false;
    for (const v1::DepositedTensor& tensor : offer.tensors()) {
      const std::string& handle = tensor.handle();
      if (handle.size() != kHandleBytes || handle.substr(kHandleBytes - kRunBytes) != run_ ||
          tensor.version() == 0) {
        return false;
      }
      for (const Tensor& other : offered_) {
        if (other.announced.handle() == handle) return false;
      }
      const absl::Span<const int64_t> shape(tensor.shape().data(), tensor.shape().size());
      if (DtypeBytes(tensor.dtype()) == 0 || !CheckShape(tensor.dtype(), shape).ok()) return false;
      offered_.push_back(
          {.announced = tensor,
           .bytes = static_cast<uint64_t>(NumElements(shape) * DtypeBytes(tensor.dtype()))});
    }
    answer_ = v1::DepositResponse::kVerdict;
    return true;
  }

  // Tensors of a peer are smaller than a chunk.
  bool TakeChunk(const v1::DepositRequest& request) {
    Tensor& tensor = offered_[receiving_];
    if (request.data().size() != tensor.bytes) return false;
    if (request.chunk().crc32c() != codec::Crc32c(request.data())) return false;
    tensor.data = request.data();
    ++receiving_;
    answer_ = v1::DepositResponse::STEP_NOT_SET;
    SkipComplete();
    return true;
  }

  // To the tensor whose chunk comes next.
  void SkipComplete() {
    if (expected_ != v1::DepositRequest::kChunk) return;
    while (receiving_ < offered_.size() &&
           (!offered_[receiving_].is_accepted || offered_[receiving_].bytes == 0)) {
      ++receiving_;
    }
    if (receiving_ < offered_.size()) return;
    expected_ = v1::DepositRequest::kCommit;
    is_sealed_next_ = true;
  }

  bool TakeCommit(const v1::DepositCommit& commit) {
    to_commit_.clear();
    for (size_t i = 0; i < offered_.size(); ++i) {
      const bool is_released = std::find(commit.released().begin(), commit.released().end(), i) !=
                               commit.released().end();
      if (offered_[i].is_accepted && !is_released) to_commit_.push_back(offered_[i]);
    }
    expected_ = v1::DepositRequest::kOffer;
    answer_ = v1::DepositResponse::kCommitted;
    return true;
  }

  const std::string own_run_;
  std::string run_;
  std::string tenant_;
  v1::DepositRequest::StepCase expected_ = v1::DepositRequest::kHello;
  v1::DepositResponse::StepCase answer_ = v1::DepositResponse::kWelcome;
  bool is_sealed_next_ = false;
  std::vector<Tensor> offered_;
  std::vector<Tensor> to_commit_;
  size_t receiving_ = 0;
  std::map<std::pair<std::string, std::string>, Tensor> committed_;
};

// Whether it is a message, as the daemon reads it.
bool Read(const std::string& bytes, v1::DepositRequest* request) {
  const auto split = codec::PayloadMessage::Split(fuzz::Delivered(bytes, 0), /*max_payloads=*/1);
  if (!split.ok() || !split->ParseHeader(request).ok()) return false;
  if (!split->payloads().empty()) {
    for (absl::string_view piece : split->payloads()[0].pieces) {
      request->mutable_data()->append(piece.data(), piece.size());
    }
  }
  return true;
}

class Receiver {
 public:
  static Receiver& Get() {
    static Receiver* const receiver = new Receiver;
    return *receiver;
  }

  const std::string& run() { return daemon_.daemon().residents().run(); }

  // Over a Unix socket this process's user is the peer.
  std::unique_ptr<DepositStream> Begin() {
    DepositConfig config;
    config.address = daemon_.target();
    auto stream = *DepositStream::Create(config, absl::Now() + absl::Minutes(1));
    Check(stream->Begin().ok(), "a peer may deposit");
    return stream;
  }

  void CheckHolds(const std::string& tenant, const Tensor& tensor) {
    const auto result = clients_[tenant]->Download(tensor.announced.handle());
    if (!tensor.has_lease() && !result.ok()) return;
    Check(result.ok(), "what was committed can be had");
    const absl::Span<const std::byte> bytes = result->bytes();
    Check(
        absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()) == tensor.data,
        "byte for byte");
  }

  void CheckHoldsNothing() {
    daemon_.EndLeases();
    Check(Await([this] {
            Daemon& daemon = daemon_.daemon();
            for (const auto& service : daemon.scheduler().devices()) {
              if (service->queue().booked_bytes() > 0) return false;
            }
            return daemon.residents().Total().tensors == 0;
          }),
          "nothing stays behind");
  }

 private:
  Receiver() {
    for (const char* tenant : {"a", "b"}) {
      clients_[tenant] =
          *Client::Connect(daemon_.target(), {.token = tenant, .retry = {.max_attempts = 1}});
    }
  }

  static Config PeerConfig() {
    Config config = InProcessDaemon::DefaultConfig();
    AddTwoTenants(&config);
    config.peers = {
        {.certificate_name = "", .uid = getuid(), .tenants = {"a", "b"}, .max_bytes = kPeerBytes}};
    return config;
  }

  InProcessDaemon daemon_{PeerConfig()};
  std::map<std::string, std::unique_ptr<Client>> clients_;
};

// Sends the messages as far as the receiver takes them, and how the call ended.
absl::Status Send(const std::vector<Message>& messages, DepositStream& stream, Model* model,
                  bool* is_right) {
  for (const Message& message : messages) {
    v1::DepositRequest request;
    const bool is_message = Read(message.bytes, &request);
    *is_right = is_message && model->Take(message.flags, &request);
    const bool is_changed = is_message && (message.flags & 3) != 0;
    const std::string bytes = is_changed ? request.SerializeAsString() : message.bytes;
    stream.Send(fuzz::Delivered(bytes, 0)).IgnoreError();  // it says what is wrong to a reader
    if (!*is_right) return stream.Receive(v1::DepositResponse::kWelcome).status();
    if (model->answer() != v1::DepositResponse::STEP_NOT_SET) {
      const auto response = stream.Receive(model->answer());
      if (!response.ok() && request.has_commit() && model->CommitMayFail()) {
        Check(absl::IsAlreadyExists(response.status()), "another tenant has the handle");
        *is_right = false;
        return absl::InvalidArgumentError("a handle is known");
      }
      Check(response.ok(), "a right message is answered");
      if (response->has_verdict()) model->TakeVerdict(response->verdict());
      if (response->has_committed()) model->TakeCommitted();
      if (response->has_prepared()) model->TakeVerdict(response->prepared());
    }
    if (model->TakeIsSealed()) {
      Check(stream.Receive(v1::DepositResponse::kSealed).ok(), "a whole batch is sealed");
    }
  }
  *is_right = model->is_between_batches();
  return stream.Close();
}

void Deposit(fuzz::Input input) {
  Receiver& receiver = Receiver::Get();
  Model model(receiver.run());
  {
    const std::unique_ptr<DepositStream> stream = receiver.Begin();
    bool is_right = false;
    const absl::Status status = Send(ReadMessages(input), *stream, &model, &is_right);
    Check(is_right ? status.ok() : absl::IsInvalidArgument(status) || absl::IsDataLoss(status),
          "a stream ends at the first message that is wrong");
  }
  for (const auto& [owner, tensor] : model.committed()) receiver.CheckHolds(owner.first, tensor);
  receiver.CheckHoldsNothing();
}

}  // namespace
}  // namespace opserve::server

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto* const quiet = new google::protobuf::LogSilencer;  // of UTF-8 complaints
  static_cast<void>(quiet);
  opserve::server::Deposit(opserve::fuzz::Input(data, size));
  return 0;
}
