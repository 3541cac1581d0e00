// The Open Inference Protocol: shared memory by name.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/config/config.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/inference_calls.h"
#include "tests/integration/inference_shared_memory.h"
#include "tests/integration/metric_value.h"

namespace opserve::server {
namespace {

using inference::ModelInferRequest;
using ::testing::HasSubstr;

int OpenDescriptors() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    ++count;
  }
  return count;
}

// Check 31.
TEST_F(InferenceSharedMemoryTest, TensorsComeAndGoThroughRegions) {
  for (const bool has_slash : {true, false}) {
    for (const uint64_t offset : {uint64_t{0}, kPageBytes, uint64_t{12}}) {
      SharedObject object(offset + 4 * kTensorBytes);
      WriteInputs(object, offset);
      object.Write(offset + 2 * kTensorBytes, OnesInput(0, 1));
      ASSERT_TRUE(
          Register("r", object.name().substr(has_slash ? 0 : 1), offset, 4 * kTensorBytes).ok());
      // All in shared memory.
      ModelInferRequest request = OnesModel(kPlacedElements);
      Place("r", 2 * kTensorBytes, sizeof(float), request.mutable_inputs(0));
      Place("r", 0, kTensorBytes, request.mutable_inputs(1));
      Place("r", kTensorBytes, kTensorBytes, request.mutable_inputs(2));
      auto* output = request.add_outputs();
      output->set_name("grad_input");
      Place("r", 3 * kTensorBytes, kTensorBytes, output);
      const InferResult result = Infer(*stub_, request);
      ASSERT_TRUE(result.status.ok()) << result.status.error_message();
      EXPECT_EQ(object.Read(offset + 3 * kTensorBytes, kTensorBytes),
                RawElements(std::vector<float>(kPlacedElements, 1)));
      // Check 18: the entry is there, and empty.
      ASSERT_EQ(result.response.raw_output_contents_size(), 1);
      EXPECT_EQ(result.response.raw_output_contents(0), "");
      EXPECT_THAT(result.response.outputs(0).shape(), ::testing::ElementsAre(kPlacedElements));
      EXPECT_TRUE(result.response.outputs(0).parameters().empty());

      // A mixture: the entries that there are belong to the others, in order.
      request = OnesModel(kPlacedElements);
      Place("r", 0, kTensorBytes, request.mutable_inputs(1));
      request.add_raw_input_contents(OnesInput(0, 1));
      request.add_raw_input_contents(OnesInput(2, kPlacedElements));
      EXPECT_TRUE(IsAllOnes(Infer(*stub_, request).response, kPlacedElements));
      ASSERT_TRUE(Unregister("r").ok());
    }
  }
  EXPECT_EQ(daemon_.HeldByRequests(), 0);
}

// Where devices can use them: at addresses that are multiples of 32 bytes. Others are copied once.
TEST_F(InferenceSharedMemoryTest, TensorsAreUsedInPlaceOrCopiedOnceEachWay) {
  const auto copied = [&](const char* direction) {
    return MetricValue(daemon_.daemon(), "opserve_host_copy_bytes_total",
                       {{"direction", direction}, {"path", "shm"}});
  };
  // Such a client's region just fits, here to the end of its last page.
  constexpr uint64_t kRoom = 3 * kPageBytes;
  SharedObject object(kRoom);
  ASSERT_TRUE(Register("r", object.name(), 0, kRoom).ok());
  const struct {
    uint64_t first_input;  // the second one and the result lie where they can be used
    uint64_t copied;
  } cases[] = {{0, 0}, {4, kTensorBytes}};
  for (const auto& c : cases) {
    object.Write(c.first_input, OnesInput(1, kPlacedElements));
    object.Write(kPageBytes, OnesInput(2, kPlacedElements));
    ModelInferRequest request = OnesModel(kPlacedElements);
    request.add_raw_input_contents(OnesInput(0, 1));
    Place("r", static_cast<int64_t>(c.first_input), kTensorBytes, request.mutable_inputs(1));
    Place("r", kPageBytes, kTensorBytes, request.mutable_inputs(2));
    request.add_outputs()->set_name("grad_input");
    Place("r", kRoom - kTensorBytes - 96, kTensorBytes, request.mutable_outputs(0));
    ASSERT_TRUE(Infer(*stub_, request).status.ok());
    EXPECT_EQ(object.Read(kRoom - kTensorBytes - 96, kTensorBytes),
              RawElements(std::vector<float>(kPlacedElements, 1)));
    EXPECT_EQ(copied("h2d"), c.copied);
    EXPECT_EQ(copied("d2h"), 0);
  }
  ModelInferRequest request = OnesInference(kPlacedElements);
  request.add_outputs()->set_name("grad_input");
  Place("r", 4, kTensorBytes, request.mutable_outputs(0));
  ASSERT_TRUE(Infer(*stub_, request).status.ok());
  EXPECT_EQ(copied("d2h"), kTensorBytes);
}

