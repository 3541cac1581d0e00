#include "proto/dtypes/dtype.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace opserve {
namespace {

// A row of table.inc becomes a DtypeFacts.
#define OPSERVE_DTYPE(name, bytes, element, acl, inference, safetensors, dlpack, torch, tolerance, \
                      ...)                                                                         \
  {v1::DATA_TYPE_##name, #name, bytes,    acl, inference, {__VA_ARGS__}, safetensors,              \
   {dlpack, 8 * bytes},  torch, tolerance},
constexpr DtypeFacts kDtypes[] = {
#include "proto/dtypes/table.inc"
};

std::string Alternatives(const std::vector<absl::string_view>& names) {
  // There are always several.
  const auto last = names.end() - 1;
  return absl::StrCat(absl::StrJoin(names.begin(), last, ", "), " or ", *last);
}

}  // namespace

absl::Span<const DtypeFacts> AllDtypes() { return kDtypes; }

const DtypeFacts* FindDtype(Dtype dtype) { return FindDtypeBy(&DtypeFacts::dtype, dtype); }

const DtypeFacts* FindDtypeByNpy(absl::string_view descriptor) {
  if (descriptor.empty()) return nullptr;  // fills the columns of dtypes with one descriptor
  for (const DtypeFacts& facts : kDtypes) {
    if (std::find(facts.npy.begin(), facts.npy.end(), descriptor) != facts.npy.end()) {
      return &facts;
    }
  }
  return nullptr;
}

absl::string_view DtypeName(Dtype dtype) {
  const DtypeFacts* facts = FindDtype(dtype);
  return facts == nullptr ? "UNSPECIFIED" : facts->name;
}

int64_t DtypeBytes(Dtype dtype) {
  const DtypeFacts* facts = FindDtype(dtype);
  return facts == nullptr ? 0 : facts->bytes;
}

std::string DtypeNames() {
  std::vector<absl::string_view> names;
  for (const DtypeFacts& facts : kDtypes) names.push_back(facts.name);
  return Alternatives(names);
}

std::string DtypeNamesIn(absl::string_view DtypeFacts::*column) {
  std::vector<DtypeFacts> sorted(std::begin(kDtypes), std::end(kDtypes));
  // Stable, so that equally wide ones keep the order of the wire.
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  std::vector<absl::string_view> names;
  for (const DtypeFacts& facts : sorted) names.push_back(facts.*column);
  return Alternatives(names);
}

}  // namespace opserve
