// A scrape takes no lock that a request may hold: it neither waits for requests nor makes them
// wait, whatever they are doing.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "prometheus/text_serializer.h"
#include "tests/fault/workload.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/lock_recorder.h"
#include "tests/integration/requests.h"

namespace opserve::server {
namespace {

// Beside the workload: requests with keys, those that are refused, and those that leave.
void RunOtherRequests(Client& client, int number) {
  Request keyed = OnesRequest(10);
  keyed.idempotency_key = absl::StrCat("key ", number);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(IsAllOnes(client.Execute(keyed), 10));
  Request wrong = OnesRequest(10);
  wrong.invocations[0].operator_name = "NoSuchOperator";
  EXPECT_FALSE(client.Execute(wrong).ok());
  client.ExecuteAsync(OnesRequest(1000), [](const auto&) {}).Cancel();
  EXPECT_TRUE(client.GetServerStatus().ok());
}

TEST(ScrapeLocksTest, AScrapeTakesNoLockThatAnyOtherThreadTakes) {
  InProcessDaemon daemon;
  BeginLockRecord();
  std::atomic<bool> is_over = false;
  int scrapes = 0;
  std::thread scraper([&] {
    const ScrapeScope scope;
    do {
      EXPECT_FALSE(
          prometheus::TextSerializer().Serialize(daemon.daemon().CollectMetrics()).empty());
      ++scrapes;
    } while (!is_over);
  });
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&daemon, caller] {
      for (int i = 0; i < 5; ++i) {
        RunWorkload(daemon.client(), [](const Step& step) {
          EXPECT_TRUE(step.status.ok()) << step.name << ": " << step.status;
        });
        RunOtherRequests(daemon.client(), 5 * caller + i);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  is_over = true;
  scraper.join();

  const LockRecord record = EndLockRecord();

  EXPECT_THAT(record.shared, testing::IsEmpty());
  EXPECT_TRUE(record.is_complete);
  EXPECT_GT(record.other_locks, 100u) << "locks of the program are not recorded";
  EXPECT_GT(scrapes, 1);
  std::cout << scrapes << " scrapes took " << record.scrape_locks << " locks, other threads took "
            << record.other_locks << "\n";
}

}  // namespace
}  // namespace opserve::server
