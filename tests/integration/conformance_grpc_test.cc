// The conformance set's value cases through a daemon with two devices: the same operators, numbers
// and special values as through the C ABI.

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ops/catalog/catalog.h"
#include "tests/conformance/case.h"
#include "tests/conformance/compare.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/shared_memory_requests.h"

namespace opserve::server {
namespace {

constexpr char kData[] = OPSERVE_TEST_DATA_DIR "/conformance";

// The catalogue's names for aclnn's: "gradOutput" is "grad_output".
std::string SnakeCase(const std::string& name) {
  std::string snake;
  for (char c : name) {
    if (c >= 'A' && c <= 'Z') {
      snake += absl::StrCat("_", std::string(1, static_cast<char>(c - 'A' + 'a')));
    } else {
      snake += c;
    }
  }
  return snake;
}

Tensor ToTensor(const conformance::Tensor& tensor) {
  const absl::Span<const std::byte> bytes(reinterpret_cast<const std::byte*>(tensor.storage.data()),
                                          tensor.storage.size());
  return Tensor::FromBytes(ParseDataType(tensor.dtype).value(), tensor.shape, bytes)
      .WithStrides(tensor.strides, tensor.offset);
}

Request ToRequest(const conformance::Case& value_case) {
  Invocation invocation;
  invocation.operator_name = value_case.operator_name.substr(5);  // without "aclnn"
  for (const auto& input : value_case.inputs) {
    invocation.inputs.push_back({SnakeCase(input->name), ToTensor(*input)});
  }
  for (const auto& [name, value] : value_case.attributes) {
    NamedAttribute attribute{SnakeCase(name), {}};
    std::visit([&](auto v) { attribute.value = v; }, value);
    invocation.attributes.push_back(std::move(attribute));
  }
  const catalog::OperatorDescriptor& descriptor = *catalog::FindOperator(invocation.operator_name);
  invocation.output_dtypes = {
      {descriptor.outputs.front().name, ParseDataType(value_case.output->dtype).value()}};
  return {.invocations = {std::move(invocation)}, .want_receipt = true};
}

TEST(ConformanceGrpcTest, EveryValueCaseThroughADaemonWithTwoDevices) {
  InProcessDaemon daemon;
  int cases = 0;
  std::map<uint32_t, int> devices;
  for (const char* operator_name : conformance::kOperators) {
    for (const conformance::Case& value_case : conformance::LoadValueCases(kData, operator_name)) {
      ++cases;
      const auto response = daemon.client().Execute(ToRequest(value_case));
      if (!response.ok()) {
        ADD_FAILURE() << value_case.id << ": " << response.status();
        continue;
      }
      const Result& result = response->results.at(0);
      EXPECT_EQ(result.shape(), value_case.output->shape) << value_case.id;
      EXPECT_EQ(result.dtype(), ParseDataType(value_case.output->dtype).value()) << value_case.id;
      const auto bytes = result.bytes();
      EXPECT_EQ(conformance::CompareElements(
                    value_case, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}),
                "")
          << value_case.id;
      ++devices[response->receipt->device()];
    }
  }
  EXPECT_EQ(cases, 804);
  EXPECT_EQ(devices.size(), 2u);
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

// Inputs with any strides and offsets, used where they are; the result is written where it shall
// be.
TEST(ConformanceGrpcTest, InSharedMemoryEveryValueCaseGivesTheSameBits) {
  InProcessDaemon daemon(WithSharedMemory());
  const auto memory = *SharedMemory::Open(daemon.target());
  const auto region = *memory->CreateRegion(1 << 20);
  for (const char* operator_name : conformance::kOperators) {
    for (const conformance::Case& value_case : conformance::LoadValueCases(kData, operator_name)) {
      const Request request = ToRequest(value_case);
      const auto sent = daemon.client().Execute(request);
      ASSERT_TRUE(sent.ok()) << value_case.id << ": " << sent.status();
      const auto expected = sent->results[0].bytes();
      Layout layout(region.get());

      const auto shared = daemon.client().Execute(layout.Put(request, expected.size()));

      ASSERT_TRUE(shared.ok()) << value_case.id << ": " << shared.status();
      EXPECT_EQ(shared->results[0].bytes(), expected) << value_case.id;
      EXPECT_EQ(shared->receipt->copied_to_device_bytes(), 0u) << value_case.id;
      EXPECT_EQ(shared->receipt->copied_from_device_bytes(), 0u) << value_case.id;
    }
  }
  EXPECT_EQ(daemon.HeldByRequests(), 0);
}

}  // namespace
}  // namespace opserve::server
