// The Open Inference Protocol: what a daemon and its models say of themselves.

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "proto/dtypes/dtype.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"

namespace opserve::server {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// What a method of the stub answers.
template <typename Request, typename Response>
grpc::Status Ask(InferenceStub& stub,
                 grpc::Status (InferenceStub::*method)(grpc::ClientContext*, const Request&,
                                                       Response*),
                 const Request& request, Response* response) {
  grpc::ClientContext context;
  return (stub.*method)(&context, request, response);
}

template <typename Request>
Request Named(const std::string& name, const std::string& version = "") {
  Request request;
  request.set_name(name);
  request.set_version(version);
  return request;
}

// Sends a message to a method, whatever its kind; what it answers last, if anything.
struct RawAnswer {
  grpc::Status status;
  std::string bytes;
};
RawAnswer CallRaw(const std::string& target, const std::string& path, const std::string& bytes) {
  grpc::GenericStub stub(grpc::CreateChannel(target, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  RawAnswer answer;
  const auto await = [&] { queue.Next(&tag, &ok); };
  const auto call = stub.PrepareCall(&context, path, &queue);
  const grpc::Slice slice(bytes);
  call->StartCall(nullptr), await();
  call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr), await();
  while (true) {
    grpc::ByteBuffer response;
    call->Read(&response, nullptr), await();
    if (!ok) break;
    grpc::Slice whole;
    EXPECT_TRUE(response.DumpToSingleSlice(&whole).ok());
    answer.bytes.assign(whole.begin(), whole.end());
  }
  call->Finish(&answer.status, nullptr), await();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return answer;
}

grpc::Status CallWithNothing(const std::string& target, const std::string& path) {
  return CallRaw(target, path, "").status;
}

class InferenceModelsTest : public ::testing::Test {
 protected:
  InProcessDaemon daemon_;
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
};

// Checks 1 and 2.
TEST_F(InferenceModelsTest, EveryMethodAnswersAndNoErrorIsSilent) {
  const google::protobuf::ServiceDescriptor* service =
      inference::ServerLiveRequest::descriptor()->file()->FindServiceByName("GRPCInferenceService");
  ASSERT_EQ(service->full_name(), "inference.GRPCInferenceService");
  ASSERT_EQ(service->method_count(), 20);
  const std::set<std::string> unsupported = {"RepositoryModelLoad",
                                             "RepositoryModelUnload",
                                             "SystemSharedMemoryRegister",
                                             "SystemSharedMemoryUnregister",
                                             "CudaSharedMemoryRegister",
                                             "CudaSharedMemoryUnregister",
                                             "TraceSetting",
                                             "LogSettings"};
  for (int i = 0; i < service->method_count(); ++i) {
    const std::string& name = service->method(i)->name();
    const grpc::Status status =
        CallWithNothing(daemon_.target(), absl::StrCat("/", service->full_name(), "/", name));
    EXPECT_EQ(status.error_code() == grpc::StatusCode::UNIMPLEMENTED, unsupported.contains(name))
        << name;
    EXPECT_TRUE(status.ok() || !status.error_message().empty()) << name;
  }
  const grpc::Status unknown =
      CallWithNothing(daemon_.target(), "/inference.GRPCInferenceService/NoSuchMethod");
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(unknown.error_message().empty());
}

// Check 2, where gRPC runs no processor of ours.
TEST(InferenceListenersTest, UnknownMethodsAreRefusedWithAMessageInPlaintext) {
  Config config = InProcessDaemon::DefaultConfig();
  config.listen.push_back({.is_unix = false, .path = "", .host = "0.0.0.0", .port = 0});
  const InProcessDaemon daemon(config);
  const std::string& address = daemon.daemon().addresses()[1];
  const std::string target = absl::StrCat("127.0.0.1", address.substr(address.rfind(':')));

  const grpc::Status status =
      CallWithNothing(target, "/inference.GRPCInferenceService/NoSuchMethod");

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_FALSE(status.error_message().empty());
}

// Check 3, as long as the daemon serves.
TEST_F(InferenceModelsTest, IsLiveAndReady) {
  inference::ServerLiveResponse live;
  EXPECT_TRUE(Ask(*stub_, &InferenceStub::ServerLive, {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  EXPECT_TRUE(Ask(*stub_, &InferenceStub::ServerReady, {}, &ready).ok());
  EXPECT_TRUE(ready.ready());
}

// Check 4.
TEST_F(InferenceModelsTest, SaysWhichModelsAreReady) {
  const struct {
    const char* name;
    const char* version;
    grpc::StatusCode code;
    bool is_ready;
  } cases[] = {
      {"KlDivBackward", "", grpc::StatusCode::OK, true},
      {"KlDivBackward", "1", grpc::StatusCode::OK, true},
      {"KlDivBackward", "2", grpc::StatusCode::OK, false},
      {"NoSuchModel", "", grpc::StatusCode::OK, false},
      {"", "", grpc::StatusCode::OK, false},
      {"KlDivBackward", "one", grpc::StatusCode::INVALID_ARGUMENT, false},
      {"KlDivBackward", "-1", grpc::StatusCode::INVALID_ARGUMENT, false},
      {"KlDivBackward", "99999999999999999999", grpc::StatusCode::INVALID_ARGUMENT, false},
  };
  for (const auto& c : cases) {
    inference::ModelReadyResponse response;
    const grpc::Status status =
        Ask(*stub_, &InferenceStub::ModelReady,
            Named<inference::ModelReadyRequest>(c.name, c.version), &response);
    EXPECT_EQ(status.error_code(), c.code) << c.name << " " << c.version;
    EXPECT_EQ(response.ready(), c.is_ready) << c.name << " " << c.version;
  }
}

// Check 5.
TEST_F(InferenceModelsTest, AdvertisesWhatItDoes) {
  inference::ServerMetadataResponse metadata;
  ASSERT_TRUE(Ask(*stub_, &InferenceStub::ServerMetadata, {}, &metadata).ok());
  EXPECT_EQ(metadata.name(), "opserve");
  EXPECT_FALSE(metadata.version().empty());
  EXPECT_THAT(metadata.extensions(), Contains("statistics"));
  EXPECT_THAT(metadata.extensions(), Not(Contains("system_shared_memory")));
  inference::ModelStatisticsResponse statistics;
  EXPECT_TRUE(Ask(*stub_, &InferenceStub::ModelStatistics, {}, &statistics).ok());
}

// Checks 6, 7 and 8.
TEST_F(InferenceModelsTest, DescribesEveryOperatorOfTheCatalogue) {
  for (const catalog::OperatorDescriptor* op : catalog::AllOperators()) {
    const std::string name(op->name);
    inference::ModelMetadataResponse metadata;
    ASSERT_TRUE(Ask(*stub_, &InferenceStub::ModelMetadata,
                    Named<inference::ModelMetadataRequest>(name, "1"), &metadata)
                    .ok());
    EXPECT_EQ(metadata.name(), name);
    EXPECT_THAT(metadata.versions(), ::testing::ElementsAre("1"));
    ASSERT_EQ(metadata.inputs_size(), static_cast<int>(op->inputs.size()));
    ASSERT_EQ(metadata.outputs_size(), static_cast<int>(op->outputs.size()));
    for (const auto* tensors : {&metadata.inputs(), &metadata.outputs()}) {
      for (const auto& tensor : *tensors) {
        EXPECT_THAT(tensor.shape(), ::testing::ElementsAre(-1)) << tensor.name();
        EXPECT_NE(FindDtypeBy(&DtypeFacts::inference, tensor.datatype()), nullptr) << tensor.name();
      }
    }
    inference::ModelConfigResponse response;
    ASSERT_TRUE(Ask(*stub_, &InferenceStub::ModelConfig, Named<inference::ModelConfigRequest>(name),
                    &response)
                    .ok());
    ASSERT_TRUE(response.has_config());
    const inference::ModelConfig& config = response.config();
    EXPECT_EQ(config.name(), name);
    EXPECT_EQ(config.max_batch_size(), 0);
    ASSERT_EQ(config.input_size(), metadata.inputs_size());
    for (int i = 0; i < config.input_size(); ++i) {
      EXPECT_EQ(config.input(i).name(), metadata.inputs(i).name());
      EXPECT_EQ(config.input(i).name(),
                absl::StrCat(op->inputs[i].name, op->inputs[i].is_list ? ".0" : ""));
      EXPECT_EQ(config.input(i).optional(), op->inputs[i].is_optional);
    }
    ASSERT_EQ(config.output_size(), metadata.outputs_size());
    for (int i = 0; i < config.output_size(); ++i) {
      EXPECT_EQ(config.output(i).name(), metadata.outputs(i).name());
    }
    for (const catalog::AttributeDescriptor& attribute : op->attributes) {
      const std::string key = absl::StrCat("parameter.", attribute.name);
      EXPECT_TRUE(config.parameters().contains(key)) << key;
      EXPECT_TRUE(metadata.properties().contains(key)) << key;
    }
  }
}

// Check 9.
TEST_F(InferenceModelsTest, UnknownModelsAreNotFound) {
  for (const auto& [name, version] :
       {std::pair("NoSuchModel", ""), std::pair("L1LossBackward", "7")}) {
    inference::ModelMetadataResponse metadata;
    inference::ModelConfigResponse config;
    inference::ModelInferRequest request = OnesInference(1);
    request.set_model_name(name);
    request.set_model_version(version);
    for (const grpc::Status& status :
         {Ask(*stub_, &InferenceStub::ModelMetadata,
              Named<inference::ModelMetadataRequest>(name, version), &metadata),
          Ask(*stub_, &InferenceStub::ModelConfig,
              Named<inference::ModelConfigRequest>(name, version), &config),
          Infer(*stub_, request).status}) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
      EXPECT_THAT(status.error_message(), HasSubstr("Request for unknown model"));
      EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("'", name, "'")));
    }
  }
}

TEST_F(InferenceModelsTest, ListsTheModelsAndTakesNone) {
  inference::RepositoryIndexRequest request;
  inference::RepositoryIndexResponse index;
  ASSERT_TRUE(Ask(*stub_, &InferenceStub::RepositoryIndex, request, &index).ok());
  EXPECT_EQ(index.models_size(), static_cast<int>(catalog::AllOperators().size()));
  for (const auto& model : index.models()) {
    EXPECT_EQ(model.version(), "1");
    EXPECT_EQ(model.state(), "READY");
  }
  request.set_repository_name("elsewhere");
  const grpc::Status status = Ask(*stub_, &InferenceStub::RepositoryIndex, request, &index);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(status.error_message(), HasSubstr("'repository_name'"));

  inference::RepositoryModelLoadRequest load;
  load.set_model_name("KlDivBackward");
  inference::RepositoryModelLoadResponse loaded;
  EXPECT_THAT(Ask(*stub_, &InferenceStub::RepositoryModelLoad, load, &loaded).error_message(),
              HasSubstr("explicit model load / unload is not allowed"));
}

// Check 41. The messages of reflection are read without their classes, as field 4 of the answer
// (file_descriptor_response), whose field 1 has files.
TEST_F(InferenceModelsTest, ReflectionDescribesTheService) {
  google::protobuf::UnknownFieldSet request;
  *request.AddLengthDelimited(4) = "inference.GRPCInferenceService";  // file_containing_symbol
  std::string bytes;
  request.SerializeToString(&bytes);
  const RawAnswer answer = CallRaw(
      daemon_.target(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", bytes);
  google::protobuf::UnknownFieldSet response;
  ASSERT_TRUE(response.ParseFromString(answer.bytes));
  google::protobuf::DescriptorPool pool;
  for (int i = 0; i < response.field_count(); ++i) {
    if (response.field(i).number() != 4) continue;
    google::protobuf::UnknownFieldSet files;
    ASSERT_TRUE(files.ParseFromString(response.field(i).length_delimited()));
    // What a file imports comes behind it.
    for (int n = files.field_count() - 1; n >= 0; --n) {
      google::protobuf::FileDescriptorProto file;
      ASSERT_TRUE(file.ParseFromString(files.field(n).length_delimited()));
      EXPECT_NE(pool.BuildFile(file), nullptr) << file.name();
    }
  }
  const auto* service = pool.FindServiceByName("inference.GRPCInferenceService");
  ASSERT_NE(service, nullptr);
  EXPECT_EQ(service->method_count(), 20);
  EXPECT_NE(pool.FindMessageTypeByName("inference.ModelInferRequest.InferInputTensor"), nullptr);
}

// Check 40, as long as the daemon serves.
TEST_F(InferenceModelsTest, HealthKnowsTheService) {
  const auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(daemon_.target(), grpc::InsecureChannelCredentials()));
  using grpc::health::v1::HealthCheckResponse;
  for (const char* service : {"", "inference.GRPCInferenceService"}) {
    grpc::ClientContext context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    HealthCheckResponse response;
    EXPECT_TRUE(health->Check(&context, request, &response).ok());
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING);
  }
  grpc::health::v1::HealthCheckRequest unknown;
  unknown.set_service("inference.NoSuchService");
  {
    grpc::ClientContext context;
    HealthCheckResponse response;
    EXPECT_EQ(health->Check(&context, unknown, &response).error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  grpc::ClientContext context;
  const auto watch = health->Watch(&context, unknown);
  HealthCheckResponse response;
  ASSERT_TRUE(watch->Read(&response));
  EXPECT_EQ(response.status(), HealthCheckResponse::SERVICE_UNKNOWN);
  context.TryCancel();
}

}  // namespace
}  // namespace opserve::server
