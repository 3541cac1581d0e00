// The receiver of a deposit, with senders that keep to the protocol, break it, or leave at any
// point of it.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/deposit/deposit_stream.h"
#include "server/run/resident_tensors.h"
#include "server/schedule/lanes/scheduler.h"
#include "tests/await.h"
#include "tests/integration/deposit_messages.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

using ::testing::HasSubstr;

// A sender whose messages are a test's.
class Sender {
 public:
  explicit Sender(v1::PeerService::Stub& stub) {
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    stream_ = stub.Deposit(&context_);
  }
  ~Sender() {
    if (!is_over_) Cancel();
  }

  // False: the call has ended.
  bool Send(const v1::DepositRequest& request) { return stream_->Write(request); }
  // STEP_NOT_SET: the call has ended.
  v1::DepositResponse Receive() {
    v1::DepositResponse response;
    return stream_->Read(&response) ? response : v1::DepositResponse();
  }
  grpc::Status Finish() {
    is_over_ = true;
    stream_->WritesDone();
    Receive();
    return stream_->Finish();
  }
  void Cancel() {
    context_.TryCancel();
    Finish();
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::DepositRequest, v1::DepositResponse>> stream_;
  bool is_over_ = false;
};

class DepositCallsTest : public ::testing::Test {
 protected:
  explicit DepositCallsTest(const std::function<void(Config*)>& change = [](Config*) {})
      : daemon_([&] {
          certificates_.Sign("peer", "ca", 2, "DNS:peer.test");
          Config config = ReceiverConfig(certificates_);
          change(&config);
          return config;
        }()) {}
  ~DepositCallsTest() override {
    ClearFaults();
    daemon_.EndLeases();
    AwaitRest();
    EXPECT_EQ(daemon_.daemon().residents().Total().tensors, 0u);
    for (int32_t device : {0, 1}) {
      EXPECT_EQ(daemon_.daemon().scheduler().Find(device)->queue().booked_bytes(), 0u) << device;
    }
  }

  // Until nothing is held for a batch.
  void AwaitRest() {
    EXPECT_TRUE(Await([this] { return Metric("opserve_deposit_held_bytes") == 0; }));
    EXPECT_TRUE(Await([this] { return daemon_.HeldByRequests() == HeldByTensors(); }))
        << daemon_.HeldByRequests() << " held, " << HeldByTensors() << " by tensors";
  }
  int64_t HeldByTensors() {
    int64_t held = 0;
    for (const auto& service : daemon_.daemon().scheduler().devices()) {
      if (daemon_.daemon().residents().UsageOfDevice(service->device().id()).tensors > 0) {
        held += static_cast<int64_t>(service->device().memory().statistics().allocated_bytes);
      }
    }
    return held;
  }
  double Metric(const char* name, const MetricLabels& labels = {}) {
    return MetricValue(daemon_.daemon(), name, labels);
  }
  double Deposits(const char* result) {
    return Metric("opserve_deposits_total", {{"direction", "in"}, {"result", result}});
  }
  std::unique_ptr<v1::PeerService::Stub> StubOf(const std::string& certificate) {
    return PeerStub(certificates_, daemon_.daemon().addresses()[1], certificate);
  }
  std::string Reason(const std::string& handle) {
    return DetailOf(calls_.Download(handle).status).reason();
  }
  // Sends the messages one by one, each after the answer to the one before, if it has one.
  static void SendAll(const std::vector<v1::DepositRequest>& messages, size_t count,
                      Sender* sender) {
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(sender->Send(messages[i])) << i;
      const bool is_last_chunk = messages[i].has_chunk() && !messages[i + 1].has_chunk();
      if (!messages[i].has_chunk() || is_last_chunk) {
        ASSERT_NE(sender->Receive().step_case(), v1::DepositResponse::STEP_NOT_SET) << i;
      }
    }
  }

  const Certificates certificates_;
  InProcessDaemon daemon_;
  TensorCalls calls_{daemon_.target()};
  std::unique_ptr<v1::PeerService::Stub> stub_ = StubOf("peer");
};

