// Every method that a listener offers has a rule about who may call it, and refuses what is no
// message.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/unknown_field_set.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "opserve/v1/admin_service.pb.h"
#include "opserve/v1/tensor_service.pb.h"
#include "server/identity/method_rules.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {
namespace {

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
// ServerReflectionRequest{list_services: ""}, and the field numbers of the answer.
constexpr char kListServices[] = {0x3a, 0x00};
constexpr int kListServicesResponse = 6;
constexpr int kService = 1;
constexpr int kName = 1;

// Runs a call of one message each way.
grpc::Status Call(const std::string& target, const std::string& method,
                  const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  const auto channel = grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
  grpc::CompletionQueue queue;
  void* tag = nullptr;
  bool ok = false;
  grpc::Status status;
  const auto await = [&] { queue.Next(&tag, &ok); };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr), await();
  call->WriteLast(request, grpc::WriteOptions(), nullptr), await();
  call->Read(response, nullptr), await();
  call->Finish(&status, nullptr), await();
  queue.Shutdown();
  while (queue.Next(&tag, &ok)) {
  }
  return status;
}

std::vector<const google::protobuf::UnknownField*> Fields(
    const google::protobuf::UnknownFieldSet& set, int number) {
  std::vector<const google::protobuf::UnknownField*> found;
  for (int i = 0; i < set.field_count(); ++i) {
    if (set.field(i).number() == number) found.push_back(&set.field(i));
  }
  return found;
}

std::set<std::string> ServicesAt(const std::string& target) {
  const grpc::Slice slice(kListServices, sizeof(kListServices));
  grpc::ByteBuffer answer;
  EXPECT_TRUE(Call(target, kReflection, grpc::ByteBuffer(&slice, 1), &answer).ok());
  grpc::Slice bytes;
  EXPECT_TRUE(answer.DumpToSingleSlice(&bytes).ok());
  google::protobuf::UnknownFieldSet message;
  EXPECT_TRUE(message.ParseFromArray(bytes.begin(), static_cast<int>(bytes.size())));
  std::set<std::string> names;
  for (const auto* list : Fields(message, kListServicesResponse)) {
    google::protobuf::UnknownFieldSet services;
    EXPECT_TRUE(services.ParseFromString(list->length_delimited()));
    for (const auto* service : Fields(services, kService)) {
      google::protobuf::UnknownFieldSet one;
      EXPECT_TRUE(one.ParseFromString(service->length_delimited()));
      names.insert(Fields(one, kName).at(0)->length_delimited());
    }
  }
  return names;
}

std::vector<std::string> MethodsOf(const std::string& service) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  if (descriptor == nullptr) return {"unknown"};
  std::vector<std::string> names;
  for (int i = 0; i < descriptor->method_count(); ++i) {
    names.push_back(descriptor->method(i)->name());
  }
  return names;
}

TEST(MethodRulesTest, EveryMethodOfEveryListenerHasARule) {
  Config config = InProcessDaemon::DefaultConfig();
  config.admin_listen = config.listen[0];
  config.admin_listen->path += ".admin";
  const InProcessDaemon daemon(config);
  // So that the descriptors are linked.
  ASSERT_NE(v1::RenewRequest::descriptor(), v1::AdminStatus::descriptor());

  const std::set<std::string> for_clients = ServicesAt(config.listen[0].ToString());
  const std::set<std::string> for_administrators = ServicesAt(config.admin_listen->ToString());
  EXPECT_TRUE(for_clients.contains("opserve.v1.OperatorService"));
  EXPECT_TRUE(for_clients.contains("inference.GRPCInferenceService"));
  EXPECT_FALSE(for_clients.contains("opserve.v1.AdminService"));
  EXPECT_TRUE(for_administrators.contains("opserve.v1.AdminService"));
  EXPECT_FALSE(for_administrators.contains("opserve.v1.OperatorService"));
  EXPECT_FALSE(for_administrators.contains("inference.GRPCInferenceService"));
  for (const auto* services : {&for_clients, &for_administrators}) {
    for (const std::string& service : *services) {
      for (const std::string& method : MethodsOf(service)) {
        EXPECT_TRUE(AccessTo(absl::StrCat("/", service, "/", method)).has_value())
            << service << "/" << method << " has no rule in server/identity/method_rules.cc";
      }
    }
  }
}

// Malformed in any message: a field of length 100 in 2 bytes.
constexpr char kMalformed[] = {0x0a, 0x64};

TEST(MethodRulesTest, EveryMethodOfEveryListenerRefusesWhatIsNoMessage) {
  Config config = InProcessDaemon::DefaultConfig();
  config.admin_listen = config.listen[0];
  config.admin_listen->path += ".admin";
  const InProcessDaemon daemon(config);
  int methods = 0;
  for (const ListenAddress& address : {config.listen[0], *config.admin_listen}) {
    for (const std::string& service : ServicesAt(address.ToString())) {
      // gRPC's own, a stream; it ends such a stream without a status of its own.
      if (absl::StartsWith(service, "grpc.reflection.")) continue;
      for (const std::string& method : MethodsOf(service)) {
        // It answers each message of the stream by one that says what is wrong, and goes on
        // (inference_stream_test.cc).
        if (method == "ModelStreamInfer") continue;
        if (method == "Deposit") continue;  // not for this caller (deposit_calls_test.cc)
        const std::string path = absl::StrCat("/", service, "/", method);
        const grpc::Slice slice(kMalformed, sizeof(kMalformed));
        grpc::ByteBuffer answer;
        const grpc::Status status =
            Call(address.ToString(), path, grpc::ByteBuffer(&slice, 1), &answer);
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT)
            << path << ": " << status.error_message();
        EXPECT_THAT(status.error_message(), ::testing::HasSubstr("malformed")) << path;
        EXPECT_EQ(DetailOf(status).reason(), "invalid") << path;
        ++methods;
      }
    }
  }
  EXPECT_GE(methods, 36);
}

TEST(MethodRulesTest, WhatHasNoRuleDoesNotExist) {
  const InProcessDaemon daemon;
  grpc::ByteBuffer answer;
  const grpc::Slice slice("", 0);
  const grpc::Status status = Call(daemon.target(), "/opserve.v1.AdminService/Reload",
                                   grpc::ByteBuffer(&slice, 1), &answer);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace opserve::server
