#include "client/cli/array_file.h"

#include <algorithm>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/closest_name.h"
#include "client/cli/npy.h"
#include "client/cli/npz.h"
#include "client/cli/safetensors.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kNpz[] = ".npz";
constexpr char kSafetensors[] = ".safetensors";
constexpr size_t kNamesShown = 16;

struct Place {
  std::string path = {};
  std::string array = {};  // empty: not said
};

// Takes FILE[:ARRAY] apart, where the file has that ending.
bool SplitAt(absl::string_view ending, absl::string_view argument, Place* place) {
  if (absl::EndsWith(argument, ending)) {
    *place = {.path = std::string(argument)};
    return true;
  }
  const size_t colon = argument.rfind(absl::StrCat(ending, ":"));
  if (colon == absl::string_view::npos) return false;
  *place = {.path = std::string(argument.substr(0, colon + ending.size())),
            .array = std::string(argument.substr(colon + ending.size() + 1))};
  return true;
}

absl::StatusOr<std::string> Choose(const Place& place, const std::vector<std::string>& names,
                                   const std::string& usual_name) {
  if (!place.array.empty()) {
    if (std::find(names.begin(), names.end(), place.array) != names.end()) return place.array;
    return absl::NotFoundError(
        absl::StrCat(place.path, ": ", UnknownName("array", place.array, names)));
  }
  if (names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), usual_name) != names.end()) return usual_name;
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(names.size(), kNamesShown));
  return absl::InvalidArgumentError(
      absl::StrCat(place.path, ": which of its ", names.size(), " arrays? Append :NAME",
                   names.empty() ? "" : absl::StrCat("; there are ", absl::StrJoin(shown, ", ")),
                   shown.size() < names.size() ? ", ..." : ""));
}

}  // namespace

absl::StatusOr<Tensor> ReadArrayArgument(absl::string_view argument,
                                         const std::string& usual_name) {
  const bool is_bf16 = absl::ConsumeSuffix(&argument, ":bf16");
  const NpyReading reading = is_bf16 ? NpyReading::kAsBf16 : NpyReading::kAsNamed;
  Place place;
  if (SplitAt(kNpz, argument, &place)) {
    OPSERVE_ASSIGN_OR_RETURN(const auto names, ListNpz(place.path));
    const auto name = Choose(place, names, usual_name);
    return name.ok() ? ReadNpz(place.path, *name, reading) : name.status();
  }
  if (SplitAt(kSafetensors, argument, &place)) {
    if (is_bf16) {
      return absl::InvalidArgumentError(
          absl::StrCat(place.path, ": .safetensors files name BF16 themselves; leave :bf16 out"));
    }
    OPSERVE_ASSIGN_OR_RETURN(const auto names, ListSafetensors(place.path));
    const auto name = Choose(place, names, usual_name);
    return name.ok() ? ReadSafetensors(place.path, *name) : name.status();
  }
  return ReadNpy(std::string(argument), reading);
}

}  // namespace opserve::cli
