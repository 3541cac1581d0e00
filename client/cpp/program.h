// Programs that are written like their formulas.
//
//   opserve::Program p;
//   const InputOf x = p.Input(kFloat, {60, 64});
//   const InputOf w = p.Input(kFloat, {64, 10});
//   const InputOf labels = p.Input(kInt64, {60});
//   const OutputOf log_q = p.LogSoftmax(p.Matmul(x, w), {.dim = -1});
//   const auto loss = p.NllLoss(log_q, labels, p.Full<float>({10}, 1));
//   ...
//   p.Return(loss.out);
//   p.Replace(w, p.Sub(w, change));
//   absl::StatusOr<PreparedProgram> step = client->Prepare(p.request());
//   absl::StatusOr<Response> response = (*step)({batch, digits, weights});
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/cpp/operators.h"
#include "client/cpp/request.h"

namespace opserve {

// Builds a Request. Each operator is a method (operators.h). Its inputs are tensors of any kind and
// outputs of earlier methods. Its outputs never leave the device unless asked for.
//
// Mistakes are found where the request is used: by the daemon, which names invocation and argument.
// Not thread-safe.
class Program : public Operators {
 public:
  // An input that comes with each call of the prepared program, in the order of these calls. Each
  // must be used. Only prepared programs have them.
  InputOf Input(DataType dtype, std::vector<int64_t> shape);

  // A small tensor that is part of the program.
  template <Element T>
  static Literal LiteralOf(std::vector<int64_t> shape, absl::Span<const T> elements) {
    const auto* bytes = reinterpret_cast<const char*>(elements.data());
    return {.dtype = kDataTypeOf<T>,
            .shape = std::move(shape),
            .elements = std::string(bytes, elements.size() * sizeof(T))};
  }

  // A tensor of equal elements; it takes no memory.
  template <Element T>
  static Literal Full(std::vector<int64_t> shape, T element) {
    Literal literal = LiteralOf<T>(std::move(shape), absl::MakeConstSpan(&element, 1));
    literal.strides.assign(literal.shape.size(), 0);
    return literal;
  }

  // Results, in the order of these calls: sent back; kept as new resident tensors, for `lease` or
  // the daemon's default; or put in the place of a resident tensor's content.
  void Return(OutputOf output);
  void Keep(OutputOf output, absl::Duration lease = absl::ZeroDuration());
  void Replace(std::variant<ResidentTensor, InputOf> tensor, OutputOf output,
               std::optional<uint64_t> version = std::nullopt);

  // The run uses the tensor and gives it up: see Request::donated.
  void Donate(std::variant<ResidentTensor, InputOf> tensor);

  // The program as it is now. Its other fields (timeout, ...) are the caller's to set in a copy.
  const Request& request() const { return request_; }

  uint32_t Invoke(Invocation invocation) override;

 private:
  Request request_;
  uint32_t num_inputs_ = 0;
};

}  // namespace opserve
