// The parts of operators.h that are the same for each operator.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "client/cpp/request.h"

namespace opserve {

// A list of numbers as an attribute: `.dims = {0, 1}`. Without a value, the attribute is left out.
template <typename T>
class NumberList {
 public:
  NumberList() = default;
  NumberList(std::initializer_list<T> values) : values_(values) {}
  NumberList(std::vector<T> values) : values_(std::move(values)) {}

  const std::optional<std::vector<T>>& values() const { return values_; }

 private:
  std::optional<std::vector<T>> values_;
};

// An output that is a list: `outputs[2]` is the third of its tensors.
struct OutputList {
  uint32_t invocation = 0;
  std::string output = {};

  OutputOf operator[](uint32_t index) const {
    return {.invocation = invocation, .output = output + "." + std::to_string(index)};
  }
};

// A sink of invocations.
class OperatorCalls {
 public:
  virtual ~OperatorCalls() = default;

  // Adds an invocation, such as of an operator that these headers do not know; its position.
  virtual uint32_t Invoke(Invocation invocation) = 0;

 protected:
  using Tensors = std::vector<ListedTensor>;

  // Inputs and attributes that have a value.
  static void AddInput(const char* name, const ListedTensor& tensor, Invocation* invocation) {
    NamedInput& input = invocation->inputs.emplace_back();
    input.name = name;
    std::visit([&input](const auto& value) { input.value = value; }, tensor);
  }
  static void AddInput(const char* name, const Tensors& tensors, Invocation* invocation) {
    invocation->inputs.push_back({.name = name, .value = tensors});
  }
  template <typename T>
  static void AddInput(const char* name, const std::optional<T>& input, Invocation* invocation) {
    if (input) AddInput(name, *input, invocation);
  }
  template <typename T>
  static void AddAttribute(const char* name, const std::optional<T>& value,
                           Invocation* invocation) {
    if (value) invocation->attributes.push_back({.name = name, .value = *value});
  }
  template <typename T>
  static void AddAttribute(const char* name, const NumberList<T>& list, Invocation* invocation) {
    AddAttribute(name, list.values(), invocation);
  }
};

}  // namespace opserve