// Check 32.
TEST_F(InferenceSharedMemoryTest, RefusesWhatCannotBeRegistered) {
  SharedObject object(2 * kPageBytes);
  ASSERT_TRUE(Register("taken", object.name(), 0, kPageBytes).ok());
  const std::string directory = absl::StrCat("opserve-test-directory-", getpid());
  const std::string link = absl::StrCat("opserve-test-link-", getpid());
  const std::string pipe = absl::StrCat("opserve-test-pipe-", getpid());
  ASSERT_EQ(mkdir(absl::StrCat("/dev/shm/", directory).c_str(), 0700), 0);
  ASSERT_EQ(symlink("/etc/passwd", absl::StrCat("/dev/shm/", link).c_str()), 0);
  ASSERT_EQ(mkfifo(absl::StrCat("/dev/shm/", pipe).c_str(), 0600), 0);
  struct Case {
    std::string name;
    std::string key;
    uint64_t offset;
    uint64_t size;
    grpc::StatusCode code;
    const char* message;
  };
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  constexpr auto kInternal = grpc::StatusCode::INTERNAL;
  const Case cases[] = {
      {"r", object.name(), 0, 2 * kPageBytes + 1, kInvalid,
       "failed to register shared memory region 'r': invalid args"},
      {"r", object.name(), kPageBytes, 2 * kPageBytes, kInvalid, "invalid args"},
      {"r", object.name(), UINT64_MAX - 10, 100, kInvalid, "invalid args"},
      {"r", object.name(), UINT64_MAX, UINT64_MAX, kInvalid, "invalid args"},
      {"r", object.name(), 0, 0, kInvalid, "invalid args"},
      {"r", "no-such-object", 0, 16, kInternal,
       "Unable to open shared memory region: 'no-such-object'"},
      {"r", "", 0, 16, kInvalid, "invalid shm key"},
      {"r", "///", 0, 16, kInvalid, "invalid shm key"},
      {"r", "..", 0, 16, kInvalid, "invalid shm key"},
      {"r", "/../etc/passwd", 0, 16, kInvalid, "invalid shm key"},
      {"r", "a/b", 0, 16, kInvalid, "invalid shm key"},
      {"r", std::string("a\0b", 3), 0, 16, kInvalid, "invalid shm key"},
      {"r", "//sem.theirs", 0, 16, kInvalid, "invalid shm key"},
      {"r", std::string(300, 'x'), 0, 16, kInvalid, "invalid shm key"},
      {"r", directory, 0, 16, kInternal, "Unable to open"},
      {"r", link, 0, 16, kInternal, "Unable to open"},
      {"r", pipe, 0, 16, kInternal, "Unable to open"},
      {"", object.name(), 0, 16, kInvalid, "the name of a shared memory region"},
      {std::string(300, 'n'), object.name(), 0, 16, kInvalid, "the name of a shared memory region"},
      {"taken", object.name(), 0, 16, grpc::StatusCode::ALREADY_EXISTS,
       "shared memory region 'taken' already in manager"},
  };
  const auto refuse_all = [&] {
    for (const Case& c : cases) {
      const grpc::Status status = Register(c.name, c.key, c.offset, c.size);
      EXPECT_EQ(status.error_code(), c.code) << c.key << ": " << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr(c.message)) << c.key;
    }
  };
  refuse_all();
  const int before = OpenDescriptors();
  for (int i = 0; i < 500; ++i) refuse_all();  // 10000 together
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(Regions().regions_size(), 1);
  EXPECT_EQ(
      MetricValue(daemon_.daemon(), "opserve_shm_rejections_total", {{"reason", "shm_invalid"}}),
      501 * std::size(cases));
  for (const std::string& file : {directory, link, pipe}) {
    std::filesystem::remove(absl::StrCat("/dev/shm/", file));
  }
}

