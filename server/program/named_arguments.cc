#include "server/program/named_arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "ops/catalog/attributes.h"
#include "ops/catalog/dtypes.h"
#include "proto/status/error.h"

namespace opserve::server {
namespace {

// The position of the argument with this name; the number of arguments if there is none. Operators
// have a few arguments at most, so a search is quicker than a table.
template <typename Descriptor>
size_t IndexOf(const std::vector<Descriptor>& arguments, absl::string_view name) {
  size_t index = 0;
  while (index < arguments.size() && arguments[index].name != name) ++index;
  return index;
}

template <typename Descriptor>
std::string NamesOf(const std::vector<Descriptor>& arguments) {
  return absl::StrJoin(arguments, ", ", [](std::string* out, const Descriptor& argument) {
    absl::StrAppend(out, argument.name);
  });
}

}  // namespace

bool Accepts(const std::vector<aclDataType>& dtypes, Dtype dtype) {
  return std::find(dtypes.begin(), dtypes.end(), catalog::ToAcl(dtype)) != dtypes.end();
}

std::string DtypeList(const std::vector<aclDataType>& dtypes) {
  return absl::StrJoin(dtypes, ", ", [](std::string* out, aclDataType dtype) {
    absl::StrAppend(out, catalog::DtypeName(dtype));
  });
}

absl::Status OrderInputs(const GivenInvocation& invocation,
                         const catalog::OperatorDescriptor& descriptor,
                         absl::InlinedVector<const GivenInput*, 3>* given) {
  // A client may name the inputs in any order; stage one takes them in the descriptor's.
  given->assign(descriptor.inputs.size(), nullptr);
  for (const GivenInput& named : invocation.inputs) {
    const size_t index = IndexOf(descriptor.inputs, named.name);
    if (index == descriptor.inputs.size()) {
      return InvalidCall(descriptor.name, named.name,
                         absl::StrCat("no such input; there are: ", NamesOf(descriptor.inputs)));
    }
    if ((*given)[index] != nullptr) {
      return InvalidCall(descriptor.name, named.name, "given twice");
    }
    (*given)[index] = &named;
  }
  return absl::OkStatus();
}

absl::Status ReadOutputRequests(const GivenInvocation& invocation,
                                const catalog::OperatorDescriptor& descriptor,
                                absl::InlinedVector<bool, 4>* wanted,
                                absl::InlinedVector<std::optional<aclDataType>, 4>* asked) {
  const auto& outputs = descriptor.outputs;
  asked->resize(outputs.size());
  absl::InlinedVector<bool, 4> is_named(outputs.size(), false);
  bool chooses = false;  // among masked outputs
  for (const GivenOutput& request : invocation.outputs) {
    const size_t index = IndexOf(outputs, request.name);
    if (index == outputs.size()) {
      return InvalidCall(descriptor.name, request.name,
                         absl::StrCat("no such output; there ",
                                      outputs.size() == 1 ? "is " : "are ", NamesOf(outputs)));
    }
    if (is_named[index]) return InvalidCall(descriptor.name, request.name, "asked for twice");
    is_named[index] = true;
    chooses |= outputs[index].is_masked();
    if (request.dtype == v1::DATA_TYPE_UNSPECIFIED) continue;
    if (!Accepts(outputs[index].dtypes, request.dtype)) {
      return InvalidCall(
          descriptor.name, outputs[index].name,
          outputs[index].dtypes.empty()
              ? absl::StrCat("dtype ", DtypeName(request.dtype),
                             " asked for, but its dtype follows from the inputs")
              : absl::StrCat("dtype ", DtypeName(request.dtype), " asked for; it may be ",
                             DtypeList(outputs[index].dtypes)));
    }
    (*asked)[index] = catalog::ToAcl(request.dtype);
  }
  // Masked outputs are computed on demand: naming one leaves out those that are not named; without
  // any name all are wanted.
  for (size_t i = 0; i < outputs.size(); ++i) {
    wanted->push_back(!chooses || !outputs[i].is_masked() || is_named[i]);
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
