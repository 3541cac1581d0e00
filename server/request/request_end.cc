#include "server/request/request_end.h"

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"

namespace opserve::server {

void Record(const RequestContext& context, const RequestEnd& end, uint64_t response_bytes) {
  const absl::Time now = absl::Now();
  const auto tenant = end.tenant != nullptr ? std::optional(end.tenant->id()) : std::nullopt;
  absl::string_view op;
  if (end.tenant != nullptr) {
    end.tenant->CountEnded(end.status.ok(), absl::Nanoseconds(end.clock.total_nanoseconds()),
                           end.request_bytes, response_bytes);
  }
  if (end.op >= 0) {
    const auto index = static_cast<size_t>(end.op);
    context.statistics->Record(index, end.status.ok(), end.clock, now);
    op = context.operators->operators()[index].descriptor->name;
  }
  context.metrics->Record({.tenant = tenant,
                           .op = end.op,
                           .device = end.device,
                           .status = end.status,
                           .clock = &end.clock,
                           .request_bytes = end.request_bytes,
                           .response_bytes = response_bytes});
  context.request_log->Record(
      {.trace = end.trace,
       .tenant = tenant,
       .tenant_name = end.tenant != nullptr ? absl::string_view(end.tenant->name()) : "",
       .op = op,
       .device = end.device,
       .status = end.status,
       .clock = end.clock,
       .request_bytes = end.request_bytes,
       .response_bytes = response_bytes,
       .details = end.details.get()},
      now);
}

}  // namespace opserve::server
