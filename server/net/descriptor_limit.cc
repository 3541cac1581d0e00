#include "server/net/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

namespace opserve::server {

uint64_t RaiseDescriptorLimit(uint64_t wanted) {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  // Beyond the hard limit only root could go.
  const rlim_t raised = std::min<rlim_t>(limit.rlim_max, wanted);
  if (raised > limit.rlim_cur) {
    const rlim_t before = std::exchange(limit.rlim_cur, raised);
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return before;
  }
  return limit.rlim_cur;
}

}  // namespace opserve::server
