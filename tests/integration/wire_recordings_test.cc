// Calls of former clients (tests/data/wire), byte by byte as they were, get the answers they got
// then.

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.pb.h"
#include "opserve/v1/operator_service.pb.h"
#include "opserve/v1/tensor_service.pb.h"
#include "tests/integration/former_client.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/wire_recording.h"

namespace opserve::server {
namespace {

constexpr char kUpload[] = "/opserve.v1.TensorService/Upload";

// Makes calls of bytes.
class Replay {
 public:
  explicit Replay(const std::string& target)
      : stub_(grpc::CreateChannel(target, grpc::InsecureChannelCredentials())) {}
  ~Replay() {
    queue_.Shutdown();
    while (Next()) {
    }
  }

  // `before` once more, with today's handles for those of its day.
  RecordedCall Repeat(const RecordedCall& before) {
    RecordedCall now;
    now.name = before.name;
    now.method = before.method;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    auto call = stub_.PrepareCall(&context, before.method, &queue_);
    call->StartCall(nullptr);
    bool is_open = Next();
    for (const std::string& request : before.requests) {
      if (!is_open) break;
      now.requests.push_back(absl::StrReplaceAll(request, handles_));
      const grpc::Slice slice(now.requests.back());
      call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
      is_open = Next();
    }
    if (is_open) {
      call->WritesDone(nullptr);
      Next();
    }
    grpc::ByteBuffer answer;
    for (call->Read(&answer, nullptr); Next(); call->Read(&answer, nullptr)) {
      grpc::Slice slice;
      if (!answer.DumpToSingleSlice(&slice).ok()) break;
      now.answers.emplace_back(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    grpc::Status status;
    call->Finish(&status, nullptr);
    Next();
    now.code = status.error_code();
    now.error_details = status.error_details();
    for (const auto& [key, value] : context.GetServerTrailingMetadata()) {
      now.trailers[std::string(key.data(), key.size())] = std::string(value.data(), value.size());
    }
    LearnHandle(before, now);
    return now;
  }

 private:
  bool Next() {
    void* tag;
    bool is_ok = false;
    return queue_.Next(&tag, &is_ok) && is_ok;
  }

  void LearnHandle(const RecordedCall& before, const RecordedCall& now) {
    if (before.method != kUpload || before.answers.empty() || now.answers.empty()) return;
    v1::UploadResponse then, today;
    ASSERT_TRUE(then.ParseFromString(before.answers[0]) && today.ParseFromString(now.answers[0]));
    // So that a message with the one instead of the other is a message still.
    ASSERT_EQ(then.handle().size(), today.handle().size());
    handles_.emplace_back(then.handle(), today.handle());
  }

  grpc::GenericStub stub_;
  grpc::CompletionQueue queue_;
  std::vector<std::pair<std::string, std::string>> handles_;
};

class WireRecordingsTest : public testing::TestWithParam<const char*> {};

TEST_P(WireRecordingsTest, TheSameCallsGetTheSameAnswers) {
  Config config = InProcessDaemon::OneLane();
  config.max_invocations = 16;  // the bound of then
  InProcessDaemon daemon(config);
  Replay replay(daemon.target());
  FormerClient client;
  for (const RecordedCall& before : ReadRecording(absl::StrCat(GetParam(), ".jsonl"))) {
    const RecordedCall now = replay.Repeat(before);
    EXPECT_EQ(client.Difference(before, now), "") << before.method << ": " << before.name;
  }
}

// The message as text, by the classes of today; "?" if it is none of this type.
std::string TodaysText(const std::string& type, const std::string& bytes) {
  const auto* descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(type);
  if (descriptor == nullptr) return "?";
  const std::unique_ptr<google::protobuf::Message> message(
      google::protobuf::MessageFactory::generated_factory()->GetPrototype(descriptor)->New());
  if (!message->ParseFromString(bytes)) return "?";
  message->DiscardUnknownFields();
  return message->ShortDebugString();
}

TEST_P(WireRecordingsTest, MessagesSayTodayWhatTheySaidThen) {
  FormerClient client;
  for (const RecordedCall& call : ReadRecording(absl::StrCat(GetParam(), ".jsonl"))) {
    const auto* method = client.Method(call.method);
    if (method == nullptr) continue;  // a call of nothing
    for (const auto& [type, messages] : {std::pair(method->input_type(), &call.requests),
                                         std::pair(method->output_type(), &call.answers)}) {
      for (const std::string& message : *messages) {
        EXPECT_EQ(TodaysText(type->full_name(), message), client.Text(type->full_name(), message))
            << call.method << ": " << call.name;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, WireRecordingsTest,
                         testing::Values("catalogue", "execute_command_line", "execute_errors",
                                         "execute_python", "inference", "program", "stream",
                                         "tensors"),
                         [](const auto& info) { return std::string(info.param); });

// One recorded call of a file.
RecordedCall Recorded(const std::string& file, const std::string& name) {
  for (RecordedCall& call : ReadRecording(file)) {
    if (call.name == name) return std::move(call);
  }
  ADD_FAILURE() << file << " has no " << name;
  return {};
}

// A recorded answer that says something else.
template <typename Response = v1::ExecuteResponse, typename Change>
RecordedCall Changed(RecordedCall call, Change change) {
  Response response;
  EXPECT_TRUE(response.ParseFromString(call.answers.at(0)));
  change(response);
  call.answers[0] = response.SerializeAsString();
  return call;
}

TEST(FormerClientTest, SeesWhatChanges) {
  FormerClient client;
  const RecordedCall result = Recorded("program.jsonl", "high priority");
  const RecordedCall error = Recorded("execute_errors.jsonl", "missing input");
  EXPECT_EQ(client.Difference(result, result), "");
  EXPECT_EQ(client.Difference(error, error), "");

  auto differs = [&](const RecordedCall& before, const RecordedCall& now) {
    return !client.Difference(before, now).empty();
  };
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) { (*r.mutable_payloads(0))[0] ^= 1; })));
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) { r.mutable_payloads(0)->pop_back(); })));
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) { r.add_payloads(); })));
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) { r.clear_results(); })));
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) {
                        r.mutable_results(0)->mutable_tensor()->set_dtype(v1::DATA_TYPE_BF16);
                      })));
  EXPECT_TRUE(differs(result, Changed(result, [](auto& r) { r.clear_receipt(); })));
  EXPECT_TRUE(
      differs(result, Changed(result, [](auto& r) { r.mutable_receipt()->set_device(7); })));

  RecordedCall now = result;
  now.answers.clear();
  EXPECT_TRUE(differs(result, now));
  now = result;
  now.answers[0].pop_back();
  EXPECT_TRUE(differs(result, now));
  now = error;
  now.code = 5;
  EXPECT_TRUE(differs(error, now));
  now = error;
  now.error_details.clear();
  EXPECT_TRUE(differs(error, now));
  now = error;
  now.trailers.erase("opserve-reason");
  EXPECT_TRUE(differs(error, now));
  now = error;
  now.error_details = absl::StrReplaceAll(error.error_details, {{"target", "torget"}});
  ASSERT_NE(now.error_details, error.error_details);
  EXPECT_TRUE(differs(error, now));
}

