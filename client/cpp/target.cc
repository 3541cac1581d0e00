#include "client/cpp/target.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/status/status_macros.h"

namespace opserve {
namespace {

constexpr absl::string_view kUnix = "unix:";
constexpr absl::string_view kDns = "dns:///";

absl::Status BadTarget(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("target \"", text, "\"", why));
}

// The host of "HOST:PORT"; nothing: it is not of that form.
std::optional<absl::string_view> HostOf(absl::string_view text) {
  // The last colon: IPv6 addresses have others, inside brackets.
  const size_t colon = text.rfind(':');
  int port = 0;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(text.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return std::nullopt;
  }
  return text.substr(0, colon);
}

// The error for a text that is no target at all: names the usual slips, with the target that was
// probably meant.
absl::Status NoTarget(absl::string_view text) {
  constexpr absl::string_view kScheme = "://";
  const size_t scheme = text.find(kScheme);
  if (scheme != absl::string_view::npos && !absl::StartsWith(text, kDns)) {
    absl::string_view rest = text.substr(scheme + kScheme.size());
    rest = rest.substr(0, rest.find('/'));
    const bool is_encrypted =
        text.substr(0, scheme) == "https" || text.substr(0, scheme) == "grpcs";
    return BadTarget(
        text, absl::StrCat(" is a URL; write HOST:PORT, here ", rest, HostOf(rest) ? "" : ":PORT",
                           is_encrypted ? ", and ask for TLS (--tls)" : ""));
  }
  if (absl::StartsWith(text, "/") || absl::StartsWith(text, "./") ||
      absl::EndsWith(text, ".sock")) {
    return BadTarget(text, absl::StrCat(" is a path; for a Unix socket write ", kUnix, text));
  }
  return BadTarget(text, " is neither unix:PATH nor HOST:PORT nor dns:///HOST:PORT");
}

// The path of "unix:PATH" or "unix://PATH".
absl::StatusOr<absl::string_view> SocketPath(absl::string_view text) {
  absl::string_view path = absl::StripPrefix(text, kUnix);
  // gRPC's own form of an absolute path.
  absl::ConsumePrefix(&path, "//");
  if (path.empty()) return BadTarget(text, ": no socket path");
  // The system's limit; gRPC would fail later, with less to tell.
  constexpr size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (path.size() > kLongest) {
    return BadTarget(text, absl::StrCat(": a socket's path can have ", kLongest,
                                        " bytes, this has ", path.size()));
  }
  return path;
}

enum class HostKind { kName, kIpv4, kIpv6 };

struct Host {
  HostKind kind = HostKind::kName;
  bool is_loopback = false;
};

Host Classify(absl::string_view host) {
  in_addr ipv4{};
  if (inet_pton(AF_INET, std::string(host).c_str(), &ipv4) == 1) {
    return {HostKind::kIpv4, (ntohl(ipv4.s_addr) >> 24) == 127};
  }
  in6_addr ipv6{};
  absl::string_view inner = host;
  if (absl::ConsumePrefix(&inner, "[") && absl::ConsumeSuffix(&inner, "]") &&
      inet_pton(AF_INET6, std::string(inner).c_str(), &ipv6) == 1) {
    return {HostKind::kIpv6, IN6_IS_ADDR_LOOPBACK(&ipv6) != 0};
  }
  // Names are not resolved here. Of all, only this one is local by convention.
  return {HostKind::kName, host == "localhost"};
}

absl::StatusOr<Target> ParseSockets(absl::string_view text,
                                    const std::vector<absl::string_view>& parts) {
  std::vector<absl::string_view> paths;
  for (const absl::string_view part : parts) {
    if (!absl::StartsWith(part, kUnix)) {
      return BadTarget(text, absl::StrCat(": \"", part, "\" is not unix:PATH, as the first is"));
    }
    OPSERVE_ASSIGN_OR_RETURN(const absl::string_view path, SocketPath(part));
    paths.push_back(path);
  }
  // Several sockets have no single path for shared memory.
  return Target{
      .uri = absl::StrCat(kUnix, absl::StrJoin(paths, ",")), .is_balanced = true, .is_local = true};
}

absl::StatusOr<Target> ParseAddresses(absl::string_view text,
                                      const std::vector<absl::string_view>& parts) {
  // gRPC takes no daemon's name from a list, so requests carry the first address.
  Target target{.is_balanced = true, .is_local = true, .authority = std::string(parts.front())};
  std::optional<HostKind> kind;
  for (const absl::string_view part : parts) {
    const std::optional<absl::string_view> name = HostOf(part);
    const Host host = name ? Classify(*name) : Host();
    // gRPC resolves one name only.
    if (host.kind == HostKind::kName || host.kind != kind.value_or(host.kind)) {
      return BadTarget(text, absl::StrCat(": a list has addresses of one kind, each unix:PATH, "
                                          "IPV4:PORT or [IPV6]:PORT; \"",
                                          part, "\" is ", kind ? "another" : "none",
                                          ". For a name with several addresses: "
                                          "dns:///HOST:PORT"));
    }
    kind = host.kind;
    target.is_local = target.is_local && host.is_loopback;
  }
  target.uri = absl::StrCat(*kind == HostKind::kIpv4 ? "ipv4:" : "ipv6:", text);
  return target;
}

}  // namespace

absl::StatusOr<Target> ParseTarget(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, ',');
  const bool is_unix = absl::StartsWith(text, kUnix);
  if (parts.size() > 1) return is_unix ? ParseSockets(text, parts) : ParseAddresses(text, parts);
  if (is_unix) {
    OPSERVE_ASSIGN_OR_RETURN(const absl::string_view path, SocketPath(text));
    return Target{.uri = std::string(text), .is_local = true, .socket_path = std::string(path)};
  }
  absl::string_view rest = text;
  // The name may have several addresses, each of which is a daemon.
  const bool is_dns = absl::ConsumePrefix(&rest, kDns);
  const std::optional<absl::string_view> host = HostOf(rest);
  if (!host || absl::StrContains(*host, "://")) return NoTarget(text);
  return Target{
      .uri = std::string(text), .is_balanced = is_dns, .is_local = Classify(*host).is_loopback};
}

}  // namespace opserve
