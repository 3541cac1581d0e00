// Names in client certificates, as the configuration writes them: "dns:trainer.example.com",
// "uri:spiffe://example.com/trainer", "email:a@example.com", "ip:192.0.2.7". A name without a kind
// is a DNS name.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace opserve::server {

// The one text that a name of the configuration and the same name in a certificate have in common:
// with its kind, DNS names in lower case, addresses as inet_ntop writes them.
// kInvalidArgument: `name` cannot be of its kind. That does not hold for names without a kind,
// which may stand for the common name of a certificate without alternative names.
absl::StatusOr<std::string> CanonicalCertificateName(absl::string_view name);

// The same for a DNS name of a certificate.
std::string CanonicalDnsName(absl::string_view name);

// Whether `name` has no kind and cannot be a DNS name: most likely its kind was forgotten.
bool LacksKind(absl::string_view name);

}  // namespace opserve::server
