#include "ops/catalog/catalog.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ops/catalog/builtin_operators.h"
#include "ops/catalog/descriptor_text.h"

namespace opserve::catalog {
namespace {

struct Catalog {
  std::vector<const OperatorDescriptor*> operators;
  absl::flat_hash_map<absl::string_view, const OperatorDescriptor*> by_name;
  absl::flat_hash_map<absl::string_view, const OperatorDescriptor*> by_function;
};

const Catalog* ReadAll() {
  auto* catalog = new Catalog;
  for (const absl::string_view json : BuiltinOperators()) {
    absl::StatusOr<OperatorDescriptor> descriptor = ReadDescriptor(json);
    // Without its operators no part of the process can work.
    if (!descriptor.ok()) {  // the build has read them all
      std::fprintf(stderr, "%s\n", std::string(descriptor.status().message()).c_str());
      std::abort();
    }
    catalog->operators.push_back(new OperatorDescriptor(*std::move(descriptor)));
  }
  std::sort(catalog->operators.begin(), catalog->operators.end(),
            [](const auto* a, const auto* b) { return a->name < b->name; });
  for (const OperatorDescriptor* descriptor : catalog->operators) {
    catalog->by_name.emplace(descriptor->name, descriptor);
    // Stage two alone: the name of stage one derives from it.
    catalog->by_function.emplace(descriptor->stage_two, descriptor);
  }
  return catalog;
}

const Catalog& TheCatalog() {
  // At first use, and never destroyed: descriptors are held by reference until the process ends.
  static const Catalog* const catalog = ReadAll();
  return *catalog;
}

const OperatorDescriptor* FindIn(
    const absl::flat_hash_map<absl::string_view, const OperatorDescriptor*>& map,
    absl::string_view key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : found->second;
}

}  // namespace

absl::Span<const OperatorDescriptor* const> AllOperators() { return TheCatalog().operators; }

const OperatorDescriptor* FindOperator(absl::string_view name) {
  return FindIn(TheCatalog().by_name, name);
}

const OperatorDescriptor* FindFunction(absl::string_view function) {
  return FindIn(TheCatalog().by_function, function);
}

}  // namespace opserve::catalog