const std::string& Elements() {
  static const std::string* const bytes = new std::string(CountingBytes(1000));
  return *bytes;
}

std::vector<v1::DepositRequest> WholeDeposit() {
  return {HelloStep(), OfferStep({1000, 0, 10}), ChunkStep(Elements()),
          ChunkStep(CountingBytes(10)), CommitStep()};
}

TEST_F(DepositCallsTest, TensorsAreTheirOwnersUnderTheirHandlesOnceTheyAreCommitted) {
  Sender sender(*stub_);
  const std::vector<v1::DepositRequest> messages = WholeDeposit();
  SendAll(messages, messages.size() - 1, &sender);
  EXPECT_EQ(Metric("opserve_deposit_held_bytes"), 4040);
  EXPECT_EQ(Reason(HandleOf('A')), "tensor_arriving");

  ASSERT_TRUE(sender.Send(CommitStep()));

  EXPECT_TRUE(sender.Receive().has_committed());
  const TensorCalls::DownloadResult result = calls_.Download(HandleOf('A'));
  EXPECT_EQ(result.bytes, Elements());
  EXPECT_EQ(result.header.version(), 3u);
  EXPECT_TRUE(calls_.Download(HandleOf('B')).status.ok());
  EXPECT_EQ(calls_.Download(HandleOf('C')).bytes, CountingBytes(10));
  const auto other =
      *Client::Connect(daemon_.target(), {.token = "a", .retry = {.max_attempts = 1}});
  EXPECT_EQ(ReasonOf(other->Download(HandleOf('A')).status()), "tensor_arriving");
  EXPECT_TRUE(sender.Finish().ok());
  EXPECT_EQ(ReasonOf(other->Download(HandleOf('A')).status()), "tensor_lost");
  EXPECT_EQ(Deposits("moved"), 3);
  EXPECT_EQ(Metric("opserve_deposited_bytes_total", {{"direction", "in"}}), 4040);
  EXPECT_EQ(Metric("opserve_deposit_held_bytes"), 0);
}

TEST_F(DepositCallsTest, WhereverTheSenderLeavesNothingIsHereUnlessItWasCommitted) {
  const std::vector<v1::DepositRequest> messages = WholeDeposit();
  for (size_t sent = 0; sent <= messages.size(); ++sent) {
    SCOPED_TRACE(sent);
    Sender sender(*stub_);
    SendAll(messages, sent, &sender);
    const bool is_committed = sent == messages.size();
    if (sent > 0 && !is_committed) {
      EXPECT_EQ(Reason(HandleOf('A')), "tensor_arriving");
    }

    sender.Cancel();

    if (is_committed) {
      EXPECT_EQ(calls_.Download(HandleOf('A')).bytes, Elements());
    } else {
      EXPECT_TRUE(Await([&] { return Reason(HandleOf('A')) == "tensor_lost"; }));
      EXPECT_EQ(daemon_.daemon().residents().Total().tensors, 0u);
    }
    AwaitRest();
  }
  EXPECT_EQ(Deposits("lost"), 9);  // three of a batch, offered, and after one chunk and the other
}

TEST_F(DepositCallsTest, AnOfferOfWhatIsHereSaysSo) {
  Sender first(*stub_);
  SendAll(WholeDeposit(), 5, &first);
  Sender second(*stub_);
  ASSERT_TRUE(second.Send(HelloStep()));
  EXPECT_TRUE(second.Receive().has_welcome());
  // The sender has lost the first one.
  EXPECT_EQ(first.Finish().error_code(), grpc::StatusCode::CANCELLED);

  ASSERT_TRUE(second.Send(OfferStep({1000, 0, 10, 5})));

  const v1::DepositVerdict verdict = second.Receive().verdict();
  ASSERT_EQ(verdict.tensors_size(), 4);
  EXPECT_EQ(verdict.tensors(0).answer(), v1::TensorVerdict::ANSWER_PRESENT);
  EXPECT_EQ(verdict.tensors(2).answer(), v1::TensorVerdict::ANSWER_PRESENT);
  EXPECT_EQ(verdict.tensors(3).answer(), v1::TensorVerdict::ANSWER_ACCEPTED);
  ASSERT_TRUE(second.Send(ChunkStep(CountingBytes(5))));
  EXPECT_TRUE(second.Receive().has_sealed());
  v1::DepositRequest commit = CommitStep();
  commit.mutable_commit()->add_released(3);
  ASSERT_TRUE(second.Send(commit));
  EXPECT_TRUE(second.Receive().has_committed());
  EXPECT_TRUE(second.Finish().ok());
  EXPECT_EQ(Reason(HandleOf('D')), "tensor_lost");
  EXPECT_EQ(daemon_.daemon().residents().Total().tensors, 3u);
}

