// The Open Inference Protocol: single requests.

#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpc/health/v1/health_service.grpc.pb.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/metric_value.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

using inference::InferParameter;
using inference::ModelInferRequest;
using ::testing::HasSubstr;

constexpr int64_t kCount = 4;

// For tensors of 64 MiB; before the first daemon of the process.
const bool kDevicesAreLarge = setenv("OPSERVE_HOST_DEVICE_MEMORY", "512M", 1) == 0;

// Sets the elements of OnesModel in `contents`.
void AddTypedContents(ModelInferRequest* request) {
  constexpr float kValues[] = {1, 3, 2};
  for (int i = 0; i < 3; ++i) {
    auto* contents = request->mutable_inputs(i)->mutable_contents();
    for (int64_t n = 0; n < (i == 0 ? 1 : kCount); ++n) contents->add_fp32_contents(kValues[i]);
  }
}

class InferenceInferTest : public ::testing::Test {
 protected:
  void TearDown() override { ClearFaults(); }
  InProcessDaemon daemon_;
  const std::unique_ptr<InferenceStub> stub_ = NewInferenceStub(daemon_.target());
};

struct Accepted {
  const char* name;
  std::function<void(ModelInferRequest*)> change;
};

// Requests that have the same answer, all of ones. Checks 10, 11, 19, 20, 21 and 23.
TEST_F(InferenceInferTest, TakesRequestsInAllTheirForms) {
  const Accepted cases[] = {
      {"as it is", [](ModelInferRequest*) {}},
      {"inputs in another order",  // check 10
       [](ModelInferRequest* r) {
         r->mutable_inputs()->SwapElements(0, 2);
         r->mutable_raw_input_contents()->SwapElements(0, 2);
       }},
      {"contents",
       [](ModelInferRequest* r) {  // check 11
         r->clear_raw_input_contents();
         AddTypedContents(r);
       }},
      {"the version by name", [](ModelInferRequest* r) { r->set_model_version("1"); }},
      {"an id", [](ModelInferRequest* r) { r->set_id("42"); }},  // check 19
      {"no empty final response",
       [](ModelInferRequest* r) {  // check 20
         (*r->mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(false);
       }},
      {"an empty final response",
       [](ModelInferRequest* r) {
         (*r->mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
       }},
      {"priority as uint64",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["priority"].set_uint64_param(1); }},
      {"priority as int64",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["priority"].set_int64_param(3); }},
      {"timeout",
       [](ModelInferRequest* r) {
         (*r->mutable_parameters())["timeout"].set_int64_param(60'000'000);
       }},
      {"no timeout",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["timeout"].set_int64_param(0); }},
      {"a sequence, which changes nothing",
       [](ModelInferRequest* r) {
         (*r->mutable_parameters())["sequence_id"].set_int64_param(7);
         (*r->mutable_parameters())["sequence_start"].set_bool_param(true);
       }},
      {"the attribute as an int64",  // check 21
       [](ModelInferRequest* r) { (*r->mutable_parameters())["reduction"].set_int64_param(2); }},
      {"as a number in a string",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["reduction"].set_string_param("2"); }},
      {"as a double",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["reduction"].set_double_param(2); }},
      {"as a uint64",
       [](ModelInferRequest* r) { (*r->mutable_parameters())["reduction"].set_uint64_param(2); }},
      {"its output by name",
       [](ModelInferRequest* r) {  // check 23
         r->add_outputs()->set_name("grad_input");
       }},
      {"parameters of tensors that mean nothing here",
       [](ModelInferRequest* r) {
         (*r->mutable_inputs(1)->mutable_parameters())["binary_data_size"].set_int64_param(16);
       }},
  };
  for (const Accepted& c : cases) {
    ModelInferRequest request = OnesInference(kCount);
    c.change(&request);
    const InferResult result = Infer(*stub_, request);
    EXPECT_TRUE(result.status.ok()) << c.name << ": " << result.status.error_message();
    EXPECT_TRUE(IsAllOnes(result.response, kCount)) << c.name;  // check 18, too
    EXPECT_EQ(result.response.id(), request.id());
    EXPECT_EQ(result.response.model_name(), "L1LossBackward");
    EXPECT_EQ(result.response.model_version(), "1");
  }
}

struct Refused {
  const char* name;
  std::function<void(ModelInferRequest*)> spoil;
  const char* message;
  grpc::StatusCode code = grpc::StatusCode::INVALID_ARGUMENT;
};

