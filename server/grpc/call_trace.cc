#include "server/grpc/call_trace.h"

#include <iterator>
#include <optional>

#include "absl/strings/string_view.h"

namespace opserve::server {

TraceContext TraceOf(const grpc::ServerContextBase& rpc) {
  const auto [first, last] = rpc.client_metadata().equal_range(kTraceParentKey);
  // Of several nobody knows which is meant.
  if (first == last || std::next(first) != last) return BeginSpan(std::nullopt);
  return BeginSpan(absl::string_view(first->second.data(), first->second.size()));
}

RequestEnd RefuseMessage(const absl::Status& status, Tenant* tenant, const StageClock& clock,
                         const grpc::ServerContextBase& rpc, uint64_t message_bytes) {
  RequestEnd end;
  end.tenant = tenant;
  end.trace = TraceOf(rpc);
  end.status = status;
  end.clock = clock;
  end.clock.Book(Stage::kRead);
  end.request_bytes = message_bytes;
  return end;
}

}  // namespace opserve::server
