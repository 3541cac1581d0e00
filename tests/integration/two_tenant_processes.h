// A configuration file and a socket for each of a test's daemons that are processes and serve two
// tenants, in a directory that goes with the test.
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/two_tenants.h"
#include "tests/unit/client/test_server.h"

namespace opserve::server {

class TwoTenantProcesses {
 public:
  // `drain_timeout`: of each of them, as the configuration writes a duration.
  explicit TwoTenantProcesses(std::string drain_timeout)
      : drain_timeout_(std::move(drain_timeout)) {}

  // For DaemonProcess: a daemon with the tenants of two_tenants.h and the settings `more`, whose
  // clients' socket is `name`.
  std::vector<std::string> Arguments(const std::string& name, absl::string_view more) const {
    const std::string path = directory_.File(name + ".textproto");
    std::ofstream(path) << "listen: '" << Target(name) << "' " << more
                        << " metrics_listen: 'none' admin_listen: 'none' drain_delay: '0s' "
                           "drain_timeout: '"
                        << drain_timeout_ << "' " << kTwoTenants;
    return {absl::StrCat("--config=", path)};
  }

  std::string Target(const std::string& name) const {
    return absl::StrCat("unix:", directory_.File(name));
  }

  // Waits until the daemon `name` answers.
  void AwaitService(const std::string& name) const {
    EXPECT_TRUE(Await([&] {
      return (*Client::Connect(Target(name), {.token = "a", .retry = {.max_attempts = 1}}))
          ->GetServerStatus()
          .ok();
    }));
  }

 private:
  const std::string drain_timeout_;
  const TemporaryDirectory directory_;
};

}  // namespace opserve::server
