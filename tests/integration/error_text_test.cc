// Errors as they arrive: message, details and trailers say what is wrong with the call and nothing
// of the daemon or of others.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "tests/fuzz/error_text.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/requests.h"
#include "tests/integration/tensor_calls.h"

namespace opserve::server {
namespace {

// printf %s alice-token | sha256sum, and so on. Alice may do little, Bob holds what there is.
constexpr char kAliceAndBob[] = R"(
  tenant { name: "alice" operator: "L1LossBackward" operator: "LogSoftmaxBackward"
           device_memory { hard_bytes: 4194304 }
           token_sha256: "9c220f200955d76c0a38d308225e0ef10c5f971acaf2f8d1d8f732affa5bd1dc" }
  tenant { name: "bob" device_memory { reserved_bytes: 25165824 }
           token_sha256: "97dd3707015dcf069cf73022ed7173b1165db6eff24b441cb57fd069a8c4e525" })";

Config WithTenants() {
  Config config = InProcessDaemon::DefaultConfig();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(kAliceAndBob, &config.values));
  config.tenants = *TenantsFrom(config.values);
  config.devices = {0};
  config.streams_per_device = 1;
  config.max_message_bytes = 1 << 20;
  config.max_tensor_bytes = 16 << 20;
  config.resident_max_bytes_per_tenant = 24 << 20;
  return config;
}

class ErrorTextTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  std::unique_ptr<grpc::ClientContext> Alice(const std::string& token = "alice-token") {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
    return context;
  }

  // Counts an answer that is an error, and looks at all that came with it.
  void Look(const std::string& what, const grpc::Status& status,
            const grpc::ClientContext& context) {
    EXPECT_FALSE(status.ok()) << what;
    LookAt(what, status.error_message());
    LookAt(what, DetailOf(status).ShortDebugString());
    for (const auto& [name, value] : context.GetServerTrailingMetadata()) {
      LookAt(absl::StrCat(what, ", trailer ", std::string(name.begin(), name.end())),
             std::string(value.begin(), value.end()));
    }
  }

  void LookAt(const std::string& what, const std::string& text) {
    EXPECT_THAT(GivenAway(text, {"bob"}), testing::IsEmpty()) << what << ": " << text;
    EXPECT_LE(text.size(), 4096u) << what;
  }

  void Execute(const std::string& what, const v1::ExecuteRequest& request,
               const std::string& token = "alice-token") {
    const auto context = Alice(token);
    v1::ExecuteResponse response;
    Look(what, operators_->Execute(context.get(), request, &response), *context);
  }

  void Upload(const std::string& what, const std::vector<v1::UploadRequest>& messages) {
    const auto context = Alice();
    v1::UploadResponse response;
    const auto writer = tensors_->Upload(context.get(), &response);
    for (const v1::UploadRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    Look(what, writer->Finish(), *context);
  }

  void Download(const std::string& what, const std::string& handle) {
    const auto context = Alice();
    v1::DownloadRequest request;
    request.set_handle(handle);
    const auto reader = tensors_->Download(context.get(), request);
    v1::DownloadResponse message;
    while (reader->Read(&message)) {
    }
    Look(what, reader->Finish(), *context);
  }

  static v1::ExecuteRequest Ones(int64_t count) {
    v1::ExecuteRequest request;
    v1::Invocation* invocation = request.add_invocations();
    invocation->set_operator_("L1LossBackward");
    for (const char* name : {"grad_output", "self", "target"}) {
      v1::NamedTensor* input = invocation->add_inputs();
      input->set_name(name);
      input->mutable_tensor()->set_dtype(v1::DATA_TYPE_FLOAT);
      input->mutable_tensor()->add_shape(count);
      input->mutable_tensor()->set_payload(request.payloads_size());
      request.add_payloads(std::string(count * sizeof(float), '\0'));
    }
    return request;
  }

  InProcessDaemon daemon_{WithTenants()};
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials());
  const std::unique_ptr<v1::OperatorService::Stub> operators_ =
      v1::OperatorService::NewStub(channel_);
  const std::unique_ptr<v1::TensorService::Stub> tensors_ = v1::TensorService::NewStub(channel_);
};

