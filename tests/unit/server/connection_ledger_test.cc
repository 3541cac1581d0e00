#include "server/net/connection_ledger.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/net/socket_table.h"
#include "tests/integration/http2_frames.h"

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

// Sends bytes to the connection and lets it be read, as gRPC would.
void Receive(const SocketPair& sockets, const std::string& bytes) {
  ASSERT_EQ(write(sockets.fds[1], bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  std::string buffer(bytes.size(), '\0');
  iovec piece = {.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  recvmsg(sockets.fds[0], &message, 0);
}

TEST(ConnectionLedgerTest, NamesThePeersThatFlood) {
  ConnectionLedger ledger;
  const std::string flood = kHttp2Preface + Http2Frame(kHttp2Continuation, 0, 1, "");
  const struct {
    const char* peer;
    std::string bytes;
  } connections[] = {
      {"uid 7", flood}, {"uid 8", kHttp2Preface}, {"uid 9", "GET / HTTP/1.1\r\n"}, {"uid 7", flood},
      {"", flood},      {"192.0.2.1", flood}};
  for (const auto& [peer, bytes] : connections) {
    const SocketPair sockets;
    ledger.Register(sockets.fds[0], peer);
    Receive(sockets, bytes);
  }
  std::vector<std::string> peers;
  for (const auto& waste : ledger.TakeWaste()) {
    if (waste.flooded_at > absl::InfinitePast()) peers.push_back(waste.peer);
  }
  EXPECT_EQ(peers, (std::vector<std::string>{"uid 7", "192.0.2.1"}));
  EXPECT_TRUE(ledger.TakeWaste().empty());
  EXPECT_EQ(ledger.ended(Flood::kMalformed), 5);
}

TEST(ConnectionLedgerTest, AddsUpConnectionsThatEndUnserved) {
  ConnectionLedger ledger;
  const std::string call = Http2Frame(kHttp2Headers, kHttp2EndHeaders, 1, std::string(20, 'x'));
  const auto price = [&](const std::string& bytes, int connections, bool is_identified = false,
                         bool is_excused = false) {
    for (int i = 0; i < connections; ++i) {
      const SocketPair sockets;
      ledger.Register(sockets.fds[0], "uid 7");
      if (!bytes.empty()) Receive(sockets, bytes);
      if (is_identified) ledger.MarkIdentified(PeerOf(sockets.fds[0]));
      if (is_excused) ledger.Excuse(sockets.fds[0]);
    }
    double sum = 0;
    for (const auto& waste : ledger.TakeWaste()) sum += waste.unserved;
    return sum;
  };
  const double silent = price("", 1);
  EXPECT_GT(silent, 0);
  EXPECT_EQ(price("", 3), 3 * silent);
  EXPECT_EQ(price(kHttp2Preface + call + call, 1), silent + 2);
  EXPECT_EQ(price("GET / HTTP/1.1\r\n", 1), silent);
  EXPECT_EQ(price(kHttp2Preface + call, 1, /*is_identified=*/true), 0) << "it was served";
  EXPECT_EQ(price(kHttp2Preface + call, 1, false, /*is_excused=*/true), 0) << "the daemon's doing";
  EXPECT_EQ(price(kHttp2Preface + Http2Frame(kHttp2Continuation, 0, 1, ""), 1), 0)
      << "it was ended for a flood, which counts by itself";
}

TEST(ConnectionLedgerTest, PacedConnectionsMaySendLittle) {
  ConnectionLedger ledger;
  const std::string call = Http2Frame(kHttp2Headers, kHttp2EndHeaders, 1, std::string(20, 'x'));
  std::string calls = kHttp2Preface;
  for (int i = 0; i < 20; ++i) calls += call;
  for (const bool is_paced : {false, true}) {
    const SocketPair sockets;
    ledger.Register(sockets.fds[0], "uid 7", is_paced);
    Receive(sockets, calls);
    EXPECT_EQ(ledger.ended(Flood::kStreams), is_paced ? 1 : 0);
  }
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
