// Clients whose requests go through a session.
#pragma once

#include "client/cpp/client.h"
#include "client/cpp/program.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/integration/in_process_daemon.h"
#include "tests/integration/metric_value.h"

namespace opserve::server {

// [-1], which one kernel computes.
inline Request MinusOne() {
  opserve::Program p;
  p.Return(p.Neg(Tensor::Owning<float>({1}, {1})));
  return p.request();
}

// Makes calls until one goes through a session: the first ones do not wait for it. No other client
// may have one meanwhile.
inline void AwaitSession(const InProcessDaemon& daemon, Client& client) {
  const auto messages = [&daemon] {
    return MetricValue(daemon.daemon(), "opserve_session_messages_total", {});
  };
  const double before = messages();
  EXPECT_TRUE(Await([&] {
    EXPECT_TRUE(client.Execute(MinusOne()).ok());
    return messages() >= before + 2;  // hello and a request
  }));
}

}  // namespace opserve::server