TEST(FormerClientTest, PassesOverWhatVariesAndWhatIsNew) {
  FormerClient client;
  const RecordedCall result = Recorded("program.jsonl", "high priority");
  EXPECT_EQ(client.Difference(
                result, Changed(result, [](auto& r) { r.mutable_receipt()->set_total_ns(1); })),
            "");
  EXPECT_EQ(client.Difference(
                result, Changed(result, [](auto& r) { r.mutable_receipt()->set_span_id("1"); })),
            "");
  RecordedCall now = result;
  now.answers[0] +=
      "\xca\x3e\x03"
      "abc";  // field 1001
  EXPECT_EQ(client.Difference(result, now), "");
}

TEST(FormerClientTest, ListsMayGrow) {
  FormerClient client;
  const RecordedCall list = Recorded("catalogue.jsonl", "operators");
  auto operators = [&](auto change) {
    return client.Difference(list, Changed<v1::ListOperatorsResponse>(list, [&](auto& response) {
                               change(*response.mutable_operators());
                             }));
  };
  EXPECT_EQ(operators([](auto& all) { all.Add()->set_name("Another"); }), "");
  EXPECT_EQ(operators([](auto& all) { all.SwapElements(0, 1); }), "");
  EXPECT_EQ(operators([](auto& all) { all[0].set_documentation("better"); }), "");
  EXPECT_EQ(operators([](auto& all) { all[2].add_attributes()->set_name("another"); }), "");
  EXPECT_EQ(
      operators([](auto& all) { all[2].mutable_inputs(0)->add_dtypes(v1::DATA_TYPE_DOUBLE); }), "");
  EXPECT_NE(operators([](auto& all) { all.RemoveLast(); }), "");
  EXPECT_NE(operators([](auto& all) { all[0].set_name("Other"); }), "");
  EXPECT_NE(operators([](auto& all) { all[0].set_available(false); }), "");
  EXPECT_NE(operators([](auto& all) { all[0].mutable_inputs()->RemoveLast(); }), "");
  EXPECT_NE(operators([](auto& all) { all[0].add_inputs(); }), "");
  EXPECT_NE(operators([](auto& all) { all[0].mutable_inputs(0)->mutable_dtypes()->RemoveLast(); }),
            "");
  EXPECT_NE(operators([](auto& all) { all[0].mutable_attributes()->RemoveLast(); }), "");

  const RecordedCall model = Recorded("inference.jsonl", "L1LossBackward metadata");
  auto properties = [&](auto change) {
    return client.Difference(
        model, Changed<inference::ModelMetadataResponse>(
                   model, [&](auto& response) { change(*response.mutable_properties()); }));
  };
  EXPECT_EQ(properties([](auto& all) { all["summary"] = "better"; }), "");
  EXPECT_EQ(properties([](auto& all) { all["another"] = "new"; }), "");
  EXPECT_NE(properties([](auto& all) { all.erase("summary"); }), "");
}

}  // namespace
}  // namespace opserve::server
