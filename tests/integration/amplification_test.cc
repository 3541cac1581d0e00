// Small requests for large results: what they may cost the daemon.

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/bytes.h"
#include "tests/integration/broadcast_request.h"
#include "tests/integration/door.h"
#include "tests/integration/error_detail.h"
#include "tests/integration/in_process_daemon.h"

namespace opserve::server {
namespace {

class AmplificationTest : public testing::TestWithParam<Door> {};

TEST_P(AmplificationTest, NoRequestTakesMuchMoreHostMemoryThanItBrings) {
  bool was_served = false;
  bool was_refused = false;
  for (const int invocations : {1, 4, 16}) {
    for (const int64_t elements : {1, 1000, 16'000, 65'000, 262'000, 270'000, 4'000'000}) {
      SCOPED_TRACE(absl::StrCat(invocations, " of ", elements));
      InProcessDaemon daemon;
      DoorCaller caller(daemon.target(), GetParam());
      const v1::ExecuteRequest request = BroadcastRequest(invocations, elements);
      const uint64_t most = 100 * request.ByteSizeLong() + kMiB;
      const int64_t before = HostCount(OPSERVE_HOST_PINNED_BYTES);

      v1::ExecuteResponse response;
      const grpc::Status status = caller.Execute(request, &response);

      // In blocks of a pool, which are up to an eighth larger than what is in them.
      EXPECT_LE(HostCount(OPSERVE_HOST_PINNED_BYTES) - before,
                static_cast<int64_t>(most + most / 8));
      EXPECT_LE(response.ByteSizeLong(), most);
      if (status.ok()) {
        EXPECT_EQ(response.results_size(), invocations);
        was_served = true;
      } else {
        EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
        EXPECT_EQ(DetailOf(status).reason(), "amplification");
        EXPECT_EQ(DetailOf(status).retry_pushback_ms(), -1);
        was_refused = true;
      }
    }
  }
  EXPECT_TRUE(was_served);
  EXPECT_TRUE(was_refused);
}

INSTANTIATE_TEST_SUITE_P(Doors, AmplificationTest, AllDoors(), DoorName);

}  // namespace
}  // namespace opserve::server