void SetParameter(ModelInferRequest* request, const char* name,
                  const std::function<void(InferParameter*)>& set) {
  set(&(*request->mutable_parameters())[name]);
}

// Checks 11 to 16, 20, 21 and 23.
TEST_F(InferenceInferTest, RefusesMistakesByName) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  const Refused cases[] = {
      {"contents beside raw",  // check 12
       [](ModelInferRequest* r) { r->mutable_inputs(1)->mutable_contents()->add_fp32_contents(1); },
       "contents field must not be specified when using raw_input_contents for 'self'"},
      {"empty contents beside raw",
       [](ModelInferRequest* r) { r->mutable_inputs(1)->mutable_contents(); },
       "contents field must not be specified when using raw_input_contents for 'self'"},
      {"no data",  // check 13
       [](ModelInferRequest* r) { r->clear_raw_input_contents(); },
       "unable to find data for input tensor 'grad_output'"},
      {"data for two of three",
       [](ModelInferRequest* r) { r->mutable_raw_input_contents()->RemoveLast(); },
       "unable to find data for input tensor 'target'"},
      {"data for one more", [](ModelInferRequest* r) { r->add_raw_input_contents("abcd"); },
       "expected 3 raw input contents"},
      {"too few bytes", [](ModelInferRequest* r) { r->set_raw_input_contents(1, "abc"); },
       "input byte size mismatch for input 'self' for model 'L1LossBackward'. Expected 16, got 3"},
      {"too many bytes",
       [](ModelInferRequest* r) { r->set_raw_input_contents(2, std::string(17, 0)); },
       "input byte size mismatch for input 'target' for model 'L1LossBackward'. Expected 16, got "
       "17"},
      {"too few elements",
       [](ModelInferRequest* r) {
         r->clear_raw_input_contents();
         AddTypedContents(r);
         r->mutable_inputs(1)->mutable_contents()->mutable_fp32_contents()->RemoveLast();
       },
       "input byte size mismatch for input 'self' for model 'L1LossBackward'. Expected 16, got 12"},
      {"contents without elements",
       [](ModelInferRequest* r) {
         r->clear_raw_input_contents();
         r->mutable_inputs(0)->mutable_contents();
       },
       "input byte size mismatch for input 'grad_output' for model 'L1LossBackward'. Expected 4, "
       "got 0"},
      {"FP32 elements of an FP16 tensor",  // check 14
       [](ModelInferRequest* r) {
         r->clear_raw_input_contents();
         AddTypedContents(r);
         r->mutable_inputs(0)->set_datatype("FP16");
       },
       "unexpected explicit tensor data for input tensor 'grad_output'"},
      {"elements of two types",  // check 11
       [](ModelInferRequest* r) {
         r->clear_raw_input_contents();
         AddTypedContents(r);
         r->mutable_inputs(0)->mutable_contents()->add_int_contents(1);
       },
       "unexpected explicit tensor data for input tensor 'grad_output'"},
      {"a type that no operator takes",
       [](ModelInferRequest* r) { r->mutable_inputs(1)->set_datatype("INT8"); },
       "inference input 'self' data-type is 'INT8', but model 'L1LossBackward' expects 'FP32', "
       "'FP16', 'BF16'"},
      {"a type in lower case",
       [](ModelInferRequest* r) { r->mutable_inputs(1)->set_datatype("fp32"); },
       "inference input 'self' data-type is 'fp32'"},
      {"an unknown input",  // check 15
       [](ModelInferRequest* r) { r->mutable_inputs(1)->set_name("x"); },
       "unexpected inference input 'x' for model 'L1LossBackward'"},
      {"an input twice", [](ModelInferRequest* r) { r->mutable_inputs(1)->set_name("target"); },
       "input 'target' already exists in request"},
      {"a missing input",
       [](ModelInferRequest* r) {
         r->mutable_inputs()->RemoveLast();
         r->mutable_raw_input_contents()->RemoveLast();
       },
       "expected 3 inputs but got 2 inputs for model 'L1LossBackward'. Got input(s) "
       "['grad_output', "
       "'self'], but missing required input(s) ['target']"},
      {"an unknown output", [](ModelInferRequest* r) { r->add_outputs()->set_name("y"); },
       "unexpected inference output 'y' for model 'L1LossBackward'"},
      {"an output twice",
       [](ModelInferRequest* r) {
         r->add_outputs()->set_name("grad_input");
         r->add_outputs()->set_name("grad_input");
       },
       "output 'grad_input' already exists in request"},
      {"classification",
       [](ModelInferRequest* r) {
         r->add_outputs()->set_name("grad_input");
         (*r->mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(3);
       },
       "'classification' is not supported for output 'grad_input'"},
      {"an extent of -1",  // check 16
       [](ModelInferRequest* r) { r->mutable_inputs(1)->set_shape(0, -1); },
       "All input dimensions should be specified for input 'self'"},
      {"an extent of -2", [](ModelInferRequest* r) { r->mutable_inputs(1)->set_shape(0, -2); },
       "contains an invalid dimension for input 'self'"},
      {"a size above 2^63",
       [](ModelInferRequest* r) {
         r->mutable_inputs(1)->set_shape(0, kHuge);
         r->mutable_inputs(1)->add_shape(kHuge);
       },
       "for input 'self' for model 'L1LossBackward' exceeds maximum size"},
      {"bytes above 2^63", [](ModelInferRequest* r) { r->mutable_inputs(1)->set_shape(0, kHuge); },
       "for input 'self' for model 'L1LossBackward' exceeds maximum size"},
      {"nine dimensions",
       [](ModelInferRequest* r) {
         for (int i = 0; i < 8; ++i) r->mutable_inputs(1)->add_shape(1);
       },
       "unexpected shape for input 'self'"},
      {"shapes that do not fit",
       [](ModelInferRequest* r) {
         r->mutable_inputs(1)->set_shape(0, 3);
         r->set_raw_input_contents(1, std::string(12, 0));
       },
       "target"},
      {"a number that is none",  // check 21
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) { p->set_string_param("median"); });
       },
       "invalid value type for 'reduction' parameter"},
      {"half a number",
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) { p->set_double_param(1.5); });
       },
       "invalid value type for 'reduction' parameter"},
      {"no number",
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) {
           p->set_double_param(std::numeric_limits<double>::quiet_NaN());
         });
       },
       "invalid value type for 'reduction' parameter"},
      {"a bool for a number",
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) { p->set_bool_param(true); });
       },
       "invalid value type for 'reduction' parameter"},
      {"nothing at all",
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) { p->clear_parameter_choice(); });
       },
       "invalid value type for 'reduction' parameter"},
      {"a number out of range",
       [](ModelInferRequest* r) {
         SetParameter(r, "reduction", [](auto* p) { p->set_int64_param(17); });
       },
       "reduction"},
      {"an unknown parameter",
       [](ModelInferRequest* r) {
         SetParameter(r, "redaction", [](auto* p) { p->set_int64_param(1); });
       },
       "unknown parameter 'redaction'"},
      {"an unknown reserved parameter",  // check 20
       [](ModelInferRequest* r) {
         SetParameter(r, "triton_magic", [](auto* p) { p->set_bool_param(true); });
       },
       "triton_enable_empty_final_response"},
      {"a reserved parameter of the wrong type",
       [](ModelInferRequest* r) {
         SetParameter(r, "triton_enable_empty_final_response",
                      [](auto* p) { p->set_int64_param(1); });
       },
       "invalid value type for 'triton_enable_empty_final_response' parameter"},
      {"a priority in words",
       [](ModelInferRequest* r) {
         SetParameter(r, "priority", [](auto* p) { p->set_string_param("high"); });
       },
       "invalid value type for 'priority' parameter"},
      {"a timeout without unit",
       [](ModelInferRequest* r) {
         SetParameter(r, "timeout", [](auto* p) { p->set_double_param(1); });
       },
       "invalid value type for 'timeout' parameter, expected int64_param"},
      {"a timeout below zero",
       [](ModelInferRequest* r) {
         SetParameter(r, "timeout", [](auto* p) { p->set_int64_param(-1); });
       },
       "'timeout'"},
      {"a malformed version", [](ModelInferRequest* r) { r->set_model_version("1a"); },
       "version should be an integral value"},
      {"shared memory that is not allowed",
       [](ModelInferRequest* r) {
         auto& parameters = *r->mutable_inputs(0)->mutable_parameters();
         parameters["shared_memory_region"].set_string_param("r");
         parameters["shared_memory_byte_size"].set_int64_param(4);
       },
       "Client shared memory is disabled", grpc::StatusCode::UNIMPLEMENTED},
  };
  for (const Refused& c : cases) {
    ModelInferRequest request = OnesInference(kCount);
    request.set_id("r1");
    c.spoil(&request);
    const grpc::Status status = Infer(*stub_, request).status;
    EXPECT_EQ(status.error_code(), c.code) << c.name << ": " << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message)) << c.name;
    if (c.code == grpc::StatusCode::INVALID_ARGUMENT) {
      EXPECT_THAT(status.error_message(), ::testing::StartsWith("[request id: r1] ")) << c.name;
    }
  }
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

