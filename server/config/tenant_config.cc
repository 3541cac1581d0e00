#include "server/config/tenant_config.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "proto/status/status_macros.h"
#include "server/config/certificate_name.h"

namespace opserve::server {
namespace {

constexpr size_t kMaxTenants = 10000;
constexpr size_t kMaxNameBytes = 63;
// printf '' | sha256sum
constexpr absl::string_view kDigestOfNothing =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

bool IsName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameBytes &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' ||
                  c == '.';
         });
}

// Builds the list, refusing values that occur twice.
class Builder {
 public:
  absl::Status Add(const config::Tenant& from) {
    TenantConfig tenant;
    tenant.name = from.name();
    if (!IsName(tenant.name)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "tenant.name=\"", absl::CHexEscape(tenant.name.substr(0, kMaxNameBytes)),
          "\": must have 1 to ", kMaxNameBytes, " letters, digits, \"-\", \"_\" or \".\""));
    }
    OPSERVE_RETURN_IF_ERROR(Claim(tenant.name, "name", tenant.name));
    for (const std::string& text : from.token_sha256()) {
      TokenDigest digest;
      OPSERVE_RETURN_IF_ERROR(ParseDigest(tenant.name, text, &digest));
      // In one case, so that a digest that is written in two ways occurs twice.
      OPSERVE_RETURN_IF_ERROR(Claim(tenant.name, "token_sha256", absl::AsciiStrToLower(text)));
      tenant.token_digests.push_back(digest);
    }
    for (const std::string& name : from.certificate_name()) {
      // Likewise names in their canonical form.
      absl::StatusOr<std::string> canonical = CanonicalCertificateName(name);
      if (!canonical.ok()) {
        return Invalid(tenant.name, "certificate_name", canonical.status().message());
      }
      OPSERVE_RETURN_IF_ERROR(Claim(tenant.name, "certificate_name", *canonical));
      tenant.certificate_names.push_back(*std::move(canonical));
    }
    for (uint32_t uid : from.uid()) {
      OPSERVE_RETURN_IF_ERROR(Claim(tenant.name, "uid", absl::StrCat(uid)));
      tenant.uids.push_back(uid);
    }
    tenant.operators.assign(from.operator_().begin(), from.operator_().end());
    tenant.weight = from.weight();
    tenant.requests_per_second = from.requests_per_second();
    tenant.bytes_per_second = from.bytes_per_second();
    tenant.max_pending_requests = from.max_pending_requests();
    OPSERVE_ASSIGN_OR_RETURN(tenant.device_memory,
                             ToZone(tenant.name, "device_memory", from.device_memory()));
    OPSERVE_ASSIGN_OR_RETURN(tenant.pinned_memory,
                             ToZone(tenant.name, "pinned_memory", from.pinned_memory()));
    tenant.shared_memory_bytes = from.shared_memory().hard_bytes();
    tenant.shared_memory_regions = from.shared_memory().max_regions();
    tenants_.push_back(std::move(tenant));
    return absl::OkStatus();
  }

  std::vector<TenantConfig> Take() { return std::move(tenants_); }

 private:
  static absl::Status Invalid(absl::string_view tenant, absl::string_view field,
                              absl::string_view problem) {
    return absl::InvalidArgumentError(absl::StrCat("tenant ", tenant, ": ", field, ": ", problem));
  }

  absl::Status Claim(absl::string_view tenant, absl::string_view field, absl::string_view value) {
    // With the field, since a name may read like a user id.
    if (claimed_.insert(absl::StrCat(field, " ", value)).second) return absl::OkStatus();
    return Invalid(tenant, field, "occurs twice; it would not tell whose a caller is");
  }

  static absl::Status ParseDigest(absl::string_view tenant, const std::string& text,
                                  TokenDigest* digest) {
    const bool is_hex =
        text.size() == 2 * digest->size() && std::all_of(text.begin(), text.end(), [](char c) {
          return absl::ascii_isxdigit(static_cast<unsigned char>(c));
        });
    if (!is_hex) {
      return Invalid(tenant, "token_sha256",
                     "must be 64 hexadecimal digits: printf %s \"$TOKEN\" | sha256sum");
    }
    // Left behind by a command with an empty variable: every client could show that token.
    if (absl::EqualsIgnoreCase(text, kDigestOfNothing)) {
      return Invalid(tenant, "token_sha256", "is the digest of an empty token");
    }
    const std::string bytes = absl::HexStringToBytes(text);
    std::copy(bytes.begin(), bytes.end(), digest->begin());
    return absl::OkStatus();
  }

  static absl::StatusOr<ZoneConfig> ToZone(absl::string_view tenant, absl::string_view field,
                                           const config::Zone& from) {
    ZoneConfig zone;
    zone.reserved_bytes = from.reserved_bytes();
    // 0 stands for no limit, as a message without the field does.
    if (from.hard_bytes() != 0) zone.hard_bytes = from.hard_bytes();
    // Without a soft limit all memory up to the hard one counts as within it.
    zone.soft_bytes = from.soft_bytes() != 0 ? from.soft_bytes() : zone.hard_bytes;
    if (zone.reserved_bytes > zone.soft_bytes || zone.soft_bytes > zone.hard_bytes) {
      return Invalid(tenant, field, "reserved_bytes <= soft_bytes <= hard_bytes must hold");
    }
    return zone;
  }

  std::vector<TenantConfig> tenants_;
  absl::flat_hash_set<std::string> claimed_;  // field and value
};

}  // namespace

