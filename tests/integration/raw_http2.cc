#include "tests/integration/raw_http2.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "tests/integration/unix_connection.h"

namespace opserve {
namespace {

// RFC 9113, 6.
constexpr uint8_t kData = 0;
constexpr uint8_t kHeaders = 1;
constexpr uint8_t kResetStream = 3;
constexpr uint8_t kSettings = 4;
constexpr uint8_t kPing = 6;
constexpr uint8_t kWindowUpdate = 8;
constexpr uint8_t kEndStream = 1;
constexpr uint8_t kEndHeaders = 4;
constexpr uint32_t kInitialWindowSize = 4;  // a setting
constexpr uint32_t kLargestWindow = 0x7fffffff;
constexpr uint32_t kFirstWindow = 65535;

std::string BigEndian(uint32_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(value >> (8 * i)));
  return text;
}

// RFC 7541, 6.2.2: a literal, not indexed, with a new name; short enough for lengths of one byte.
std::string Header(const std::string& name, const std::string& value) {
  return BigEndian(0, 1) + BigEndian(name.size(), 1) + name + BigEndian(value.size(), 1) + value;
}

server::FileDescriptor ConnectToPort(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  server::FileDescriptor fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::perror("connect");
    std::abort();
  }
  return fd;
}

}  // namespace

RawHttp2::RawHttp2(const std::string& path, Reading reading)
    : RawHttp2(ConnectToUnixSocket(path), reading) {}

RawHttp2::RawHttp2(uint16_t port, Reading reading) : RawHttp2(ConnectToPort(port), reading) {}

RawHttp2::RawHttp2(server::FileDescriptor socket, Reading reading) : socket_(std::move(socket)) {
  unsent_ = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
  if (reading == Reading::kNothing) {
    AddFrame(kSettings, 0, 0, BigEndian(kInitialWindowSize, 2) + BigEndian(kLargestWindow, 4));
    AddFrame(kWindowUpdate, 0, 0, BigEndian(kLargestWindow - kFirstWindow, 4));
    Flush();
    return;
  }
  AddFrame(
      kSettings, 0, 0,
      reading == Reading::kZeroWindow ? BigEndian(kInitialWindowSize, 2) + BigEndian(0, 4) : "");
  Flush();
  reader_ = std::thread([this] {
    char bytes[4096];
    while (read(socket_.get(), bytes, sizeof(bytes)) > 0) {
    }
  });
}

RawHttp2::~RawHttp2() {
  shutdown(socket_.get(), SHUT_RDWR);
  if (reader_.joinable()) reader_.join();
}

uint32_t RawHttp2::Open(const std::string& method, const std::string& token) {
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  const std::string identity = token.empty() ? "" : Header("authorization", "Bearer " + token);
  AddFrame(kHeaders, kEndHeaders, stream,
           Header(":method", "POST") + Header(":scheme", "http") + Header(":path", method) +
               Header(":authority", "localhost") + Header("te", "trailers") +
               Header("content-type", "application/grpc") + identity);
  return stream;
}

void RawHttp2::SendData(uint32_t stream, const std::string& bytes) {
  AddFrame(kData, 0, stream, bytes);
}

void RawHttp2::SendOnlyMessage(uint32_t stream, const std::string& message) {
  AddFrame(kData, kEndStream, stream, BigEndian(0, 1) + BigEndian(message.size(), 4) + message);
}

void RawHttp2::Reset(uint32_t stream) {
  AddFrame(kResetStream, 0, stream, BigEndian(8, 4));  // CANCEL
}

void RawHttp2::Ping() { AddFrame(kPing, 0, 0, std::string(8, '\0')); }

bool RawHttp2::Flush() {
  while (!unsent_.empty()) {
    const ssize_t sent = send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    unsent_.erase(0, static_cast<size_t>(sent));
  }
  return true;
}

void RawHttp2::AddFrame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  unsent_ += BigEndian(payload.size(), 3) + BigEndian(type, 1) + BigEndian(flags, 1) +
             BigEndian(stream, 4) + payload;
}

}  // namespace opserve
