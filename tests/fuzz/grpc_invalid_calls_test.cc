// Random wrong calls through a daemon, built with the stock protobuf classes: each gets a precise
// error or, where the change happened to leave it legal, an answer; nothing crashes or stays
// behind.

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "opserve/v1/operator_service.grpc.pb.h"
#include "proto/dtypes/tensor_spec.h"
#include "tests/fuzz/error_text.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/golden_request.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/seed.h"

namespace opserve::server {
namespace {

constexpr int kCalls = 3000;
constexpr int kCallsOfACaller = 300;
// Of a request that is one frame of a session.
constexpr size_t kMostBytes = 1'000'000;

class RandomRequests {
 public:
  explicit RandomRequests(uint32_t seed) : random_(seed) {}

  // A valid call of a random operator: every other one with tensors of another size, and nothing
  // else or one to four random changes.
  v1::ExecuteRequest Next() {
    v1::ExecuteRequest request = Valid();
    const bool is_resized = Below(2) == 0;
    if (is_resized) Resize(&request);
    for (int64_t changes = is_resized ? Below(3) : Below(4) + 1; changes > 0; --changes) {
      Change(&request);
    }
    return request;
  }

 private:
  int64_t Below(int64_t limit) { return static_cast<int64_t>(random_() % limit); }
  template <typename T>
  T OneOf(std::initializer_list<T> values) {
    return *(values.begin() + Below(static_cast<int64_t>(values.size())));
  }

  v1::ExecuteRequest Valid() {
    const auto operators = catalog::AllOperators();
    return GoldenRequest(*operators[Below(static_cast<int64_t>(operators.size()))]);
  }

  double OddReal() {
    return OneOf<double>({0, -1, 0.5, 1e-300, 1e300, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()});
  }

  // Another value of its type for an attribute that is given.
  void ChangeAttribute(v1::Invocation* invocation) {
    if (invocation->attributes().empty()) return;
    v1::AttributeValue* value =
        invocation->mutable_attributes(static_cast<int>(Below(invocation->attributes_size())))
            ->mutable_value();
    if (value->has_int64_value()) value->set_int64_value(OddNumber());
    if (value->has_bool_value()) value->set_bool_value(!value->bool_value());
    if (value->has_double_value()) value->set_double_value(OddReal());
    if (value->has_scalar_value() && value->scalar_value().has_double_value()) {
      value->mutable_scalar_value()->set_double_value(OddReal());
    }
    if (value->has_scalar_value() && value->scalar_value().has_int64_value()) {
      value->mutable_scalar_value()->set_int64_value(OddNumber());
    }
    if (!value->has_int64_list()) return;
    auto* numbers = value->mutable_int64_list()->mutable_values();
    switch (numbers->empty() ? 0 : Below(4)) {
      case 0:
        return numbers->Add(OddNumber());
      case 1:
        return numbers->RemoveLast();
      default:
        return numbers->Set(static_cast<int>(Below(numbers->size())), OddNumber());
    }
  }

  // Elements of any value, among them indices of no element and numbers that are none.
  void ChangeElements(v1::ExecuteRequest* request) {
    if (request->payloads().empty()) return;
    std::string* payload =
        request->mutable_payloads(static_cast<int>(Below(request->payloads_size())));
    if (Below(2) == 0) {
      std::fill(payload->begin(), payload->end(), OneOf<char>({'\x00', '\x01', '\x7f', '\xff'}));
    } else {
      for (char& byte : *payload) byte = static_cast<char>(Below(256));
    }
  }

  // Axes as long as a random one become longer, shorter or empty in all tensors, so that most
  // shapes fit one another still. Some tensors become views.
  void Resize(v1::ExecuteRequest* request) {
    std::vector<v1::Tensor*> tensors;
    std::set<int64_t> extents;
    for (v1::NamedTensor& input : *request->mutable_invocations(0)->mutable_inputs()) {
      if (input.has_tensor()) tensors.push_back(input.mutable_tensor());
      if (!input.has_list()) continue;
      for (v1::Tensor& one : *input.mutable_list()->mutable_tensors()) tensors.push_back(&one);
    }
    for (const v1::Tensor* tensor : tensors) {
      extents.insert(tensor->shape().begin(), tensor->shape().end());
    }
    if (extents.empty()) return;
    const int64_t from = *std::next(extents.begin(), Below(static_cast<int64_t>(extents.size())));
    const int64_t to = OneOf<int64_t>({0, 0, 1, 2, 5, 40});
    for (v1::Tensor* tensor : tensors) {
      std::replace(tensor->mutable_shape()->begin(), tensor->mutable_shape()->end(), from, to);
      const int64_t elements = LayOut(tensor);
      std::string& payload = *request->mutable_payloads(static_cast<int>(tensor->payload()));
      const std::string before = payload;
      payload.clear();
      const auto bytes = static_cast<size_t>(elements * DtypeBytes(tensor->dtype()));
      while (payload.size() < bytes && !before.empty()) payload += before;
      payload.resize(bytes);
    }
  }

