#include "server/observability/tenant_series.h"

#include <algorithm>

namespace opserve::server {

TenantSeries::TenantSeries(absl::Span<const std::string> names, size_t max_tenants) {
  const size_t named = std::min({names.size(), max_tenants, kNamedTenantSlots});
  dropped_ = names.size() - named;
  for (size_t slot = 0; slot < named; ++slot) all_.push_back({names[slot], slot, slot + 1});
  if (dropped_ > 0) all_.push_back({"_other", named, kOtherTenants + 1});
  all_.push_back({"_nobody", kNobody, kNobody + 1});
}

}  // namespace opserve::server