TEST_F(DepositCallsTest, MessagesOutOfTurnEndTheCall) {
  const auto with = [](v1::DepositRequest request,
                       const std::function<void(v1::DepositRequest*)>& change) {
    change(&request);
    return request;
  };
  const auto offer_with = [&](const std::function<void(v1::DepositedTensor*)>& change) {
    return with(OfferStep({1000}), [&](v1::DepositRequest* request) {
      change(request->mutable_offer()->mutable_tensors(0));
    });
  };
  const v1::DepositRequest offer = OfferStep({1000});
  const v1::DepositRequest chunk = ChunkStep(Elements());
  struct Case {
    std::vector<v1::DepositRequest> messages;  // the last is wrong
    const char* error;
    grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
  };
  const Case kCases[] = {
      {{v1::DepositRequest()}, "step: is none, expected hello"},
      {{offer}, "step: is offer, expected hello"},
      {{HelloStep("short")}, "run: has 5 bytes, expected 8"},
      {{HelloStep(daemon_.daemon().residents().run())}, "run: is this daemon's own"},
      {{HelloStep(), HelloStep()}, "step: is hello, expected offer"},
      {{HelloStep(), chunk}, "step: is chunk, expected offer"},
      {{HelloStep(), CommitStep()}, "step: is commit, expected offer"},
      {{HelloStep(), OfferStep({})}, "tensors: there are 0, expected 1 to 256"},
      {{HelloStep(), OfferStep(std::vector<int64_t>(257, 1))}, "tensors: there are 257"},
      {{HelloStep(), with(offer, [](auto* r) { r->set_data("x"); })}, "data: is there"},
      {{HelloStep(), offer_with([](auto* t) { t->set_handle("x"); })},
       "handle: is none of the run"},
      {{HelloStep(), offer_with([](auto* t) { t->set_handle(std::string(30, 'x')); })},
       "handle: is none of the run"},
      {{HelloStep(),
        with(offer, [](auto* r) { *r->mutable_offer()->add_tensors() = r->offer().tensors(0); })},
       "handle: occurs twice"},
      {{HelloStep(), offer_with([](auto* t) { t->set_version(0); })}, "version: is 0"},
      {{HelloStep(), offer_with([](auto* t) { t->clear_dtype(); })}, "dtype: 0 is not"},
      {{HelloStep(), offer_with([](auto* t) { t->set_shape(0, -1); })}, "shape: "},
      {{HelloStep(), offer_with([](auto* t) {
          t->set_shape(0, int64_t{1} << 62);
          t->add_shape(int64_t{1} << 62);
        })},
       "shape: "},
      {{HelloStep(), offer, offer}, "step: is offer, expected chunk"},
      {{HelloStep(), offer, CommitStep()}, "step: is commit, expected chunk"},
      {{HelloStep(), offer, ChunkStep("")}, "has 0 bytes, expected 4000"},
      {{HelloStep(), offer, ChunkStep(Elements() + "x")}, "has 4001 bytes, expected 4000"},
      {{HelloStep(), offer, with(chunk, [](auto* r) { r->mutable_chunk()->set_crc32c(1); })},
       "not 00000001",
       grpc::StatusCode::DATA_LOSS},
      {{HelloStep(), offer, chunk, chunk}, "step: is chunk, expected commit"},
      {{HelloStep(), offer, chunk, with(CommitStep(), [](auto* r) { r->set_data("x"); })},
       "data: is there"},
      {{HelloStep(), offer, chunk, CommitStep(), CommitStep()}, "step: is commit, expected offer"},
      {{HelloStep(), OfferStep({0}), chunk}, "step: is chunk, expected commit"},
      {{ProgramStep(1)}, "step: is program, expected hello"},
      {{HelloStep(), offer, ProgramStep(1)}, "step: is program, expected chunk"},
      {{HelloStep(), offer, chunk, ProgramStep(1)}, "step: is program, expected commit"},
      {{HelloStep(), with(ProgramStep(1), [](auto* r) { r->set_data("x"); })},
       "data: is there, in a message with program"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.error);
    Sender sender(*stub_);
    for (const v1::DepositRequest& message : c.messages) {
      ASSERT_TRUE(sender.Send(message));
      const bool is_last = &message == &c.messages.back();
      const auto answer = is_last ? v1::DepositResponse() : sender.Receive();
      EXPECT_EQ(answer.step_case() == v1::DepositResponse::STEP_NOT_SET, is_last);
    }
    // Answers that were under way are read before the status.
    while (sender.Receive().step_case() != v1::DepositResponse::STEP_NOT_SET) {
    }
    const grpc::Status status = sender.Finish();
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.error));
    AwaitRest();
    daemon_.EndLeases();
  }
}