// Check 14.
TEST_F(InferenceInferTest, HalfPrecisionTravelsRaw) {
  // 1, 3 and 2 in each.
  const struct {
    const char* datatype;
    uint16_t values[3];
  } cases[] = {{"FP16", {0x3c00, 0x4200, 0x4000}}, {"BF16", {0x3f80, 0x4040, 0x4000}}};
  for (const auto& c : cases) {
    ModelInferRequest request = OnesModel(kCount);
    for (int i = 0; i < 3; ++i) {
      request.mutable_inputs(i)->set_datatype(c.datatype);
      request.add_raw_input_contents(
          RawElements(std::vector<uint16_t>(i == 0 ? 1 : kCount, c.values[i])));
    }
    const InferResult result = Infer(*stub_, request);
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_EQ(result.response.outputs(0).datatype(), c.datatype);
    EXPECT_EQ(result.response.raw_output_contents(0),
              RawElements(std::vector<uint16_t>(kCount, c.values[0])));
  }
}

// Check 11: the other type with elements of its own.
TEST_F(InferenceInferTest, DoublesTravelTyped) {
  ModelInferRequest request;
  request.set_model_name("KlDivBackward");
  for (const char* name : {"grad_output", "self", "target"}) {
    auto* input = request.add_inputs();
    input->set_name(name);
    input->set_datatype("FP64");
    input->add_shape(2);
    input->mutable_contents()->add_fp64_contents(1);
    input->mutable_contents()->add_fp64_contents(2);
  }
  (*request.mutable_parameters())["reduction"].set_string_param("none");
  (*request.mutable_parameters())["log_target"].set_int64_param(0);
  const InferResult result = Infer(*stub_, request);
  ASSERT_TRUE(result.status.ok()) << result.status.error_message();
  // The gradient of target * (log(target) - self) is -target.
  EXPECT_EQ(result.response.raw_output_contents(0), RawElements<double>({-1, -4}));
}