// Nobody may name what is another user's.
TEST_F(InferenceSharedMemoryTest, ObjectsOfOthersCannotBeNamed) {
  if (geteuid() != 0 && std::getenv("CI") == nullptr) {
    GTEST_SKIP() << "needs root, to make an object another user's";
  }
  SharedObject object(kPageBytes);
  ASSERT_EQ(fchown(object.fd(), 12345, 12345), 0);
  EXPECT_EQ(Register("r", object.name(), 0, 16).error_code(), grpc::StatusCode::INTERNAL);
}

// Check 33.
TEST_F(InferenceSharedMemoryTest, RefusesWindowsThatDoNotFit) {
  SharedObject object(4 * kTensorBytes);
  WriteInputs(object, 0);
  ASSERT_TRUE(Register("r", object.name(), 0, 3 * kTensorBytes).ok());
  struct Case {
    const char* region;
    int64_t offset;
    int64_t size;
    grpc::StatusCode code;
    const char* message;
  };
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  const Case of_inputs[] = {
      {"r", -1, kTensorBytes, kInvalid, "Invalid offset for shared memory region: 'r'"},
      {"r", INT64_MIN, kTensorBytes, kInvalid, "Invalid offset for shared memory region: 'r'"},
      {"r", 3 * kTensorBytes, kTensorBytes, kInvalid, "Invalid offset for shared memory region"},
      {"r", 2 * kTensorBytes + 1, kTensorBytes, kInvalid, "Invalid offset + byte size"},
      {"r", 0, kTensorBytes - 1, kInvalid, "input byte size mismatch for input 'self'"},
      {"r", 0, kTensorBytes + 1, kInvalid, "input byte size mismatch for input 'self'"},
      {"r", 0, -1, kInvalid, "input byte size mismatch for input 'self'"},
      {"no", 0, kTensorBytes, grpc::StatusCode::NOT_FOUND,
       "Unable to find shared memory region: 'no'"},
  };
  for (const Case& c : of_inputs) {
    ModelInferRequest request = OnesInference(kPlacedElements);
    request.mutable_raw_input_contents()->DeleteSubrange(1, 1);
    Place(c.region, c.offset, c.size, request.mutable_inputs(1));
    const grpc::Status status = Infer(*stub_, request).status;
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
  }
  const Case of_outputs[] = {
      {"r", 2 * kTensorBytes, kTensorBytes - 1, grpc::StatusCode::INTERNAL,
       "should be at least 4000 bytes"},
      {"r", 1, -1, kInvalid, "Integer overflow detected"},
      {"r", 1, INT64_MAX, kInvalid, "Invalid offset + byte size"},
      {"r", -8, 16, kInvalid, "Invalid offset"},
  };
  for (const Case& c : of_outputs) {
    ModelInferRequest request = OnesInference(kPlacedElements);
    request.add_outputs()->set_name("grad_input");
    Place(c.region, c.offset, c.size, request.mutable_outputs(0));
    const grpc::Status status = Infer(*stub_, request).status;
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
  }
  // More room than a result needs is welcome.
  ModelInferRequest roomy = OnesInference(kPlacedElements);
  roomy.add_outputs()->set_name("grad_input");
  Place("r", 0, 3 * kTensorBytes, roomy.mutable_outputs(0));
  EXPECT_TRUE(Infer(*stub_, roomy).status.ok());
  EXPECT_EQ(object.Read(0, kTensorBytes), RawElements(std::vector<float>(kPlacedElements, 1)));
  EXPECT_EQ(object.Read(kTensorBytes, kTensorBytes), OnesInput(2, kPlacedElements));
}

