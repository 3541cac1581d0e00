#include "client/cli/arrays/array_file.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/cli/arrays/closest_name.h"
#include "client/cli/arrays/npy.h"
#include "client/cli/arrays/npz.h"
#include "client/cli/arrays/safetensors.h"
#include "proto/status/status_macros.h"

namespace opserve::cli {
namespace {

constexpr char kNpz[] = ".npz";
constexpr char kSafetensors[] = ".safetensors";
constexpr size_t kNamesShown = 16;
constexpr char kStandardInput[] = "-";
constexpr absl::string_view kBf16Suffix = ":bf16";
// Files of torch.save: pickled programs, which are not run.
constexpr absl::string_view kTorchEndings[] = {".pt", ".pth", ".ckpt", ".pkl"};

bool IsTorchFile(absl::string_view path) {
  return std::any_of(std::begin(kTorchEndings), std::end(kTorchEndings),
                     [path](absl::string_view ending) { return absl::EndsWith(path, ending); });
}

// The .npy file that arrives on `input`.
absl::StatusOr<Tensor> ReadFromStream(std::istream* input, NpyReading reading) {
  if (input == nullptr) {
    return absl::InvalidArgumentError(
        "-: standard input is a terminal; name a file, or have another program write to it");
  }
  OPSERVE_ASSIGN_OR_RETURN(const OwnedBytes bytes, ReadStreamBytes(*input));
  absl::StatusOr<Tensor> tensor = ParseNpy(bytes, reading);
  if (tensor.ok()) return tensor;
  return absl::Status(tensor.status().code(),
                      absl::StrCat("standard input: ", tensor.status().message()));
}

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
  // The last place where the ending stands before a colon: directories may have such names too.
  const size_t colon = argument.rfind(absl::StrCat(ending, ":"));
  if (colon == absl::string_view::npos) return false;
  *place = {.path = std::string(argument.substr(0, colon + ending.size())),
            .array = std::string(argument.substr(colon + ending.size() + 1))};
  return true;
}

// A name that is given wins; else the only array; else the one with the input's name. No guess
// beyond that.
absl::StatusOr<std::string> Choose(const Place& place, const std::vector<std::string>& names,
                                   const std::string& usual_name) {
  if (!place.array.empty()) {
    if (std::find(names.begin(), names.end(), place.array) != names.end()) return place.array;
    return absl::NotFoundError(
        absl::StrCat(place.path, ": ", UnknownName("array", place.array, names)));
  }
  if (names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), usual_name) != names.end()) return usual_name;
  // Archives of models have thousands of names.
  const std::vector<std::string> shown(names.begin(),
                                       names.begin() + std::min(names.size(), kNamesShown));
  return absl::InvalidArgumentError(
      absl::StrCat(place.path, ": which of its ", names.size(), " arrays? Append :NAME",
                   names.empty() ? "" : absl::StrCat("; there are ", absl::StrJoin(shown, ", ")),
                   shown.size() < names.size() ? ", ..." : ""));
}

}  // namespace

// With :bf16 too, as the suffix belongs to the reading.
bool IsStandardInput(absl::string_view argument) {
  absl::ConsumeSuffix(&argument, kBf16Suffix);
  return argument == kStandardInput;
}

absl::Status CheckOutputName(absl::string_view path) {
  const bool is_other_kind =
      absl::EndsWith(path, kNpz) || absl::EndsWith(path, kSafetensors) || IsTorchFile(path);
  if (!is_other_kind) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": arrays are written as .npy; choose a name that ends so"));
}

// By the name's ending, not by the contents: ":ARRAY" must be understood before the file is opened.
absl::StatusOr<Tensor> ReadArrayArgument(absl::string_view argument, const std::string& usual_name,
                                         std::istream* input) {
  const bool is_bf16 = absl::ConsumeSuffix(&argument, kBf16Suffix);
  const NpyReading reading = is_bf16 ? NpyReading::kAsBf16 : NpyReading::kAsNamed;
  if (IsStandardInput(argument)) return ReadFromStream(input, reading);
  if (IsTorchFile(argument)) {
    return absl::InvalidArgumentError(
        absl::StrCat(argument,
                     ": files of torch.save are not read; in Python: numpy.save(\"x.npy\", "
                     "torch.load(\"",
                     argument, "\").numpy())"));
  }
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
    OPSERVE_ASSIGN_OR_RETURN(const SafetensorsFile file, SafetensorsFile::Open(place.path));
    const auto name = Choose(place, file.names(), usual_name);
    return name.ok() ? file.Read(*name) : name.status();
  }
  return ReadNpy(std::string(argument), reading);
}

absl::Status WriteArray(const std::string& path, const Result& result,
                        std::ostream& standard_output) {
  if (path != kStandardOutput) return WriteNpy(path, result);
  WriteNpy(standard_output, result);
  standard_output.flush();
  return standard_output ? absl::OkStatus()
                         : absl::UnavailableError("standard output cannot be written");
}

}  // namespace opserve::cli