  // Elements of the storage that the tensor takes: one after another, or as a view that steps over
  // some, has its axes in another order, or shows elements more than once.
  int64_t LayOut(v1::Tensor* tensor) {
    const Shape shape(tensor->shape().begin(), tensor->shape().end());
    const int64_t count = NumElements(shape);
    if (Below(3) > 0 || count == 0) return count;
    std::vector<int> axes(shape.size());
    std::iota(axes.begin(), axes.end(), 0);
    if (Below(2) == 0) std::shuffle(axes.begin(), axes.end(), random_);
    tensor->mutable_strides()->Resize(static_cast<int>(shape.size()), 0);
    tensor->set_offset(Below(4));
    int64_t stride = Below(3) + 1;
    int64_t last = tensor->offset();
    for (const int axis : axes) {
      if (Below(6) == 0) continue;
      tensor->set_strides(axis, stride);
      last += (shape[axis] - 1) * stride;
      stride *= shape[axis] * (Below(4) == 0 ? 2 : 1);
    }
    return last + 1;
  }

  int64_t OddNumber() {
    return OneOf<int64_t>({-1, 0, 1, 2, 3, 7, 1000, int64_t{1} << 31, int64_t{1} << 40, INT64_MAX,
                           INT64_MIN, INT64_MAX / 2});
  }

  void Change(v1::ExecuteRequest* request) {
    if (request->invocations().empty()) return;
    v1::Invocation* invocation = request->mutable_invocations(Below(request->invocations_size()));
    switch (Below(6)) {
      case 0:
        return ChangeAttribute(invocation);
      case 1:
        return ChangeElements(request);
      default:
        break;
    }
    if (invocation->inputs().empty() || Below(3) == 0) return ChangeCall(request, invocation);
    v1::NamedTensor* input = invocation->mutable_inputs(Below(invocation->inputs_size()));
    ChangeTensor(request, input);
  }

  void ChangeCall(v1::ExecuteRequest* request, v1::Invocation* invocation) {
    switch (Below(9)) {
      case 0:
        return invocation->set_operator_(OneOf<const char*>({"", "Nope", "L1LossBackward"}));
      case 1:
        return request->clear_invocations();
      case 2:
        if (!invocation->inputs().empty()) invocation->mutable_inputs()->RemoveLast();
        return;
      case 3: {
        v1::NamedAttribute* attribute = invocation->add_attributes();
        attribute->set_name(OneOf<const char*>({"reduction", "dim", "alpha", "nope", ""}));
        if (Below(2) == 0) attribute->mutable_value()->set_int64_value(OddNumber());
        if (Below(3) == 0) attribute->mutable_value()->set_name("batchmean");
        if (Below(3) == 0) attribute->mutable_value()->set_double_value(0.5);
        if (Below(3) == 0)
          attribute->mutable_value()->mutable_int64_list()->add_values(OddNumber());
        if (Below(5) == 0) attribute->mutable_value()->set_text_value("tanh");
        if (Below(5) == 0) {
          attribute->mutable_value()->mutable_scalar_value()->set_dtype(
              static_cast<v1::DataType>(Below(12)));
        }
        return;
      }
      case 4: {
        v1::OutputRequest* output = invocation->add_outputs();
        output->set_name(OneOf<const char*>({"out", "grad_input", "nope"}));
        output->set_dtype(static_cast<v1::DataType>(Below(12)));
        return;
      }
      case 5:
        return request->add_results()->set_invocation(static_cast<uint32_t>(OddNumber()));
      case 6:
        request->add_payloads(std::string(Below(50), 'x'));
        return;
      case 7:
        if (!request->payloads().empty()) request->mutable_payloads()->RemoveLast();
        return;
      default:
        *request->add_invocations() = v1::Invocation(*invocation);
    }
  }

