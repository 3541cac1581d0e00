#include "server/telemetry/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace opserve::server {
namespace {

// systemd's end of the socket. The environment says where it is.
class ServiceManagerTest : public testing::Test {
 protected:
  void SetUp() override {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    setenv("NOTIFY_SOCKET", path_.c_str(), 1);
    setenv("WATCHDOG_USEC", "2000", 1);
    unsetenv("WATCHDOG_PID");
  }
  void TearDown() override {
    close(socket_);
    unlink(path_.c_str());
  }

  std::string Said(int flags = 0) {
    std::string text(256, '\0');
    text.resize(std::max<ssize_t>(recv(socket_, text.data(), text.size(), flags), 0));
    return text;
  }

  const std::string path_ = absl::StrCat(testing::TempDir(), "notify-", getpid());
  const int socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

TEST_F(ServiceManagerTest, PassesSignsOfLifeOn) {
  ServiceManager manager([](absl::Duration /*timeout*/) { return true; });
  EXPECT_EQ(Said(), "READY=1");
  EXPECT_EQ(Said(), "WATCHDOG=1");
  EXPECT_EQ(Said(), "WATCHDOG=1");
}

TEST_F(ServiceManagerTest, SaysNothingOfADaemonThatDoesNotAnswer) {
  std::atomic<int> asked = 0;
  absl::Notification asked_often;
  {
    ServiceManager manager([&](absl::Duration timeout) {
      EXPECT_EQ(timeout, absl::Microseconds(500));
      if (++asked == 3) asked_often.Notify();
      return false;
    });
    asked_often.WaitForNotification();
  }
  EXPECT_EQ(Said(), "READY=1");
  EXPECT_EQ(Said(MSG_DONTWAIT), "");
}

TEST_F(ServiceManagerTest, AsksNobodyIfNoSignsAreWanted) {
  unsetenv("WATCHDOG_USEC");
  ServiceManager manager([](absl::Duration /*timeout*/) {
    ADD_FAILURE();
    return true;
  });
  manager.TellStopping();
  EXPECT_EQ(Said(), "READY=1");
  EXPECT_EQ(Said(), "STOPPING=1");
}

}  // namespace
}  // namespace opserve::server