std::vector<std::string> TenantWarnings(const config::ServerConfig& values) {
  std::vector<std::string> warnings;
  for (const config::Tenant& tenant : values.tenant()) {
    for (const std::string& name : tenant.certificate_name()) {
      if (!LacksKind(name)) continue;
      warnings.push_back(absl::StrCat(
          "tenant ", tenant.name(), ": certificate_name: \"", absl::CHexEscape(name.substr(0, 256)),
          "\" cannot be a DNS name, so only a common name can match it; say uri:, email: or ip:"));
    }
  }
  return warnings;
}

absl::StatusOr<TenantsConfig> TenantsFrom(const config::ServerConfig& values) {
  TenantsConfig result;
  result.anonymous = values.anonymous_tenant();
  if (values.tenant().empty()) {
    // Without tenants everybody is the built-in one, unless anonymous_tenant says otherwise.
    result.tenants.emplace_back().name = std::string(kDefaultTenantName);
    if (result.anonymous.empty()) result.anonymous = std::string(kDefaultTenantName);
  }
  if (static_cast<size_t>(values.tenant_size()) > kMaxTenants) {
    return absl::InvalidArgumentError(
        absl::StrCat("tenant: ", values.tenant_size(), " of them; at most ", kMaxTenants));
  }
  Builder builder;
  for (const config::Tenant& tenant : values.tenant()) OPSERVE_RETURN_IF_ERROR(builder.Add(tenant));
  for (TenantConfig& tenant : builder.Take()) result.tenants.push_back(std::move(tenant));
  const bool is_known =
      result.anonymous.empty() ||
      std::any_of(result.tenants.begin(), result.tenants.end(),
                  [&](const TenantConfig& t) { return t.name == result.anonymous; });
  if (!is_known) {
    return absl::InvalidArgumentError(
        absl::StrCat("anonymous_tenant=", result.anonymous, ": there is no such tenant"));
  }
  return result;
}

absl::Status CheckKeepsTenants(const config::ServerConfig& now, const config::ServerConfig& next) {
  constexpr char kHint[] = "; if that is meant, say allow_no_tenants: true in the file";
  // A daemon without tenants serves everybody already, so it has none to lose.
  if (next.allow_no_tenants() || now.tenant().empty()) return absl::OkStatus();
  if (next.tenant().empty()) {
    return absl::DataLossError(absl::StrCat("no tenant is left of ", now.tenant_size(),
                                            ", and everybody who can connect would be served",
                                            kHint));
  }
  // A file that was cut off in the middle, or a template without its secrets, has some tenants.
  struct Kind {
    const char* name;
    bool (*has)(const config::Tenant&);
  };
  for (const Kind& kind :
       {Kind{"token_sha256", [](const config::Tenant& t) { return t.token_sha256_size() > 0; }},
        Kind{"certificate_name",
             [](const config::Tenant& t) { return t.certificate_name_size() > 0; }},
        Kind{"uid", [](const config::Tenant& t) { return t.uid_size() > 0; }}}) {
    const auto had = std::count_if(now.tenant().begin(), now.tenant().end(), kind.has);
    if (had > 0 && std::none_of(next.tenant().begin(), next.tenant().end(), kind.has)) {
      return absl::DataLossError(absl::StrCat("no tenant has a ", kind.name, " any more, which ",
                                              had, " have now", kHint));
    }
  }
  return absl::OkStatus();
}

}  // namespace opserve::server
