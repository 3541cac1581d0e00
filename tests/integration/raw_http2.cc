#include "tests/integration/raw_http2.h"

#include <utility>

#include "tests/integration/http2_frames.h"

namespace opserve {
namespace {

constexpr uint32_t kInitialWindowSize = 4;  // a setting
constexpr uint32_t kLargestWindow = 0x7fffffff;
constexpr uint32_t kFirstWindow = 65535;

}  // namespace

RawHttp2::RawHttp2(const WireTarget& target, Reading reading) : wire_(target) {
  unsent_ = kHttp2Preface;
  if (reading == Reading::kNothing) {
    Add(Http2Frame(kHttp2Settings, 0, 0,
                   BigEndian(kInitialWindowSize, 2) + BigEndian(kLargestWindow, 4)));
    Add(Http2Frame(kHttp2WindowUpdate, 0, 0, BigEndian(kLargestWindow - kFirstWindow, 4)));
    Flush();
    return;
  }
  Add(Http2Frame(
      kHttp2Settings, 0, 0,
      reading == Reading::kZeroWindow ? BigEndian(kInitialWindowSize, 2) + BigEndian(0, 4) : ""));
  Flush();
  wire_.DiscardAnswers();
}

uint32_t RawHttp2::Open(const std::string& method, const std::string& token,
                        const std::string& timeout) {
  const uint32_t stream = std::exchange(next_stream_, next_stream_ + 2);
  const std::string identity = token.empty() ? "" : Http2Header("authorization", "Bearer " + token);
  const std::string limit = timeout.empty() ? "" : Http2Header("grpc-timeout", timeout);
  Add(Http2Frame(kHttp2Headers, kHttp2EndHeaders, stream,
                 Http2Header(":method", "POST") + Http2Header(":scheme", "http") +
                     Http2Header(":path", method) + Http2Header(":authority", "localhost") +
                     Http2Header("te", "trailers") +
                     Http2Header("content-type", "application/grpc") + identity + limit));
  return stream;
}

void RawHttp2::SendData(uint32_t stream, const std::string& bytes) {
  Add(Http2Frame(kHttp2Data, 0, stream, bytes));
}

void RawHttp2::SendOnlyMessage(uint32_t stream, const std::string& message) {
  Add(Http2Frame(kHttp2Data, kHttp2EndStream, stream,
                 BigEndian(0, 1) + BigEndian(message.size(), 4) + message));
}

void RawHttp2::Reset(uint32_t stream) {
  Add(Http2Frame(kHttp2ResetStream, 0, stream, BigEndian(8, 4)));  // CANCEL
}

void RawHttp2::Ping() { Add(Http2Frame(kHttp2Ping, 0, 0, std::string(8, '\0'))); }

bool RawHttp2::Flush() { return wire_.Send(std::exchange(unsent_, "")); }

}  // namespace opserve
