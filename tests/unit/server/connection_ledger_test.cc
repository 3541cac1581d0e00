#include "server/access/connection_ledger.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>

#include "gtest/gtest.h"
#include "server/access/socket_table.h"

namespace opserve::server {
namespace {

struct SocketPair {
  SocketPair() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds.data()), 0); }
  ~SocketPair() {
    if (fds[0] >= 0) close(fds[0]);
    close(fds[1]);
  }
  std::array<int, 2> fds = {-1, -1};
};

// As gRPC makes a call's peer of it.
std::string PeerOf(int fd) {
  sockaddr_un name = {};
  socklen_t size = sizeof(name);
  EXPECT_EQ(getpeername(fd, reinterpret_cast<sockaddr*>(&name), &size), 0);
  EXPECT_EQ(name.sun_family, AF_UNIX);
  return std::string("unix:") + name.sun_path;
}

TEST(ConnectionLedgerTest, NamesEachConnectionApart) {
  ConnectionLedger ledger;
  const SocketPair one;
  const SocketPair two;
  EXPECT_EQ(PeerOf(one.fds[0]), "unix:") << "not registered";
  ledger.Register(one.fds[0]);
  ledger.Register(two.fds[0]);
  EXPECT_NE(PeerOf(one.fds[0]), PeerOf(two.fds[0]));
  EXPECT_EQ(PeerOf(one.fds[1]), "unix:") << "the client's own side";
}

TEST(ConnectionLedgerTest, RemembersIdentity) {
  ConnectionLedger ledger;
  const SocketPair sockets;
  ledger.Register(sockets.fds[0]);
  const std::string peer = PeerOf(sockets.fds[0]);
  EXPECT_FALSE(ledger.IsIdentified(sockets.fds[0]));
  EXPECT_FALSE(ledger.HasHadAnswer(sockets.fds[0]));
  ledger.MarkHealthChecked(peer);
  EXPECT_FALSE(ledger.IsIdentified(sockets.fds[0]));
  EXPECT_TRUE(ledger.HasHadAnswer(sockets.fds[0]));
  ledger.MarkIdentified(peer);
  EXPECT_TRUE(ledger.IsIdentified(sockets.fds[0]));
  EXPECT_TRUE(ledger.IsIdentified(peer));
}

TEST(ConnectionLedgerTest, GivesNothingToTheNextConnectionOfTheSameNumber) {
  ConnectionLedger ledger;
  SocketPair sockets;
  ledger.Register(sockets.fds[0]);
  const std::string peer = PeerOf(sockets.fds[0]);
  ledger.MarkIdentified(peer);
  const int number = sockets.fds[0];
  close(number);
  EXPECT_FALSE(ledger.IsIdentified(number));
  ledger.MarkIdentified(peer);
  EXPECT_FALSE(ledger.IsIdentified(number)) << "it is over";

  ASSERT_EQ(dup2(sockets.fds[1], number), number);
  EXPECT_EQ(PeerOf(number), "unix:") << "not registered again";
  ledger.Register(number);
  ledger.MarkIdentified(peer);
  EXPECT_FALSE(ledger.IsIdentified(number)) << "the name is of the one before";
  EXPECT_FALSE(ledger.IsIdentified(peer));
  EXPECT_NE(PeerOf(number), peer);
}

TEST(ConnectionLedgerTest, IgnoresOtherPeers) {
  ConnectionLedger ledger;
  for (const char* peer :
       {"", "unix:", "unix:connection-", "unix:connection-1", "ipv4:1.2.3.4:5",
        "unix:connection--1-1", "unix:connection-99999999-1", "unix-abstract:connection-3-x"}) {
    ledger.MarkIdentified(peer);
    ledger.MarkHealthChecked(peer);
    EXPECT_FALSE(ledger.IsIdentified(absl::string_view(peer))) << peer;
  }
  EXPECT_FALSE(ledger.IsIdentified(-1));
  EXPECT_FALSE(ledger.IsIdentified(1 << 30));
}

TEST(ConnectionLedgerTest, CountsIdentifiedCalls) {
  ConnectionFacts facts;
  const uint32_t generation = facts.Begin();
  for (int i = 0; i < 5; ++i) facts.AddIdentifiedCall(generation);
  EXPECT_EQ(facts.identified_calls(), 5);
  facts.SetHealthChecked(generation);
  EXPECT_EQ(facts.identified_calls(), 5);
  EXPECT_EQ(facts.Begin(), generation + 1);
  EXPECT_EQ(facts.identified_calls(), 0);
}

}  // namespace
}  // namespace opserve::server