TEST_F(DepositCallsTest, WhatIsNoMessageIsRefused) {
  const DepositConfig config =
      *SenderConfig(certificates_, daemon_.daemon().addresses()[1]).deposit;
  const std::string large(65 << 20, 'x');  // above --max_message_bytes
  for (const auto& [bytes, error] :
       {std::pair(std::string("\x0a\x64"), "malformed"), std::pair(large, "at most 67108864")}) {
    auto stream = *DepositStream::Create(config, absl::Now() + absl::Minutes(1));
    ASSERT_EQ(stream->Begin(), absl::OkStatus());
    const grpc::Slice slice(bytes);
    stream->Send(grpc::ByteBuffer(&slice, 1)).IgnoreError();
    const absl::Status status = stream->Receive(v1::DepositResponse::kWelcome).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(error));
  }
}

TEST_F(DepositCallsTest, AStreamThatEndsWithinABatchIsNoDeposit) {
  Sender sender(*stub_);
  SendAll(WholeDeposit(), 3, &sender);
  const grpc::Status status = sender.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("ended before the batch was committed"));
  AwaitRest();
}

TEST_F(DepositCallsTest, WhatThePeerMayNotDepositIsRefusedWithTheReason) {
  struct Case {
    const char* name;
    v1::DepositRequest offer;
    const char* reason;
    const char* message;
  };
  const int64_t kMillion = 1 << 20;
  const Case kCases[] = {
      {"tenant", OfferStep({1}, "default"), "forbidden",
       "peer dns:peer.test may not deposit tensors of tenant \"default\" (peer.tenant)"},
      {"max_bytes", OfferStep({3 * kMillion}), "too_large",
       "exceed its 8388608 bytes (peer.max_bytes)"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    Sender sender(*stub_);
    SendAll({HelloStep(), c.offer}, 1, &sender);
    ASSERT_TRUE(sender.Send(c.offer));
    const v1::DepositVerdict verdict = sender.Receive().verdict();
    ASSERT_EQ(verdict.tensors_size(), 1);
    EXPECT_EQ(verdict.tensors(0).answer(), v1::TensorVerdict::ANSWER_REFUSED);
    EXPECT_EQ(verdict.tensors(0).reason(), c.reason);
    EXPECT_THAT(verdict.tensors(0).message(), HasSubstr(c.message));
    // The next offer may be taken.
    ASSERT_TRUE(sender.Send(OfferStep({1})));
    EXPECT_EQ(sender.Receive().verdict().tensors(0).answer(), v1::TensorVerdict::ANSWER_ACCEPTED);
  }
  EXPECT_EQ(Deposits("refused"), 2);
}

class ProgramDepositsTest : public DepositCallsTest {
 protected:
  ProgramDepositsTest()
      : DepositCallsTest([](Config* config) {
          config->prepared_max_programs_per_tenant = 3;
          config->tenants.tenants[0].operators = {"Relu"};
        }) {}

  // The answer to a program between batches.
  v1::ProgramVerdict Verdict(const v1::DepositRequest& program) {
    EXPECT_TRUE(sender_.Send(program));
    const v1::DepositResponse response = sender_.Receive();
    EXPECT_TRUE(response.has_prepared());
    return response.prepared();
  }
  // What the program makes of the values, or the reason why it does not.
  std::string Call(char letter, std::vector<float> payload, const std::string& tensor) {
    v1::ExecuteRequest request;
    request.mutable_prepared()->set_program(ProgramHandleOf(letter));
    request.mutable_prepared()->add_residents(tensor);
    request.add_payloads(Bytes(payload));
    v1::ExecuteResponse response;
    const grpc::Status status = calls_.Execute(request, &response);
    return status.ok() ? response.payloads(0) : DetailOf(status).reason();
  }
  double Programs(const char* result) {
    return Metric("opserve_deposited_programs_total", {{"direction", "in"}, {"result", result}});
  }

  Sender sender_{*stub_};
};

TEST_F(ProgramDepositsTest, AreTheirOwnersUnderTheirHandles) {
  ASSERT_TRUE(sender_.Send(HelloStep()));
  EXPECT_TRUE(sender_.Receive().welcome().takes_programs());
  EXPECT_TRUE(Verdict(ProgramStep(2, 2)).taken());
  EXPECT_TRUE(Verdict(ProgramStep(2, 2)).taken());  // again: they are there already
  // Batches come before and after programs.
  for (const v1::DepositRequest& step : {OfferStep({2}), ChunkStep(Bytes({1, 2})), CommitStep()}) {
    ASSERT_TRUE(sender_.Send(step));
    sender_.Receive();
  }
  v1::DepositRequest expired = ProgramStep(3, 3);
  expired.mutable_program()->mutable_handles(2)->mutable_lease_left()->set_seconds(0);
  expired.mutable_program()->mutable_handles()->DeleteSubrange(0, 2);
  EXPECT_TRUE(Verdict(expired).taken());

  EXPECT_EQ(Call('a', {10, 20}, HandleOf('A')), Bytes({21, 42}));
  EXPECT_EQ(Call('b', {10, 20}, HandleOf('A')), Bytes({21, 42}));
  EXPECT_EQ(Call('c', {10, 20}, HandleOf('A')), "program_unknown");
  EXPECT_EQ(Programs("moved"), 3);
  EXPECT_EQ(Metric("opserve_prepared_program_events_total", {{"event", "adopted"}}), 2);
  EXPECT_EQ(Metric("opserve_prepared_programs"), 2);
}

TEST_F(ProgramDepositsTest, WhatCannotBeTakenIsRefusedWithTheReasonAndTheStreamGoesOn) {
  ASSERT_TRUE(sender_.Send(HelloStep()));
  EXPECT_TRUE(sender_.Receive().has_welcome());
  const auto with = [](const std::function<void(v1::DepositedProgram*)>& change) {
    v1::DepositRequest request = ProgramStep(1);
    change(request.mutable_program());
    return request;
  };
  struct Case {
    v1::DepositRequest program;
    const char* reason;
    const char* message;
  };
  const Case kCases[] = {
      {ProgramStep(1, 1, "default"), "forbidden", "may not deposit tensors of tenant"},
      {ProgramStep(1, 1, "a"), "forbidden", "Add"},
      {with([](auto* p) { p->clear_handles(); }), "invalid", "handles: there are 0"},
      {ProgramStep(1, 257), "invalid", "handles: there are 257, expected 1 to 256"},
      {with([](auto* p) { p->mutable_handles(0)->set_handle("x"); }), "invalid",
       "handle: has 1 bytes, expected 16"},
      {with([](auto* p) { *p->add_handles() = p->handles(0); }), "invalid", "handle: occurs twice"},
      {with([](auto* p) { p->clear_program(); }), "invalid", ""},
      {with([](auto* p) { p->mutable_program()->mutable_inputs(0)->set_shape(0, -1); }), "invalid",
       "inputs[0]"},
      {with([](auto* p) { p->add_residents()->add_shape(-1); }), "invalid", "dtype"},
      {with([](auto* p) {
         p->mutable_program()
             ->mutable_program()
             ->mutable_invocations(0)
             ->mutable_inputs(0)
             ->mutable_tensor()
             ->set_resident_tensor(HandleOf('A'));
       }),
       "invalid", "residents: a tensor is missing"},
      {ProgramStep(1, 4), "tenant_memory", "4 handles"},
  };
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.message);
    const v1::ProgramVerdict verdict = Verdict(c.program);
    EXPECT_FALSE(verdict.taken());
    EXPECT_EQ(verdict.reason(), c.reason);
    EXPECT_THAT(verdict.message(), HasSubstr(c.message));
  }
  EXPECT_EQ(Programs("refused"), std::size(kCases));
  EXPECT_EQ(Metric("opserve_prepared_programs"), 0);
  EXPECT_TRUE(Verdict(ProgramStep(1)).taken());
  EXPECT_TRUE(sender_.Finish().ok());
}

