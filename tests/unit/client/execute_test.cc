#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

class ExecuteTest : public testing::Test {
 protected:
  ExecuteTest() : client_(server_.Connect()) {}

  absl::StatusOr<Response> ExecuteWith(Tensor x) {
    return client_->Execute({.operator_name = "Scale", .inputs = {{"x", std::move(x)}}});
  }

  // What the daemon answers without looking at the request.
  void Answer(const v1::ExecuteResponse& response) {
    server_.set_execute([response](auto*, const auto&, v1::ExecuteResponse* answer) {
      *answer = response;
      return grpc::Status::OK;
    });
  }

  TestServer server_;
  std::unique_ptr<Client> client_;
};

TEST_F(ExecuteTest, AllPartsOfARequestArrive) {
  const std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const std::vector<Bf16> y = {{0x3f80}};
  const Request request = {
      .invocations = {{.operator_name = "Scale",
                       .inputs = {{"x", Tensor::Of<float>({3, 2}, x).WithStrides({1, 3}, 0)},
                                  {"y", Tensor::Of<Bf16>({}, y)}},
                       .attributes = {{"factor", 2.5}, {"mode", 3}, {"negate", true}},
                       .output_dtypes = {{"out", kBf16}}},
                      {.operator_name = "Scale",
                       .inputs = {{"x", Tensor::Of<float>({6}, x)}, {"y", OutputOf{0, "out"}}},
                       .attributes = {{"mode", "mean"}}}},
      .results = {{1}, {0, "out"}},
      .want_receipt = true,
      .priority = v1::PRIORITY_HIGH};

  const absl::StatusOr<Response> response = client_->Execute(request);

  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(response->receipt->execute_ns(), 1500);
  const v1::ExecuteRequest sent = server_.last_request();
  ASSERT_EQ(sent.invocations_size(), 2);
  const v1::Invocation& first = sent.invocations(0);
  EXPECT_EQ(first.operator_(), "Scale");
  EXPECT_EQ(first.inputs(0).name(), "x");
  EXPECT_EQ(first.inputs(0).tensor().dtype(), kFloat);
  EXPECT_THAT(first.inputs(0).tensor().shape(), ElementsAre(3, 2));
  EXPECT_THAT(first.inputs(0).tensor().strides(), ElementsAre(1, 3));
  EXPECT_EQ(first.inputs(1).tensor().payload(), 1u);
  EXPECT_EQ(first.attributes(0).value().double_value(), 2.5);
  EXPECT_EQ(first.attributes(1).value().int64_value(), 3);
  EXPECT_TRUE(first.attributes(2).value().bool_value());
  EXPECT_EQ(first.outputs(0).dtype(), kBf16);
  const v1::Invocation& second = sent.invocations(1);
  EXPECT_EQ(second.inputs(0).tensor().payload(), 0u) << "the same storage is sent once";
  EXPECT_EQ(second.inputs(1).tensor().invocation_output().output(), "out");
  EXPECT_EQ(second.attributes(0).value().name(), "mean");
  EXPECT_EQ(sent.results(0).invocation(), 1u);
  EXPECT_EQ(sent.results(1).output(), "out");
  EXPECT_EQ(sent.priority(), v1::PRIORITY_HIGH);
  EXPECT_EQ(sent.payloads_size(), 2);
  EXPECT_EQ(sent.payloads(1), absl::string_view("\x80\x3f", 2));
}

