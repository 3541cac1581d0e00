// Certificates of clients that are not valid any more.
#pragma once

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace opserve::server {

// Thread-safe.
class Revocations {
 public:
  // Issuer and serial number of each, as in the lists.
  using List = absl::flat_hash_set<std::string>;

  // Reads revocation lists in PEM, one after the other, each signed by one of the authorities in
  // `client_ca`. An empty text has none. Lists that are out of date still count: revoked stays
  // revoked. kInvalidArgument: the message names the fault.
  static absl::StatusOr<List> Parse(const std::string& crl, const std::string& client_ca);

  void Set(List list) ABSL_LOCKS_EXCLUDED(mutex_);

  // Whether one of the certificates in `chain` (PEM), which were verified, is revoked. A chain that
  // cannot be read counts as revoked.
  bool Contains(absl::string_view chain) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable absl::Mutex mutex_;
  List list_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace opserve::server