TEST_F(InferenceSharedMemoryTest, RefusesParametersThatSayHalfOfIt) {
  SharedObject object(kTensorBytes);
  ASSERT_TRUE(Register("r", object.name(), 0, kTensorBytes).ok());
  using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;
  const struct {
    std::function<void(Parameters*)> set;
    const char* message;
  } cases[] = {
      {[](Parameters* p) { (*p)["shared_memory_region"].set_int64_param(1); },
       "invalid value type for 'shared_memory_region' parameter, expected string_param"},
      {[](Parameters* p) { (*p)["shared_memory_byte_size"].set_string_param("4"); },
       "invalid value type for 'shared_memory_byte_size' parameter, expected int64_param"},
      {[](Parameters* p) { (*p)["shared_memory_offset"].set_uint64_param(4); },
       "invalid value type for 'shared_memory_offset' parameter, expected int64_param"},
      {[](Parameters* p) { (*p)["shared_memory_region"].set_string_param("r"); },
       "'shared_memory_byte_size' must be specified"},
      {[](Parameters* p) { (*p)["shared_memory_byte_size"].set_int64_param(4); },
       "'shared_memory_region' must be specified"},
      {[](Parameters* p) { (*p)["shared_memory_offset"].set_int64_param(4); },
       "'shared_memory_region' must be specified"},
  };
  for (const auto& c : cases) {
    ModelInferRequest request = OnesInference(kPlacedElements);
    c.set(request.mutable_inputs(1)->mutable_parameters());
    const grpc::Status status = Infer(*stub_, request).status;
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
  }
  ModelInferRequest both = OnesModel(kPlacedElements);
  Place("r", 0, kTensorBytes, both.mutable_inputs(1));
  both.mutable_inputs(1)->mutable_contents();
  both.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1);
  EXPECT_THAT(Infer(*stub_, both).status.error_message(),
              HasSubstr("unexpected 'content' provided when using shared memory"));
}

TEST_F(InferenceSharedMemoryTest, ResultsMayNotOverlapInputs) {
  SharedObject object(2 * kTensorBytes);
  WriteInputs(object, 0);
  ASSERT_TRUE(Register("a", object.name(), 0, 2 * kTensorBytes).ok());
  ASSERT_TRUE(Register("b", object.name(), 0, 2 * kTensorBytes).ok());  // the same key again
  ModelInferRequest request = OnesInference(kPlacedElements);
  request.mutable_raw_input_contents()->DeleteSubrange(1, 1);
  Place("a", 0, kTensorBytes, request.mutable_inputs(1));
  request.add_outputs()->set_name("grad_input");
  Place("b", 4, kTensorBytes, request.mutable_outputs(0));
  const grpc::Status status = Infer(*stub_, request).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("overlaps"));
}

// Checks 34 and 39.
TEST_F(InferenceSharedMemoryTest, ARunningRequestKeepsItsRegions) {
  EXPECT_EQ(Regions().regions_size(), 0);  // the connection is there
  const int before = OpenDescriptors();
  auto object = std::make_unique<SharedObject>(3 * kTensorBytes);
  WriteInputs(*object, 0);
  ASSERT_TRUE(Register("r", object->name(), 0, 3 * kTensorBytes).ok());
  ModelInferRequest request = OnesInference(kPlacedElements);
  request.mutable_raw_input_contents()->DeleteSubrange(1, 2);
  Place("r", 0, kTensorBytes, request.mutable_inputs(1));
  Place("r", kTensorBytes, kTensorBytes, request.mutable_inputs(2));
  request.add_outputs()->set_name("grad_input");
  Place("r", 2 * kTensorBytes, kTensorBytes, request.mutable_outputs(0));
  InjectFaults("kernel=*,slow=500000");
  const int64_t launches = HostCount(OPSERVE_HOST_LAUNCHES);
  grpc::Status status;
  std::thread caller([&] { status = Infer(*stub_, request).status; });
  ASSERT_TRUE(Await([&] { return HostCount(OPSERVE_HOST_LAUNCHES) > launches; }));
  EXPECT_TRUE(Unregister("r").ok());
  EXPECT_EQ(Regions().regions_size(), 0);
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(object->Read(2 * kTensorBytes, kTensorBytes),
            RawElements(std::vector<float>(kPlacedElements, 1)));
  object.reset();
  EXPECT_EQ(OpenDescriptors(), before);
  EXPECT_EQ(MetricValue(daemon_.daemon(), "opserve_shm_regions", {{"tenant", "default"}}), 0);
}