TEST_F(ExecuteTest, EveryKindOfInputAttributeAndOutputArrives) {
  const Tensor x = Tensor::Owning<int64_t>({2}, {1, -2});
  const Request request = {
      .invocations = {{.operator_name = "Mix",
                       .inputs = {{"x", x},
                                  {"tensors",
                                   std::vector<ListedTensor>{
                                       x, Tensor::Owning<bool>({2}, {true, false}),
                                       OutputOf{0, "out.1"}, ResidentTensor{.handle = "there"}}},
                                  {"nothing", std::vector<ListedTensor>()}},
                       .attributes = {{"text", Text{"ij"}},
                                      {"dtype", kInt8},
                                      {"half", Scalar{kFloat, 0.5}},
                                      {"two", Scalar{kInt32, int64_t{2}}},
                                      {"dims", std::vector<int64_t>{1, -1}},
                                      {"mask", std::vector<bool>{true, false}},
                                      {"scales", std::vector<double>{0.5}},
                                      {"empty", std::vector<int64_t>()}},
                       .output_dtypes = {{"grad_weight", kBf16}},
                       .masked_outputs = {"grad_weight", "grad_bias"}}}};

  ASSERT_TRUE(client_->Execute(request).ok());

  const v1::ExecuteRequest sent = server_.last_request();
  const v1::Invocation& invocation = sent.invocations(0);
  EXPECT_EQ(invocation.inputs(0).tensor().dtype(), kInt64);
  EXPECT_FALSE(invocation.inputs(0).has_list());
  EXPECT_FALSE(invocation.inputs(1).has_tensor());
  const auto& tensors = invocation.inputs(1).list().tensors();
  ASSERT_EQ(tensors.size(), 4);
  EXPECT_EQ(tensors[0].payload(), invocation.inputs(0).tensor().payload());
  EXPECT_EQ(tensors[1].dtype(), kBool);
  EXPECT_EQ(sent.payloads(static_cast<int>(tensors[1].payload())), std::string("\1\0", 2));
  EXPECT_EQ(tensors[2].invocation_output().output(), "out.1");
  EXPECT_EQ(tensors[3].resident_tensor(), "there");
  EXPECT_TRUE(invocation.inputs(2).has_list());
  const auto value = [&](int i) { return invocation.attributes(i).value(); };
  EXPECT_EQ(value(0).text_value(), "ij");
  EXPECT_EQ(value(1).dtype_value(), kInt8);
  EXPECT_EQ(value(2).scalar_value().dtype(), kFloat);
  EXPECT_EQ(value(2).scalar_value().double_value(), 0.5);
  EXPECT_EQ(value(3).scalar_value().int64_value(), 2);
  EXPECT_THAT(value(4).int64_list().values(), ElementsAre(1, -1));
  EXPECT_THAT(value(5).bool_list().values(), ElementsAre(true, false));
  EXPECT_THAT(value(6).double_list().values(), ElementsAre(0.5));
  EXPECT_TRUE(value(7).has_int64_list());
  ASSERT_EQ(invocation.outputs_size(), 2);
  EXPECT_EQ(invocation.outputs(0).dtype(), kBf16);
  EXPECT_EQ(invocation.outputs(1).name(), "grad_bias");
  EXPECT_EQ(invocation.outputs(1).dtype(), v1::DATA_TYPE_UNSPECIFIED);
}

TEST_F(ExecuteTest, AnInvocationMayHaveSeveralResults) {
  v1::ExecuteResponse answer;
  for (const char* output : {"out.0", "out.1", "count"}) {
    v1::Result* result = answer.add_results();
    result->mutable_source()->set_output(output);
    result->mutable_tensor()->set_dtype(kInt16);
    result->mutable_tensor()->add_shape(1);
    result->mutable_tensor()->set_payload(static_cast<uint32_t>(answer.payloads_size()));
    answer.add_payloads(std::string(1, static_cast<char>(answer.payloads_size())) + '\1');
  }
  Answer(answer);

  const auto response = ExecuteWith(Tensor::Owning<float>({1}, {1}));

  ASSERT_TRUE(response.ok()) << response.status();
  ASSERT_EQ(response->results.size(), 3u);
  EXPECT_EQ(response->results[1].source().output, "out.1");
  EXPECT_THAT(*response->results[1].values<int16_t>(), ElementsAre(257));
}

