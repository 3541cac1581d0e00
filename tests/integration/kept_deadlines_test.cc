// Calls whose client names a deadline and stays when it has passed, as gRPC's clients do not: the
// daemon keeps the deadline itself.

#include <string>

#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/broadcast_request.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/launch_counting_test.h"
#include "tests/integration/metric_value.h"
#include "tests/integration/raw_http2.h"

namespace opserve::server {
namespace {

constexpr char kExecute[] = "/opserve.v1.OperatorService/Execute";

class KeptDeadlinesTest : public LaunchCountingTest {
 protected:
  void Call(const std::string& timeout) {
    peer_.SendOnlyMessage(peer_.Open(kExecute, /*token=*/"", timeout),
                          BroadcastRequest(1, 4).SerializeAsString());
    ASSERT_TRUE(peer_.Flush());
  }
  double Missed(const std::string& stage) const {
    return MetricValue(daemon_.daemon(), "opserve_deadline_misses_total",
                       {{"operator", "L1LossBackward"}, {"stage", stage}});
  }

  const Config config_ = InProcessDaemon::OneLane();
  InProcessDaemon daemon_{config_};
  RawHttp2 peer_{config_.listen[0].path};
};

TEST_F(KeptDeadlinesTest, ARunEnds) {
  InjectFaults("kernel=*,slow=600000000");
  Call("300m");
  EXPECT_TRUE(Await([&] { return Missed("execute") == 1; }));
  EXPECT_TRUE(Await([&] { return daemon_.HeldByRequests() == 0; }));
}

TEST_F(KeptDeadlinesTest, WaitingForADeviceEnds) {
  InjectFaults("kernel=*,slow=600000000,count=all");
  CountLaunches();
  Call("60S");
  AwaitLaunches(1);
  Call("300m");
  EXPECT_TRUE(Await([&] { return Missed("queue") == 1; }));
}

}  // namespace
}  // namespace opserve::server