  void ChangeTensor(v1::ExecuteRequest* request, v1::NamedTensor* input) {
    if (input->has_list() && Below(6) == 0) {
      *input->mutable_list()->add_tensors() =
          input->list().tensors_size() == 0 ? v1::Tensor() : v1::Tensor(input->list().tensors(0));
      return;
    }
    v1::Tensor* tensor = input->has_list() && !input->list().tensors().empty()
                             ? input->mutable_list()->mutable_tensors(
                                   static_cast<int>(Below(input->list().tensors_size())))
                             : input->mutable_tensor();
    switch (Below(9)) {
      case 0:
        return input->set_name(OneOf<const char*>({"", "self", "target", "nope"}));
      case 1:
        return tensor->set_dtype(static_cast<v1::DataType>(Below(12)));
      case 2:
        return tensor->add_shape(OddNumber());
      case 3:
        if (!tensor->shape().empty()) {
          tensor->set_shape(static_cast<int>(Below(tensor->shape_size())), OddNumber());
        }
        return;
      case 4:
        for (int64_t count = Below(10); count > 0; --count) tensor->add_shape(1);
        return;
      case 5:
        // Overlapping and overflowing views among them.
        for (int i = 0; i < tensor->shape_size(); ++i) tensor->add_strides(OddNumber());
        return;
      case 6:
        return tensor->set_offset(OddNumber());
      case 7:
        return tensor->set_payload(static_cast<uint32_t>(OddNumber()));
      default:
        if (Below(2) == 0) return input->clear_tensor();
        tensor->mutable_invocation_output()->set_invocation(
            static_cast<uint32_t>(Below(request->invocations_size() + 1)));
    }
  }

  std::mt19937_64 random_;
};

class GrpcInvalidCallsTest : public testing::TestWithParam<Door> {};

TEST_P(GrpcInvalidCallsTest, EachGetsAPreciseErrorAndNothingStaysBehind) {
  Config config = InProcessDaemon::DefaultConfig();
  config.max_request_work = 1 << 24;  // a few bytes may stand for many elements
  InProcessDaemon daemon(config);
  std::optional<DoorCaller> caller;
  RandomRequests requests(TestSeed());
  std::map<int, int> codes;
  for (int i = 0; i < kCalls; ++i) {
    // A session of the tests' ends after two minutes.
    if (i % kCallsOfACaller == 0) caller.emplace(daemon.target(), GetParam());
    const v1::ExecuteRequest request = requests.Next();
    if (request.ByteSizeLong() > kMostBytes) continue;
    v1::ExecuteResponse response;
    const grpc::Status status = caller->Execute(request, &response);
    // The daemon knows the request by now, and its plan.
    v1::ExecuteResponse repeated;
    const grpc::Status repetition = caller->Execute(request, &repeated);
    ASSERT_EQ(repetition.error_code(), status.error_code()) << repetition.error_message() << "\n"
                                                            << request.ShortDebugString();
    ASSERT_EQ(repeated.SerializeAsString(), response.SerializeAsString())
        << request.ShortDebugString();
    ++codes[status.error_code()];
    if (status.ok()) continue;
    // The other one is that of calls that are right and too large for the daemon's limits.
    ASSERT_THAT(status.error_code(), testing::AnyOf(grpc::StatusCode::INVALID_ARGUMENT,
                                                    grpc::StatusCode::FAILED_PRECONDITION))
        << status.error_message() << "\n"
        << request.ShortDebugString();
    ASSERT_GT(status.error_message().size(), 8u) << request.ShortDebugString();
    v1::StatusDetails details;
    ASSERT_TRUE(details.ParseFromString(status.error_details()) && details.details_size() == 1)
        << status.error_message();
    ASSERT_THAT(GivenAway(status.error_message()), testing::IsEmpty()) << status.error_message();
    ASSERT_THAT(GivenAway(DetailOf(details).ShortDebugString()), testing::IsEmpty())
        << status.error_message();
  }
  EXPECT_GT(codes[grpc::StatusCode::INVALID_ARGUMENT], kCalls / 2);
  EXPECT_GT(codes[grpc::StatusCode::OK], kCalls / 20);
  EXPECT_TRUE(caller->ExecuteOnes(100).ok());
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

INSTANTIATE_TEST_SUITE_P(Doors, GrpcInvalidCallsTest, BothDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