TEST_F(ExecuteTest, TensorsOfAnySizeComeBackAsTheyWent) {
  for (const size_t num_elements : {0, 1, 1023, 1024, 1025, 70000, 3 << 20}) {
    std::vector<float> x(num_elements);
    std::iota(x.begin(), x.end(), 0.5f);
    const auto extent = static_cast<int64_t>(num_elements);

    for (const Tensor& tensor :
         {Tensor::Of<float>({extent}, x), Tensor::Owning<float>({extent}, x)}) {
      const absl::StatusOr<Response> response = ExecuteWith(tensor);

      ASSERT_TRUE(response.ok()) << response.status();
      ASSERT_EQ(response->results.size(), 1u);
      const Result& result = response->results[0];
      EXPECT_EQ(result.source().output, "out");
      EXPECT_THAT(result.shape(), ElementsAre(extent));
      ASSERT_EQ(result.num_elements(), extent);
      EXPECT_EQ(*result.values<float>(), absl::MakeConstSpan(x)) << num_elements;
      EXPECT_FALSE(response->receipt.has_value());
    }
  }
}

TEST_F(ExecuteTest, BorrowedBytesAreFreeWhenTheCallReturns) {
  std::vector<float> x(1 << 20, 1.0f);

  for (int i = 0; i < 20; ++i) {
    const auto response = ExecuteWith(Tensor::Of<float>({1 << 20}, x));
    ASSERT_TRUE(response.ok()) << response.status();
    EXPECT_EQ(response->results[0].values<float>()->back(), static_cast<float>(i + 1));
    std::fill(x.begin(), x.end(), static_cast<float>(i + 2));
  }
}

TEST_F(ExecuteTest, ResultsOutliveTheClient) {
  const auto response = ExecuteWith(Tensor::Owning<float>({2}, {1, 2}));
  client_ = nullptr;

  ASSERT_TRUE(response.ok());
  EXPECT_THAT(*response->results[0].values<float>(), ElementsAre(1, 2));
}

TEST_F(ExecuteTest, ThreadsShareAClient) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      const std::vector<double> x(2000, t);
      for (int i = 0; i < 50; ++i) {
        const auto response = ExecuteWith(Tensor::Of<double>({2000}, x));
        ASSERT_TRUE(response.ok()) << response.status();
        ASSERT_THAT(*response->results[0].values<double>(), ElementsAreArray(x));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ExecuteTest, AnswersThatBreakTheProtocolAreErrors) {
  v1::ExecuteResponse good;
  v1::Tensor* tensor = good.add_results()->mutable_tensor();
  tensor->set_dtype(kFloat);
  tensor->add_shape(2);
  tensor->set_payload(0);
  good.add_payloads("12345678");
  Answer(good);
  ASSERT_TRUE(ExecuteWith(Tensor()).ok());

  struct Case {
    const char* name;
    void (*spoil)(v1::ExecuteResponse&);
  };
  const Case kCases[] = {
      {"no storage", [](auto& r) { r.mutable_results(0)->mutable_tensor()->clear_payload(); }},
      {"payload 1", [](auto& r) { r.mutable_results(0)->mutable_tensor()->set_payload(1); }},
      {"too few bytes", [](auto& r) { r.mutable_payloads(0)->pop_back(); }},
      {"too many bytes", [](auto& r) { r.mutable_payloads(0)->push_back('9'); }},
      {"no dtype", [](auto& r) { r.mutable_results(0)->mutable_tensor()->clear_dtype(); }},
      {"overflow", [](auto& r) { r.mutable_results(0)->mutable_tensor()->add_shape(1ll << 62); }},
      {"negative", [](auto& r) { r.mutable_results(0)->mutable_tensor()->set_shape(0, -2); }},
  };
  for (const Case& c : kCases) {
    v1::ExecuteResponse bad = good;
    c.spoil(bad);
    Answer(bad);
    const absl::Status status = ExecuteWith(Tensor()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << c.name << ": " << status;
  }
}

// gRPC calls it kUnknown when an answer is cut off between its beginning and its status.
TEST_F(ExecuteTest, AnAnswerThatWasCutOffIsALostCall) {
  for (const char* text : {"Stream removed", "No status received"}) {
    std::atomic<int> calls = 0;
    server_.set_execute([&](auto* context, const auto& request, auto* response) {
      return ++calls == 1 ? grpc::Status(grpc::StatusCode::UNKNOWN, text)
                          : TestServer::Echo(context, request, response);
    });
    EXPECT_TRUE(ExecuteWith(Tensor::Of<float>({1}, std::vector<float>{1})).ok()) << text;
    EXPECT_EQ(calls, 2) << text;
  }

  server_.set_execute([](auto*, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::UNKNOWN, "Stream removed, I say");
  });
  EXPECT_EQ(ExecuteWith(Tensor::Of<float>({1}, std::vector<float>{1})).status().code(),
            absl::StatusCode::kUnknown);
}