// Check 21: a bool in all its forms. exp(0) = 1, so with log_target the gradient is -1, without 0.
TEST_F(InferenceInferTest, BoolsCanBeSaidInManyWays) {
  const struct {
    std::function<void(InferParameter*)> set;
    float gradient;
  } cases[] = {{[](InferParameter* p) { p->set_bool_param(true); }, -1},
               {[](InferParameter* p) { p->set_int64_param(1); }, -1},
               {[](InferParameter* p) { p->set_string_param("True"); }, -1},
               {[](InferParameter* p) { p->set_string_param("1"); }, -1},
               {[](InferParameter* p) { p->set_double_param(1); }, -1},
               {[](InferParameter* p) { p->set_bool_param(false); }, 0},
               {[](InferParameter* p) { p->set_int64_param(0); }, 0},
               {[](InferParameter* p) { p->set_string_param("false"); }, 0}};
  for (const auto& c : cases) {
    ModelInferRequest request;
    request.set_model_name("KlDivBackward");
    for (const char* name : {"grad_output", "self", "target"}) {
      auto* input = request.add_inputs();
      input->set_name(name);
      input->set_datatype("FP32");
      input->add_shape(1);
      request.add_raw_input_contents(RawElements<float>({name[0] == 'g' ? 1.0f : 0.0f}));
    }
    (*request.mutable_parameters())["reduction"].set_string_param("sum");
    c.set(&(*request.mutable_parameters())["log_target"]);
    const InferResult result = Infer(*stub_, request);
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    float gradient = 7;
    std::memcpy(&gradient, result.response.raw_output_contents(0).data(), sizeof(gradient));
    EXPECT_EQ(gradient, c.gradient);
  }
  ModelInferRequest request = OnesInference(1);
  request.set_model_name("KlDivBackward");
  (*request.mutable_parameters())["log_target"].set_int64_param(2);
  EXPECT_THAT(Infer(*stub_, request).status.error_message(),
              HasSubstr("invalid value type for 'log_target' parameter, expected bool_param"));
}