TEST_F(ErrorTextTest, OfWhoIsNotLetIn) {
  Execute("no such token", Ones(3), "nobody's");
  Execute("a token cut short", Ones(3), "bob");
  v1::ExecuteRequest forbidden = Ones(3);
  forbidden.mutable_invocations(0)->set_operator_("KlDivBackward");
  Execute("an operator of others", forbidden);
}

TEST_F(ErrorTextTest, OfCallsThatAreWrong) {
  v1::ExecuteRequest request = Ones(3);
  request.mutable_invocations(0)->set_operator_("Nope");
  Execute("no such operator", request);
  request = Ones(3);
  request.mutable_payloads(0)->resize(1);
  Execute("a payload too short", request);
  request = Ones(3);
  request.mutable_invocations(0)->mutable_inputs(0)->mutable_tensor()->set_shape(0, INT64_MAX);
  Execute("a shape too large", request);
  request = Ones(3);
  request.set_idempotency_key(std::string(100, 'k'));
  Execute("a key too long", request);
  request = Ones(3);
  request.mutable_invocations(0)->mutable_inputs(0)->mutable_tensor()->set_resident_tensor("x");
  Execute("no such tensor", request);
  Execute("a message too large", Ones(200000));
  // What is quoted is cut.
  const std::string long_name(900'000, 'x');
  request = Ones(3);
  request.mutable_invocations(0)->set_operator_(long_name);
  Execute("a long operator name", request);
  request = Ones(3);
  request.mutable_invocations(0)->mutable_inputs(0)->set_name(long_name);
  Execute("a long input name", request);
  request = Ones(3);
  request.mutable_invocations(0)->add_attributes()->set_name(long_name);
  Execute("a long attribute name", request);
  request = Ones(3);
  request.mutable_invocations(0)->mutable_inputs(0)->mutable_tensor()->set_resident_tensor(
      long_name);
  Execute("a long handle", request);
}

TEST_F(ErrorTextTest, OfTensorsOfOthersAndOfMemoryThatOthersHold) {
  const auto bob = *Client::Connect(daemon_.target(), {.token = "bob-token"});
  const auto tensor = bob->Upload(Tensor::Owning<float>({3}, {1, 2, 3}), {.chunk_bytes = 4096});
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  Download("a tensor of another tenant", tensor->handle);
  v1::ExecuteRequest request = Ones(3);
  request.mutable_payloads()->RemoveLast();
  request.mutable_invocations(0)->mutable_inputs(2)->mutable_tensor()->set_resident_tensor(
      tensor->handle);
  Execute("a call with it", request);
  Upload("more than the zone",
         UploadMessages({.bytes = CountingBytes(2 << 20), .chunk_bytes = 500000}));
  Upload("more than the quota",
         UploadMessages({.bytes = CountingBytes(1000), .chunk_bytes = 4096, .shape = {1 << 22}}));
}

TEST_F(ErrorTextTest, OfUploadsThatAreWrong) {
  std::vector<v1::UploadRequest> messages =
      UploadMessages({.bytes = CountingBytes(1000), .chunk_bytes = 1000});
  messages[1].set_crc32c(0);
  Upload("a checksum", messages);
  Upload("no header", {messages.begin() + 1, messages.end()});
  Upload("too short", {messages.begin(), messages.begin() + 1});
  messages[0].mutable_header()->set_device(9);
  Upload("no such device", messages);
  messages[0].mutable_header()->set_chunk_bytes(0);
  Upload("no chunks", messages);
}

TEST_F(ErrorTextTest, OfFaultsOfTheDevice) {
  int64_t count = 100;  // another one each time: a known plan would skip stage one
  for (const char* fault : {"kernel=*,code=507035", "call=aclrtMemcpyAsync,code=107002",
                            "call=aclnnL1LossBackwardGetWorkspaceSize,code=561003",
                            "call=aclnnL1LossBackward,code=361001", "device=0,lost"}) {
    InjectFaults(fault);
    Execute(fault, Ones(count++));
    ClearFaults();
    daemon_.AwaitReady();
  }
}

TEST_F(ErrorTextTest, OfADaemonThatStops) {
  auto context = Alice();
  context->set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  v1::ExecuteResponse response;
  Look("too late", operators_->Execute(context.get(), Ones(3), &response), *context);
  daemon_.daemon().Drain();
  Execute("draining", Ones(3));
}

}  // namespace
}  // namespace opserve::server