TEST_F(DepositCallsTest, OnlyAPeerMayDepositAndItMayDoNothingElse) {
  // "client" has a certificate of the same authority.
  const auto stranger = StubOf("client");
  Sender sender(*stranger);
  sender.Send(HelloStep());
  const grpc::Status refused = sender.Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED) << refused.error_message();
  EXPECT_THAT(refused.error_message(), HasSubstr("names as a peer"));

  const auto local = v1::PeerService::NewStub(
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials()));
  Sender anonymous(*local);
  anonymous.Send(HelloStep());
  EXPECT_EQ(anonymous.Finish().error_code(), grpc::StatusCode::PERMISSION_DENIED);

  // Callers without credentials are the tenant "b"; a peer is none of them.
  const auto as_client = *Client::Connect(
      daemon_.daemon().addresses()[1], {.tls = TlsOptions{.ca_file = certificates_.File("ca"),
                                                          .cert_file = certificates_.File("peer"),
                                                          .key_file = certificates_.Key("peer")},
                                        .retry = {.max_attempts = 1}});
  for (const absl::Status& status :
       {as_client->GetServerStatus().status(), as_client->ListTensors().status(),
        as_client->Upload(Tensor::Of<float>({1}, {1.0f})).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("may deposit tensors and call nothing"));
  }
}

