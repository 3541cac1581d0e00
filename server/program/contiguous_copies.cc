#include "server/program/contiguous_copies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/status/error.h"
#include "proto/status/status_macros.h"
#include "server/program/tensor_view.h"

namespace opserve::server {

bool NeedsContiguousCopy(const BoundInput& input) {
  // Strides of single elements, and of views without elements, are replaced before (ReadView).
  return input.strides != ContiguousStrides(input.spec.shape);
}

absl::StatusOr<const ContiguousCopy*> AddContiguousCopy(const OperatorTable& operators,
                                                        BoundInput* input, Program* program) {
  const LoadedOperator* const op = operators.Find("InplaceCopy");  // of the catalogue
  if (absl::Status available = op->CheckAvailable(); !available.ok()) {
    return WithMessage(
        absl::StrCat("must be contiguous here, and cannot be made so: ", available.message()),
        available);
  }
  const auto position = static_cast<uint32_t>(program->copies.size());
  BoundInput whole;
  ViewWhole(input->spec, &whole);
  whole.source = CopySource{position};
  BoundInvocation call;
  call.op = op;
  // InplaceCopy(self, src): self is the place of the copy, and has no elements to keep.
  call.inputs.push_back(whole);
  call.inputs.push_back(std::move(*input));
  call.input_ends = {1, 2};
  OPSERVE_RETURN_IF_ERROR(JudgeCall(/*wanted=*/{true}, /*asked=*/{std::nullopt}, &call));
  *input = std::move(whole);
  return &program->copies.emplace_back(
      ContiguousCopy{static_cast<uint32_t>(program->invocations.size()), std::move(call)});
}

absl::Span<const ContiguousCopy> CopiesBefore(const Program& program, uint32_t invocation) {
  if (program.copies.empty()) return {};
  // Invocations are bound in order, and so are their copies.
  const auto before = [](const ContiguousCopy& copy, uint32_t i) { return copy.invocation < i; };
  const auto begin =
      std::lower_bound(program.copies.begin(), program.copies.end(), invocation, before);
  const auto end = std::lower_bound(begin, program.copies.end(), invocation + 1, before);
  return absl::MakeConstSpan(program.copies)
      .subspan(static_cast<size_t>(begin - program.copies.begin()),
               static_cast<size_t>(end - begin));
}

}  // namespace opserve::server