// Check 39: a cancelled request gives them back.
TEST_F(InferenceSharedMemoryTest, ACancelledRequestGivesItsRegionsBack) {
  SharedObject object(2 * kTensorBytes);
  WriteInputs(object, 0);
  ASSERT_TRUE(Register("r", object.name(), 0, 2 * kTensorBytes).ok());
  ModelInferRequest request = OnesInference(kPlacedElements);
  request.mutable_raw_input_contents()->DeleteSubrange(1, 1);
  Place("r", 0, kTensorBytes, request.mutable_inputs(1));
  InjectFaults("kernel=*,slow=300000");
  EXPECT_EQ(Infer(*stub_, request, absl::Milliseconds(100)).status.error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  ASSERT_TRUE(Unregister("r").ok());
  EXPECT_TRUE(Await([&] {
    return MetricValue(daemon_.daemon(), "opserve_shm_regions", {{"tenant", "default"}}) == 0;
  }));
  EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
}

// Check 35, and what is listed.
TEST_F(InferenceSharedMemoryTest, StatusAndUnregister) {
  EXPECT_TRUE(Unregister("no").ok());
  EXPECT_TRUE(Unregister("").ok());
  EXPECT_EQ(Regions().regions_size(), 0);
  SharedObject object(2 * kPageBytes);
  ASSERT_TRUE(Register("a", object.name(), kPageBytes, 100).ok());
  ASSERT_TRUE(Register("b", object.name(), 0, 200).ok());
  const auto regions = Regions();
  ASSERT_EQ(regions.regions_size(), 2);
  EXPECT_EQ(regions.regions().at("a").name(), "a");
  EXPECT_EQ(regions.regions().at("a").key(), object.name());
  EXPECT_EQ(regions.regions().at("a").offset(), kPageBytes);
  EXPECT_EQ(regions.regions().at("a").byte_size(), 100u);

  inference::SystemSharedMemoryStatusRequest one;
  one.set_name("b");
  inference::SystemSharedMemoryStatusResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(stub_->SystemSharedMemoryStatus(&context, one, &response).ok());
  EXPECT_EQ(response.regions_size(), 1);
  one.set_name("no");
  grpc::ClientContext other_context;
  EXPECT_EQ(stub_->SystemSharedMemoryStatus(&other_context, one, &response).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Unregister("").ok());
  EXPECT_EQ(Regions().regions_size(), 0);
}

// Checks 35 and 36.
TEST_F(InferenceSharedMemoryTest, CudaHasNoRegions) {
  for (const char* name : {"", "no"}) {
    grpc::ClientContext context;
    inference::CudaSharedMemoryUnregisterRequest request;
    request.set_name(name);
    inference::CudaSharedMemoryUnregisterResponse response;
    EXPECT_TRUE(stub_->CudaSharedMemoryUnregister(&context, request, &response).ok());
  }
  {
    grpc::ClientContext context;
    inference::CudaSharedMemoryStatusResponse response;
    EXPECT_TRUE(stub_->CudaSharedMemoryStatus(&context, {}, &response).ok());
    EXPECT_EQ(response.regions_size(), 0);
  }
  grpc::ClientContext context;
  inference::CudaSharedMemoryRegisterRequest request;
  request.set_name("r");
  inference::CudaSharedMemoryRegisterResponse response;
  const grpc::Status status = stub_->CudaSharedMemoryRegister(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(status.error_message(),
            "failed to register CUDA shared memory region: 'r', GPUs not supported");
}

TEST_F(InferenceSharedMemoryTest, NotWithAnIdempotencyKey) {
  SharedObject object(kTensorBytes);
  ASSERT_TRUE(Register("r", object.name(), 0, kTensorBytes).ok());
  ModelInferRequest request = OnesInference(kPlacedElements);
  request.add_outputs()->set_name("grad_input");
  Place("r", 0, kTensorBytes, request.mutable_outputs(0));
  (*request.mutable_parameters())["idempotency_key"].set_string_param("k");
  EXPECT_THAT(Infer(*stub_, request).status.error_message(), HasSubstr("idempotency_key"));
}

// Each tenant sees its own regions only, and has only so many.
TEST(InferenceTenantsTest, RegionsAreTheirTenants) {
  config::ServerConfig values;
  values.set_metrics_listen("none");
  values.set_admin_listen("none");
  // Tokens "a" and "b".
  const char* const digests[] = {
      "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb",
      "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"};
  for (int i = 0; i < 2; ++i) {
    config::Tenant* tenant = values.add_tenant();
    tenant->set_name(i == 0 ? "a" : "b");
    tenant->add_token_sha256(digests[i]);
    tenant->mutable_shared_memory()->set_max_regions(2);
    tenant->mutable_shared_memory()->set_hard_bytes(1000);
  }
  Config config = WithNamedRegions();
  config.tenants = TenantsFrom(values).value();
  const InProcessDaemon daemon(config);
  const auto stub = NewInferenceStub(daemon.target());
  SharedObject object(kPageBytes);
  const auto add_token = [](const char* token, grpc::ClientContext* context) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  };
  const auto register_as = [&](const char* token, const char* name, uint64_t size) {
    grpc::ClientContext context;
    add_token(token, &context);
    inference::SystemSharedMemoryRegisterRequest request;
    request.set_name(name);
    request.set_key(object.name());
    request.set_byte_size(size);
    inference::SystemSharedMemoryRegisterResponse response;
    return stub->SystemSharedMemoryRegister(&context, request, &response).error_code();
  };
  const auto regions_of = [&](const char* token) {
    grpc::ClientContext context;
    add_token(token, &context);
    inference::SystemSharedMemoryStatusResponse response;
    EXPECT_TRUE(stub->SystemSharedMemoryStatus(&context, {}, &response).ok());
    return response.regions_size();
  };
  EXPECT_EQ(register_as("a", "r", 100), grpc::StatusCode::OK);
  EXPECT_EQ(register_as("a", "large", 901), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(register_as("a", "other", 100), grpc::StatusCode::OK);
  EXPECT_EQ(register_as("a", "third", 100), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(register_as("b", "r", 100), grpc::StatusCode::OK);
  EXPECT_EQ(regions_of("a"), 2);
  EXPECT_EQ(regions_of("b"), 1);

  grpc::ClientContext context;
  add_token("b", &context);
  inference::SystemSharedMemoryUnregisterResponse response;
  EXPECT_TRUE(stub->SystemSharedMemoryUnregister(&context, {}, &response).ok());
  EXPECT_EQ(regions_of("a"), 2);
  EXPECT_EQ(regions_of("b"), 0);

  grpc::ClientContext infer_context;
  add_token("b", &infer_context);
  ModelInferRequest request = OnesInference(1);
  request.mutable_raw_input_contents()->DeleteSubrange(1, 1);
  Place("other", 0, 4, request.mutable_inputs(1));
  inference::ModelInferResponse answer;
  EXPECT_EQ(stub->ModelInfer(&infer_context, request, &answer).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(NamedRegionsConfigTest, OnlyWhereNobodyElseCanReachTheDaemon) {
  config::ServerConfig values;
  EXPECT_FALSE(ConfigFrom(values)->allow_named_shm);
  values.set_allow_named_shm(true);
  for (const char* address : {"unix:/tmp/a.sock", "127.0.0.1:1", "[::1]:1", "localhost:1"}) {
    values.clear_listen();
    values.add_listen(address);
    EXPECT_TRUE(ConfigFrom(values).ok()) << address;
  }
  values.add_listen("0.0.0.0:8470");
  values.set_insecure_allow_plaintext(true);
  const absl::Status status = ConfigFrom(values).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(),
            "allow_named_shm: other machines can reach 0.0.0.0:8470; listen on Unix sockets and "
            "loopback addresses only");
}

}  // namespace
}  // namespace opserve::server
