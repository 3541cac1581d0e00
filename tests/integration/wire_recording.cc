#include "tests/integration/wire_recording.h"

#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "absl/strings/escaping.h"
#include "nlohmann/json.hpp"

namespace opserve::server {
namespace {

constexpr char kDetails[] = "grpc-status-details-bin";

std::string Bytes(const nlohmann::json& base64) {
  std::string bytes;
  if (!absl::Base64Unescape(base64.get<std::string>(), &bytes)) {
    std::fprintf(stderr, "not in base64: %s\n", base64.dump().c_str());
    std::abort();
  }
  return bytes;
}

}  // namespace

std::vector<RecordedCall> ReadRecording(const std::string& file) {
  std::ifstream lines(std::string(OPSERVE_TEST_DATA_DIR "/wire/") + file);
  std::vector<RecordedCall> calls;
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = nlohmann::json::parse(line);
    RecordedCall& call = calls.emplace_back();
    call.name = json.at("name");
    call.method = json.at("method");
    for (const auto& message : json.at("requests")) call.requests.push_back(Bytes(message));
    for (const auto& message : json.at("answers")) call.answers.push_back(Bytes(message));
    call.code = json.at("code");
    for (const auto& [key, value] : json.at("trailers").items()) {
      if (key == kDetails) {
        call.error_details = Bytes(value);
      } else {
        call.trailers[key] = value;
      }
    }
  }
  if (calls.empty()) {
    std::fprintf(stderr, "no calls in %s\n", file.c_str());
    std::abort();
  }
  return calls;
}

}  // namespace opserve::server
