// Tenants as a scrape shows them: the first have series of their own, the others share those of
// `_other`, and calls without a tenant are `_nobody`.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "server/observability/tenant_slot.h"

namespace opserve::server {

class TenantSeries {
 public:
  // A label's value, and the slots from `begin` to before `end` that are shown under it.
  struct Series {
    std::string label;
    size_t begin;
    size_t end;
  };

  // `names`: of all tenants there ever were, by id. `max_tenants`: how many have series of their
  // own; more than there are slots for count as so many.
  TenantSeries(absl::Span<const std::string> names, size_t max_tenants);

  absl::Span<const Series> tenants() const {
    return absl::MakeConstSpan(all_).first(all_.size() - 1);
  }
  // With calls without a tenant.
  absl::Span<const Series> all() const { return all_; }

  // Tenants that have no series of their own. Never fewer than for names that came before.
  size_t dropped() const { return dropped_; }

  // Of value(slot) over the series' slots.
  template <typename Value>
  static double Sum(const Series& series, Value value) {
    double sum = 0;
    for (size_t slot = series.begin; slot < series.end; ++slot) {
      sum += static_cast<double>(value(slot));
    }
    return sum;
  }

 private:
  std::vector<Series> all_;  // calls without a tenant come last
  size_t dropped_ = 0;
};

}  // namespace opserve::server
