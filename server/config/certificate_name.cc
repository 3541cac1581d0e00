#include "server/config/certificate_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/config/dns_name.h"

namespace opserve::server {
namespace {

constexpr std::array<absl::string_view, 4> kKinds = {"dns:", "uri:", "email:", "ip:"};

// The kind with its colon, and the rest; no kind: the whole text.
std::pair<absl::string_view, absl::string_view> Split(absl::string_view name) {
  const auto kind = std::find_if(kKinds.begin(), kKinds.end(),
                                 [&](absl::string_view k) { return absl::StartsWith(name, k); });
  if (kind == kKinds.end()) return {"", name};
  return {*kind, name.substr(kind->size())};
}

absl::StatusOr<std::string> CanonicalAddress(const std::string& text) {
  in6_addr address = {};
  std::array<char, INET6_ADDRSTRLEN> buffer = {};
  // As inet_ntop writes it: one address has several spellings.
  for (const int family : {AF_INET, AF_INET6}) {
    if (inet_pton(family, text.c_str(), &address) != 1) continue;
    return absl::StrCat("ip:", inet_ntop(family, &address, buffer.data(), buffer.size()));
  }
  return absl::InvalidArgumentError("an ip: is like ip:192.0.2.7 or ip:2001:db8::7");
}

}  // namespace

std::string CanonicalDnsName(absl::string_view name) {
  return absl::StrCat("dns:", absl::AsciiStrToLower(name));
}

absl::StatusOr<std::string> CanonicalCertificateName(absl::string_view name) {
  const auto [kind, rest] = Split(name);
  if (rest.empty()) return absl::InvalidArgumentError("a name is missing");
  // Not checked: it may be the common name of a certificate, which may be any text.
  if (kind.empty()) return CanonicalDnsName(rest);
  if (kind == "ip:") return CanonicalAddress(std::string(rest));
  if (kind == "dns:") {
    if (IsDnsName(rest, /*allows_wildcard=*/true)) return CanonicalDnsName(rest);
    return absl::InvalidArgumentError("a dns: is like dns:trainer.example.com");
  }
  if (kind == "uri:" && !absl::StrContains(rest, ':')) {
    return absl::InvalidArgumentError("a uri: is like uri:spiffe://example.com/trainer");
  }
  if (kind == "email:" && !absl::StrContains(rest, '@')) {
    return absl::InvalidArgumentError("an email: is like email:trainer@example.com");
  }
  return std::string(name);
}

bool LacksKind(absl::string_view name) {
  return Split(name).first.empty() && !IsDnsName(name, /*allows_wildcard=*/true);
}

}  // namespace opserve::server