class StallingSenderTest : public DepositCallsTest {
 protected:
  StallingSenderTest()
      : DepositCallsTest([](Config* config) {
          config->upload_stall_timeout = absl::Milliseconds(50);
          config->upload_min_bytes_per_second = uint64_t{1} << 30;
        }) {}
};

TEST_F(StallingSenderTest, ABatchThatStallsGivesItsMemoryBack) {
  // Between batches nothing is held, so a sender may take its time: its daemon still serves.
  Sender patient(*stub_);
  SendAll({HelloStep("2nd run.")}, 1, &patient);
  const std::vector<v1::DepositRequest> messages = WholeDeposit();
  for (size_t sent = 2; sent < messages.size(); ++sent) {
    SCOPED_TRACE(sent);
    Sender sender(*stub_);
    SendAll(messages, sent, &sender);
    EXPECT_EQ(sender.Receive().step_case(), v1::DepositResponse::STEP_NOT_SET);
    const grpc::Status status = sender.Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED) << status.error_message();
    EXPECT_EQ(DetailOf(status).reason(), "upload_stalled");
    AwaitRest();
  }
  v1::DepositRequest offer = OfferStep({1});
  offer.mutable_offer()->mutable_tensors(0)->set_handle(std::string(22, 'A') + "2nd run.");
  ASSERT_TRUE(patient.Send(offer));
  EXPECT_TRUE(patient.Receive().has_verdict());
}

TEST_F(DepositCallsTest, AReceiverThatEndsTakesNothingMore) {
  Sender idle(*stub_);
  SendAll(WholeDeposit(), 1, &idle);

  EXPECT_EQ(daemon_.daemon().Drain(), 0);

  const grpc::Status status = idle.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  EXPECT_EQ(DetailOf(status).reason(), "draining");
}

}  // namespace
}  // namespace opserve::server