// Check 17.
TEST_F(InferenceInferTest, ScalarsAndEmptyTensors) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {0}, {0, 3}, {2, 0, 2}}) {
    int64_t elements = 1;
    for (int64_t extent : shape) elements *= extent;
    ModelInferRequest request = OnesModel(0);
    for (int i = 0; i < 3; ++i) {
      request.mutable_inputs(i)->clear_shape();
      request.mutable_inputs(i)->mutable_shape()->Add(shape.begin(), shape.end());
      request.add_raw_input_contents(elements == 0 ? "" : OnesInput(i, 1));
    }
    const InferResult result = Infer(*stub_, request);
    ASSERT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_THAT(result.response.outputs(0).shape(), ::testing::ElementsAreArray(shape));
    ASSERT_EQ(result.response.raw_output_contents_size(), 1);
    EXPECT_EQ(result.response.raw_output_contents(0).size(), elements * sizeof(float));
  }
}

// Check 22.
TEST_F(InferenceInferTest, RandomBytesHarmNothing) {
  std::mt19937 random(TestSeed(1));
  for (const char* model : {"KlDivBackward", "KlDivTargetBackward", "L1LossBackward"}) {
    for (const char* datatype : {"FP32", "FP16", "BF16"}) {
      ModelInferRequest request = OnesModel(64);
      request.set_model_name(model);
      for (int i = 0; i < 3; ++i) {
        auto* input = request.mutable_inputs(i);
        input->set_datatype(datatype);
        if (i == 0) input->add_shape(64);
        std::string bytes(64 * (datatype[2] == '3' ? 4 : 2), 0);
        for (char& byte : bytes) byte = static_cast<char>(random());
        request.add_raw_input_contents(std::move(bytes));
      }
      const InferResult result = Infer(*stub_, request);
      EXPECT_TRUE(result.status.ok()) << model << " " << result.status.error_message();
    }
  }
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(kCount)).response, kCount));
}

TEST_F(InferenceInferTest, TensorsAreCopiedOnceEachWay) {
  const auto copied = [&](const char* direction) {
    return MetricValue(daemon_.daemon(), "opserve_host_copy_bytes_total",
                       {{"direction", direction}, {"path", "grpc"}});
  };
  constexpr int64_t kLarge = 1 << 20;
  const double to_device = copied("h2d");
  const double from_device = copied("d2h");
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(kLarge)).response, kLarge));
  EXPECT_EQ(copied("h2d") - to_device, 2 * kLarge * sizeof(float) + sizeof(float));
  EXPECT_EQ(copied("d2h") - from_device, kLarge * sizeof(float));
}

TEST_F(InferenceInferTest, RepetitionsWithAKeyRunOnce) {
  ModelInferRequest request = OnesInference(kCount);
  (*request.mutable_parameters())["idempotency_key"].set_string_param("once");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  for (int i = 0; i < 3; ++i) {
    // Neither makes it another request.
    request.set_id(absl::StrCat(i));
    (*request.mutable_parameters())["timeout"].set_int64_param(60'000'000 - i);
    const InferResult result = Infer(*stub_, request);
    EXPECT_TRUE(IsAllOnes(result.response, kCount)) << result.status.error_message();
    EXPECT_EQ(result.response.id(), request.id());
  }
  EXPECT_EQ(HostCount(OPSERVE_HOST_LAUNCHES) - launches, 1);
  (*request.mutable_parameters())["priority"].set_int64_param(1);
  EXPECT_THAT(Infer(*stub_, request).status.error_message(), HasSubstr("for another request"));
}

