#include "server/device/npu_signs.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace opserve::server {
namespace {

namespace fs = std::filesystem;

constexpr char kDriverVersion[] = "usr/local/Ascend/driver/version.info";

}  // namespace

std::vector<std::string> NpuFiles(const std::string& dev) {
  std::vector<std::pair<int, std::string>> files;  // with their numbers, which order them
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(dev, ignored)) {
    const std::string name = entry.path().filename().string();
    int id = 0;
    // Other files of the driver have names that begin so.
    if (absl::StartsWith(name, "davinci") && absl::SimpleAtoi(name.substr(7), &id)) {
      files.emplace_back(id, name);
    }
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> names;
  for (auto& [id, name] : files) names.push_back(std::move(name));
  return names;
}

std::string NpuDriverVersion(const std::string& root) {
  std::ifstream file(fs::path(root) / kDriverVersion);
  for (std::string line; std::getline(file, line);) {
    const std::pair<std::string, std::string> entry = absl::StrSplit(line, absl::MaxSplits('=', 1));
    // A line "Version=24.1.0".
    if (absl::StripAsciiWhitespace(entry.first) == "Version") {
      return std::string(absl::StripAsciiWhitespace(entry.second));
    }
  }
  return "";
}

std::vector<std::string> NpuSigns(const std::string& root, const std::string& runtime,
                                  EnvironmentVariable environment) {
  std::vector<std::string> signs;
  const std::vector<std::string> files = NpuFiles((fs::path(root) / "dev").string());
  if (!files.empty()) {
    signs.push_back(absl::StrCat("the device files ", absl::StrJoin(files, ", ")));
  }
  if (const std::string version = NpuDriverVersion(root); !version.empty()) {
    signs.push_back(absl::StrCat("the NPU driver ", version));
  }
  // An installation that cannot be used is no reason to expect it to be.
  const absl::StatusOr<CannLayout> cann = FindCann("cann", environment);
  std::error_code ignored;
  if (cann.ok() && !fs::equivalent(cann->runtime, runtime, ignored)) {
    signs.push_back(absl::StrCat("CANN in ", cann->library_dir));
  }
  return signs;
}

}  // namespace opserve::server