TEST_F(ExecuteTest, DeadlineEndsTheCall) {
  server_.HoldCalls();

  const auto response =
      client_->Execute({.invocations = {{.operator_name = "Scale",
                                         .inputs = {{"x", Tensor::Owning<float>({1}, {1})}}}},
                        .timeout = absl::Milliseconds(20)});

  EXPECT_EQ(response.status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ExecuteTest, ACallOfAProgramWaitsNoLongerThanItsTimeoutForAnothersPreparation) {
  absl::Notification begun;
  server_.set_prepare([&](const v1::PrepareRequest&, v1::PrepareResponse* response) {
    if (!begun.HasBeenNotified()) begun.Notify();
    server_.WaitForLetGo();
    response->set_handle("a program");
  });
  const Request scale = {.invocations = {{.operator_name = "Scale"}}};
  const auto program = client_->Prepare(scale);
  ASSERT_TRUE(program.ok()) << program.status();
  absl::Status first;
  std::thread preparing([&] { first = program->PrepareFor({}); });
  EXPECT_TRUE(begun.WaitForNotificationWithTimeout(absl::Seconds(30)));

  absl::Status second;
  absl::Notification has_ended;
  std::thread calling([&] {
    second = (*program)({}, {.timeout = absl::Milliseconds(20)}).status();
    has_ended.Notify();
  });
  EXPECT_TRUE(has_ended.WaitForNotificationWithTimeout(absl::Seconds(30)));

  server_.LetGo();
  preparing.join();
  calling.join();
  EXPECT_TRUE(first.ok()) << first;
  EXPECT_EQ(second.code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(ExecuteTest, CatalogueAndStatus) {
  const auto operators = client_->ListOperators();
  ASSERT_TRUE(operators.ok()) << operators.status();
  ASSERT_EQ(operators->size(), 2u);
  EXPECT_EQ((*operators)[0].name(), "Scale");
  EXPECT_EQ(client_->ListOperators({"Scale"})->size(), 1u);
  EXPECT_EQ(client_->ListOperators({"Nope"}).status().code(), absl::StatusCode::kNotFound);

  const auto status = client_->GetServerStatus();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->version(), "1.2.3");
  EXPECT_TRUE(client_->IsConnected());
}

TEST(ConnectTest, TargetsAreChecked) {
  for (const char* target : {"", "unix:", "unix://", "localhost", ":50051", "host:", "host:0",
                             "host:65536", "host:port"}) {
    EXPECT_EQ(Client::Connect(target).status().code(), absl::StatusCode::kInvalidArgument)
        << target;
  }
  EXPECT_THAT(Client::Connect(absl::StrCat("unix:/", std::string(200, 'a'))).status().message(),
              HasSubstr("107 bytes"));
  for (const char* target : {"unix:/a", "unix:///a", "localhost:1", "[::1]:50051"}) {
    EXPECT_TRUE(Client::Connect(target).ok()) << target;
  }
}

TEST(ConnectTest, WaitsOnlyIfAsked) {
  const TemporaryDirectory directory;
  const std::string target = "unix:" + directory.File("nobody");
  const auto client = Client::Connect(target, {.retry = {.waits_for_daemon = false}});
  ASSERT_TRUE(client.ok());

  EXPECT_EQ((*client)->GetServerStatus().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE((*client)->IsConnected());
  EXPECT_EQ(Client::Connect(target, {.wait_for_ready = absl::Milliseconds(20)}).status().code(),
            absl::StatusCode::kUnavailable);

  const TestServer server;
  const auto ready = Client::Connect(server.target(), {.wait_for_ready = absl::Seconds(30)});
  ASSERT_TRUE(ready.ok()) << ready.status();
  EXPECT_TRUE((*ready)->IsConnected());
}

}  // namespace
}  // namespace opserve