// Two bytes on the wire would become two hundred in memory.
TEST_F(InferenceInferTest, ManyEmptyTensorsAreRefusedUnread) {
  ModelInferRequest request = OnesModel(kCount);
  for (int i = 0; i < 100'000; ++i) request.add_inputs();
  const grpc::Status status = Infer(*stub_, request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("fields beside its payloads"));
}

// An id is repeated whole in answers, but not in errors, which are headers.
TEST_F(InferenceInferTest, LongIdsAreShortenedInErrors) {
  ModelInferRequest request = OnesInference(kCount);
  for (int i = 0; i < 5000; ++i) request.mutable_id()->append("\u00e9");
  EXPECT_EQ(Infer(*stub_, request).response.id(), request.id());
  request.clear_raw_input_contents();
  const grpc::Status status = Infer(*stub_, request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_LT(status.error_message().size(), 300u);
}

// Check 38.
TEST(InferenceMessagesTest, LargeTensorsPassAndLimitsHold) {
  ASSERT_TRUE(kDevicesAreLarge);
  constexpr int64_t kElements = (64 << 20) / sizeof(float);
  {
    InProcessDaemon daemon(LargeMessages());
    const auto stub = NewInferenceStub(daemon.target());
    ModelInferRequest request = OnesModel(kElements);
    request.mutable_inputs(2)->clear_shape();
    for (int i = 0; i < 3; ++i)
      request.add_raw_input_contents(OnesInput(i, i == 1 ? kElements : 1));
    const InferResult result = Infer(*stub, request);
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    EXPECT_TRUE(IsAllOnes(result.response, kElements));
  }
  Config config = LargeMessages();
  config.max_message_bytes = 1 << 20;
  InProcessDaemon daemon(config);
  const auto stub = NewInferenceStub(daemon.target());
  const grpc::Status status = Infer(*stub, OnesInference(1 << 20)).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(DetailOf(status).reason(), "too_large");
  EXPECT_EQ(DetailOf(status).limit_bytes(), config.max_message_bytes);
}

// Check 39.
TEST_F(InferenceInferTest, CancelledAndExpiredRequestsLeaveNothing) {
  InjectFaults("kernel=*,slow=300000,count=all");
  const grpc::Status late = Infer(*stub_, OnesInference(kCount), absl::Milliseconds(100)).status;
  EXPECT_EQ(late.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    grpc::Status status;
    grpc::CompletionQueue queue;
    const auto call = stub_->AsyncModelInfer(&context, OnesInference(kCount), &queue);
    const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
    call->Finish(&response, &status, nullptr);
    EXPECT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
    context.TryCancel();
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::CANCELLED);
  }
  ClearFaults();
  EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
  EXPECT_TRUE(IsAllOnes(Infer(*stub_, OnesInference(kCount)).response, kCount));
}

TEST_F(InferenceInferTest, ATimeoutIsADeadline) {
  InjectFaults("kernel=*,slow=2000000");
  ModelInferRequest request = OnesInference(kCount);
  (*request.mutable_parameters())["timeout"].set_int64_param(1);
  const grpc::Status status = Infer(*stub_, request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_FALSE(status.error_message().empty());
}

// Checks 3, 40 and 43.
TEST(InferenceShutdownTest, WhatIsInFlightEndsAndWhatIsNewIsRefused) {
  auto daemon = std::make_unique<InProcessDaemon>();
  const auto stub = NewInferenceStub(daemon->target());
  InjectFaults("kernel=*,slow=1000000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  InferResult in_flight;
  std::thread caller([&] { in_flight = Infer(*stub, OnesInference(kCount)); });
  ASSERT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  std::thread drainer([&] { daemon->daemon().Drain(); });

  const auto is_ready = [&] {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    EXPECT_TRUE(stub->ServerReady(&context, {}, &response).ok());
    return response.ready();
  };
  EXPECT_TRUE(Await([&] { return !is_ready(); }));
  const auto health = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(daemon->target(), grpc::InsecureChannelCredentials()));
  for (const char* service : {"", "inference.GRPCInferenceService"}) {
    grpc::ClientContext health_context;
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    EXPECT_TRUE(health->Check(&health_context, request, &response).ok());
    EXPECT_EQ(response.status(), grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  }
  grpc::ClientContext context;
  inference::ServerLiveResponse live;
  EXPECT_TRUE(stub->ServerLive(&context, {}, &live).ok());
  EXPECT_TRUE(live.live());
  // Health says so first, then calls are refused.
  EXPECT_TRUE(Await([&] {
    return Infer(*stub, OnesInference(kCount)).status.error_code() == grpc::StatusCode::UNAVAILABLE;
  }));
  EXPECT_THAT(Infer(*stub, OnesInference(kCount)).status.error_message(),
              HasSubstr("shutting down"));
  drainer.join();
  caller.join();
  EXPECT_TRUE(IsAllOnes(in_flight.response, kCount)) << in_flight.status.error_message();
  ClearFaults();
}

// Check 42 the other way: compressed requests are refused, and the refusal says why.
TEST_F(InferenceInferTest, CompressedRequestsAreRefusedWithAMessage) {
  for (grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext context;
    context.set_compression_algorithm(algorithm);
    inference::ModelInferResponse response;
    const grpc::Status status = stub_->ModelInfer(&context, OnesInference(10'000), &response);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    EXPECT_FALSE(status.error_message().empty());
  }
}

}  // namespace
}  // namespace opserve::server
