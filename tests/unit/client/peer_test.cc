// What happens to the bytes of requests when the daemon stops reading its connection.

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/string_view.h"
#include "absl/synchronization/notification.h"
#include "client/cpp/client.h"
#include "gtest/gtest.h"
#include "tests/await.h"
#include "tests/unit/client/test_server.h"

namespace opserve {
namespace {

constexpr int64_t kLarge = 2 << 20;  // elements; far more than a socket's buffer holds
constexpr int kSomeBytes = 16 << 10;

// An HTTP/2 peer that grants the largest windows and then never reads.
class StalledPeer {
 public:
  StalledPeer() : listener_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, directory_.File("socket").c_str(), sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    thread_ = std::thread(&StalledPeer::Serve, this);
  }
  ~StalledPeer() {
    Close();
    thread_.join();
  }

  std::string target() const { return "unix:" + directory_.File("socket"); }

  // Returns when more has arrived than a call without tensors sends.
  void WaitForBytes() { has_bytes_.WaitForNotification(); }

  // Ends the connection and takes no other.
  void Close() {
    if (!close_.HasBeenNotified()) close_.Notify();
  }

 private:
  void Serve() {
    // SETTINGS with INITIAL_WINDOW_SIZE 2^31 - 1, then WINDOW_UPDATE of the connection by 2^30.
    constexpr absl::string_view kGreeting(
        "\0\0\6\4\0\0\0\0\0\0\4\x7f\xff\xff\xff\0\0\4\10\0\0\0\0\0\x40\0\0\0", 28);
    const int connection = accept(listener_, nullptr, nullptr);
    EXPECT_EQ(write(connection, kGreeting.data(), kGreeting.size()),
              static_cast<ssize_t>(kGreeting.size()));
    EXPECT_TRUE(Await([connection] {
      int arrived = 0;
      return ioctl(connection, FIONREAD, &arrived) != 0 || arrived >= kSomeBytes;
    }));
    has_bytes_.Notify();
    close_.WaitForNotification();
    close(listener_);
    close(connection);
  }

  TemporaryDirectory directory_;
  const int listener_;
  absl::Notification has_bytes_;
  absl::Notification close_;
  std::thread thread_;
};

// Without a session, whose daemon would first have to say hello.
std::unique_ptr<Client> Connect(const StalledPeer& peer) {
  return *Client::Connect(peer.target(), {.retry = {.waits_for_daemon = false}, .session = false});
}

Request RequestWith(Tensor tensor) {
  return {.invocations = {{.operator_name = "Scale", .inputs = {{"x", std::move(tensor)}}}}};
}

TEST(StalledPeerTest, OwnedBytesAreReleasedWhenTheConnectionBreaks) {
  StalledPeer peer;
  const auto client = Connect(peer);
  Request request = RequestWith(Tensor::Owning<float>({kLarge}, std::vector<float>(kLarge)));
  const std::weak_ptr<const void> owner =
      std::get<Tensor>(request.invocations[0].inputs[0].value).owner();
  auto future = client->ExecuteAsync(request);
  request = Request();
  peer.WaitForBytes();
  EXPECT_FALSE(owner.expired()) << "gRPC still writes these bytes";

  peer.Close();

  EXPECT_EQ(future.get().status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Await([&] {
    (void)client->GetServerStatus(absl::Milliseconds(20));
    return owner.expired();
  }));
}

TEST(StalledPeerTest, BorrowedBytesAreFreeWhenTheCallHasEnded) {
  using Send = absl::Status (*)(Client&, const Tensor&);
  const Send kWays[] = {
      [](Client& client, const Tensor& tensor) {
        return client.Execute(RequestWith(tensor)).status();
      },
      [](Client& client, const Tensor& tensor) {
        return client.ExecuteAsync(RequestWith(tensor)).get().status();
      },
      [](Client& client, const Tensor& tensor) {
        return (*client.OpenStream())->Execute(RequestWith(tensor)).get().status();
      },
      [](Client& client, const Tensor& tensor) { return client.Upload(tensor).status(); },
  };
  for (const Send send : kWays) {
    StalledPeer peer;
    const auto client = Connect(peer);
    auto borrowed = std::make_unique<std::vector<float>>(kLarge);
    absl::Status status;
    std::thread caller([&] {
      status = send(*client, Tensor::Of<float>({kLarge}, *borrowed));
      borrowed = nullptr;  // AddressSanitizer sees a later use
    });
    peer.WaitForBytes();

    peer.Close();

    caller.join();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace opserve
