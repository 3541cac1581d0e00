#include "client/cli/commands/program_drawing.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/arrays/handle_text.h"
#include "client/cli/text/tensor_text.h"

namespace opserve::cli {
namespace {

// As DOT takes a text, in quotation marks. The file may have any name for anything.
std::string Quoted(absl::string_view text) {
  // DOT reads a backslash as an escape.
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

std::string InputNode(uint32_t number) { return absl::StrCat("input", number); }
std::string InvocationNode(uint32_t number) { return absl::StrCat("call", number); }

// Collects the lines of a DOT graph. Their order is free: an edge may come before its nodes.
class Drawing {
 public:
  void AddNode(absl::string_view id, absl::string_view label, absl::string_view shape) {
    absl::StrAppend(&text_, "  ", id, " [label=", Quoted(label), ", shape=", shape, "];\n");
  }
  void AddEdge(absl::string_view from, absl::string_view to, absl::string_view label) {
    absl::StrAppend(&text_, "  ", from, " -> ", to, " [label=", Quoted(label), "];\n");
  }

  // The edge from a tensor's origin to the invocation that reads it as `name`.
  void AddTensor(const v1::Tensor& tensor, absl::string_view name, absl::string_view to) {
    switch (tensor.storage_case()) {
      case v1::Tensor::kInvocationOutput: {
        const v1::InvocationOutput& output = tensor.invocation_output();
        const std::string label = output.output().empty()
                                      ? std::string(name)
                                      : absl::StrCat(output.output(), " → ", name);
        return AddEdge(InvocationNode(output.invocation()), to, label);
      }
      case v1::Tensor::kProgramInput:
        return AddEdge(InputNode(tensor.program_input()), to, name);
      case v1::Tensor::kResidentTensor:
        return AddConstant(
            absl::StrCat("tensor ", FormatHandle(tensor.resident_tensor()).substr(0, 8)), name, to);
      default:
        return AddConstant(
            TensorText(tensor.dtype(), {tensor.shape().begin(), tensor.shape().end()}), name, to);
    }
  }

  std::string Text() const {
    return absl::StrCat("digraph program {\n  node [fontname=\"sans-serif\"];\n", text_, "}\n");
  }

 private:
  // Each use has a node of its own: constants have no name by which to tell that two are one.
  void AddConstant(absl::string_view label, absl::string_view name, absl::string_view to) {
    const std::string id = absl::StrCat("constant", num_constants_++);
    AddNode(id, label, "note");
    AddEdge(id, to, name);
  }

  std::string text_;
  int num_constants_ = 0;
};

std::string Fate(const v1::WantedResult& result) {
  if (result.has_keep()) return "kept";
  if (result.has_replace()) return "replaced";
  return "returned";
}

}  // namespace

std::string DrawProgram(const v1::PrepareRequest& program) {
  Drawing drawing;
  for (int i = 0; i < program.inputs_size(); ++i) {
    const v1::ProgramInput& input = program.inputs(i);
    drawing.AddNode(
        InputNode(i),
        absl::StrCat("input ", i, "\n",
                     TensorText(input.dtype(), {input.shape().begin(), input.shape().end()})),
        "box");
  }
  const v1::ExecuteRequest& request = program.program();
  for (int i = 0; i < request.invocations_size(); ++i) {
    const v1::Invocation& invocation = request.invocations(i);
    const std::string node = InvocationNode(i);
    drawing.AddNode(node, absl::StrCat(invocation.operator_(), "\n", i), "oval");
    for (const v1::NamedTensor& named : invocation.inputs()) {
      if (named.has_tensor()) drawing.AddTensor(named.tensor(), named.name(), node);
      for (int j = 0; j < named.list().tensors_size(); ++j) {
        drawing.AddTensor(named.list().tensors(j), absl::StrCat(named.name(), ".", j), node);
      }
    }
  }
  for (int i = 0; i < request.results_size(); ++i) {
    const v1::WantedResult& result = request.results(i);
    const std::string id = absl::StrCat("result", i);
    drawing.AddNode(id, absl::StrCat("result ", i, "\n", Fate(result)), "box");
    drawing.AddEdge(InvocationNode(result.invocation()), id, result.output());
    if (result.replace().has_program_input()) {
      drawing.AddEdge(id, InputNode(result.replace().program_input()), "replaces");
    }
  }
  return drawing.Text();
}

}  // namespace opserve::cli
