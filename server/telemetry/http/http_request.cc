#include "server/telemetry/http/http_request.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace opserve::server {
namespace {

// Methods and names of headers; RFC 9110 allows some more characters, which none of them has.
bool IsToken(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_';
  });
}

bool IsAddress(const std::string& host) {
  in6_addr address = {};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// "NAME", "NAME:PORT" or "[IPV6]:PORT".
std::string WithoutPort(absl::string_view host) {
  if (absl::ConsumePrefix(&host, "[")) {
    host = host.substr(0, host.find(']'));
  } else {
    host = host.substr(0, host.find(':'));
  }
  // A name with a dot at its end is the same name.
  absl::ConsumeSuffix(&host, ".");
  return absl::AsciiStrToLower(host);
}

// With a weight it is left out: not to compress is always right.
bool HasGzip(absl::string_view codings) {
  const std::vector<absl::string_view> list = absl::StrSplit(codings, ',');
  return std::any_of(list.begin(), list.end(), [](absl::string_view coding) {
    return absl::EqualsIgnoreCase(absl::StripAsciiWhitespace(coding), "gzip");
  });
}

}  // namespace

std::optional<HttpRequest> ParseHttpRequest(absl::string_view head) {
  const std::vector<absl::string_view> lines = absl::StrSplit(head, "\r\n");
  const std::vector<absl::string_view> words = absl::StrSplit(lines[0], ' ');
  if (words.size() != 3 || !IsToken(words[0]) || !absl::StartsWith(words[1], "/")) {
    return std::nullopt;
  }
  const bool is_1_1 = words[2] == "HTTP/1.1";
  if (!is_1_1 && words[2] != "HTTP/1.0") return std::nullopt;
  HttpRequest request{.method = std::string(words[0]),
                      .path = std::string(words[1].substr(0, words[1].find('?'))),
                      .host = std::nullopt};
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::pair<absl::string_view, absl::string_view> header =
        absl::StrSplit(lines[i], absl::MaxSplits(':', 1));
    // Also refuses continued lines and blanks before the colon, which servers read differently.
    if (!IsToken(header.first) || header.first.size() == lines[i].size()) return std::nullopt;
    if (absl::EqualsIgnoreCase(header.first, "host")) {
      // Two of them could name different hosts to the check and to others.
      if (request.host) return std::nullopt;
      request.host = WithoutPort(absl::StripAsciiWhitespace(header.second));
    } else if (absl::EqualsIgnoreCase(header.first, "accept-encoding")) {
      request.takes_gzip = request.takes_gzip || HasGzip(header.second);
    }
  }
  if (is_1_1 && !request.host) return std::nullopt;
  return request;
}

HttpHosts::HttpHosts(const std::vector<std::string>& names, bool allows_all)
    : allows_all_(allows_all && names.empty()) {
  for (const std::string& name : names) names_.push_back(absl::AsciiStrToLower(name));
}

bool HttpHosts::Allows(const std::optional<std::string>& host) const {
  return allows_all_ || !host || *host == "localhost" || IsAddress(*host) ||
         std::find(names_.begin(), names_.end(), *host) != names_.end();
}

}  // namespace opserve::server
