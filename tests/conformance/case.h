// The conformance set (tests/data/conformance, its README.md has the format) as C++ values, for
// every test that runs it: through the C ABI, through the server.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace opserve::conformance {

struct Tensor {
  std::string name;                    // of the API parameter; empty for outputs
  std::string dtype;                   // "FLOAT"
  std::vector<int64_t> shape;          // of the view
  std::vector<int64_t> strides;        // elements
  int64_t offset = 0;                  // elements
  std::vector<int64_t> storage_shape;  // the storage has as many elements as their product
  std::string format = "ND";
  std::string storage;  // bytes of the whole storage: inputs of value cases only

  int64_t num_elements() const;
  int64_t storage_bytes() const;
};

using Attribute = std::variant<bool, int64_t>;

struct Case {
  std::string id;
  std::string operator_name;                    // "aclnnKlDivBackward"
  std::map<std::string, Attribute> attributes;  // by API name
  std::vector<std::optional<Tensor>> inputs;    // API order; nothing is a null pointer
  std::optional<Tensor> output;
  std::vector<std::string> tags;
  int32_t expected_status = 0;

  // Value cases: one number per element of the output's view, in row-major order.
  std::vector<double> expected;
  double atol = 0;
  double rtol = 0;

  // Status cases.
  std::optional<uint64_t> expected_workspace;
  bool workspace_size_is_null = false;
  bool executor_is_null = false;
};

// Bytes of an element; 1 for types that no value case has.
int64_t ElementBytes(const std::string& dtype);

// All operators of the set, and the cases of one of them. `directory` is that of the data files.
// They throw std::exception where a file is missing or malformed: a broken set is not a test.
inline constexpr const char* kOperators[] = {"aclnnKlDivBackward", "aclnnKlDivTargetBackward",
                                             "aclnnL1LossBackward", "aclnnLogSoftmaxBackward",
                                             "aclnnMseLossBackward"};
std::vector<Case> LoadValueCases(const std::string& directory, const std::string& operator_name);
std::vector<Case> LoadStatusCases(const std::string& directory, const std::string& operator_name);

}  // namespace opserve::conformance
