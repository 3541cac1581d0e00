// The Open Inference Protocol: streams of requests.

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"

namespace opserve::server {
namespace {

using inference::ModelInferRequest;
using inference::ModelStreamInferResponse;
using ::testing::HasSubstr;

ModelInferRequest NumberedRequest(int id) {
  ModelInferRequest request = OnesInference(id);
  request.set_id(absl::StrCat(id));
  return request;
}

class InferenceStreamTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }

  ModelStreamInferResponse Receive() {
    ModelStreamInferResponse response;
    EXPECT_TRUE(stream_->Read(&response));
    return response;
  }

  InProcessDaemon daemon_;
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientReaderWriter<ModelInferRequest, ModelStreamInferResponse>>
      stream_ = stub_->ModelStreamInfer(&context_);
};

// Check 24.
TEST_F(InferenceStreamTest, AnswersComeInTheOrderOfTheRequests) {
  constexpr int kRequests = 200;  // more than fit into the window
  InjectFaults("kernel=*,slow=200000;kernel=*,nth=20,slow=100000");
  std::thread sender([&] {
    for (int id = 1; id <= kRequests; ++id) stream_->Write(NumberedRequest(id));
    stream_->WritesDone();
  });
  for (int id = 1; id <= kRequests; ++id) {
    const ModelStreamInferResponse response = Receive();
    EXPECT_EQ(response.error_message(), "");
    EXPECT_EQ(response.infer_response().id(), absl::StrCat(id));
    EXPECT_TRUE(IsAllOnes(response.infer_response(), id)) << id;
    EXPECT_TRUE(response.infer_response().parameters().at("triton_final_response").bool_param());
  }
  sender.join();
  ModelStreamInferResponse none;
  EXPECT_FALSE(stream_->Read(&none));
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

// A large answer, which travels without being copied into the message.
TEST_F(InferenceStreamTest, LargeAnswersComeWhole) {
  constexpr int64_t kElements = 1 << 20;
  ModelInferRequest request = OnesInference(kElements);
  request.set_id("large");
  EXPECT_TRUE(stream_->Write(request));
  const ModelStreamInferResponse response = Receive();
  EXPECT_EQ(response.infer_response().id(), "large");
  EXPECT_TRUE(IsAllOnes(response.infer_response(), kElements));
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

// Checks 24 and 25.
TEST_F(InferenceStreamTest, ErrorsComeInTurnAndEndNothing) {
  ModelInferRequest no_model = NumberedRequest(2);
  no_model.set_model_name("NoSuchModel");
  ModelInferRequest bad_size = NumberedRequest(3);
  bad_size.set_raw_input_contents(0, "");
  ModelInferRequest bad_attribute = NumberedRequest(4);
  (*bad_attribute.mutable_parameters())["reduction"].set_int64_param(99);
  for (const ModelInferRequest& request :
       {NumberedRequest(1), no_model, bad_size, bad_attribute, NumberedRequest(5)}) {
    EXPECT_TRUE(stream_->Write(request));
  }
  EXPECT_TRUE(IsAllOnes(Receive().infer_response(), 1));
  const ModelStreamInferResponse first = Receive();
  EXPECT_THAT(first.error_message(), HasSubstr("Request for unknown model"));
  EXPECT_EQ(first.infer_response().id(), "2");
  EXPECT_EQ(first.infer_response().outputs_size(), 0);
  const ModelStreamInferResponse second = Receive();
  EXPECT_THAT(second.error_message(), HasSubstr("[request id: 3] input byte size mismatch"));
  EXPECT_EQ(second.infer_response().id(), "3");
  const ModelStreamInferResponse third = Receive();
  EXPECT_THAT(third.error_message(), HasSubstr("reduction"));
  EXPECT_EQ(third.infer_response().id(), "4");
  EXPECT_TRUE(IsAllOnes(Receive().infer_response(), 5));
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

// Check 25: of faults of a device, too.
TEST_F(InferenceStreamTest, FaultsEndNothing) {
  InjectFaults("kernel=*,code=561003");
  EXPECT_TRUE(stream_->Write(NumberedRequest(1)));
  EXPECT_NE(Receive().error_message(), "");
  EXPECT_TRUE(stream_->Write(NumberedRequest(2)));
  EXPECT_TRUE(IsAllOnes(Receive().infer_response(), 2));
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

// Check 25: and of what is no request at all.
TEST_F(InferenceStreamTest, NonsenseEndsNothing) {
  grpc::GenericStub stub(grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  const auto await = [&] { queue.Next(&tag, &ok); };
  const auto call =
      stub.PrepareCall(&context, "/inference.GRPCInferenceService/ModelStreamInfer", &queue);
  call->StartCall(nullptr), await();
  for (const std::string& bytes :
       {std::string("\x0a\xff"), NumberedRequest(1).SerializeAsString()}) {
    const grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr), await();
    grpc::ByteBuffer received;
    call->Read(&received, nullptr), await();
    ASSERT_TRUE(ok);
    grpc::Slice whole;
    ASSERT_TRUE(received.DumpToSingleSlice(&whole).ok());
    ModelStreamInferResponse response;
    ASSERT_TRUE(response.ParseFromArray(whole.begin(), static_cast<int>(whole.size())));
    EXPECT_EQ(response.error_message().empty(), bytes.size() > 2);
  }
  grpc::Status status;
  call->WritesDone(nullptr), await();
  call->Finish(&status, nullptr), await();
  EXPECT_TRUE(status.ok());
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
}

TEST_F(InferenceStreamTest, AStreamWithoutRequestsEndsWell) {
  stream_->WritesDone();
  EXPECT_TRUE(stream_->Finish().ok());
}

// Check 39.
TEST_F(InferenceStreamTest, ACancelledStreamLeavesNothing) {
  InjectFaults("kernel=*,slow=300000,count=all");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  for (int id = 1; id <= 10; ++id) EXPECT_TRUE(stream_->Write(NumberedRequest(id)));
  EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), grpc::StatusCode::CANCELLED);
  ClearFaults();
  EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(4)).response, 4));
}

}  // namespace
}  // namespace opserve::server
