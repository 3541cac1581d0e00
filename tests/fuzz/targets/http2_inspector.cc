// What clients' connections carry, as the guard sees it: the same bytes get the same verdict
// wherever they are cut, and a verdict stays. The same of a TLS client's first bytes.
//
// Input: a byte that chooses what is read, one for the size of the pieces, one for how much time
// and service lie between them, the bytes (of HTTP/2 behind the preface).
#include "server/net/http2_inspector.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/net/client_hello.h"
#include "tests/fuzz/targets/check.h"
#include "tests/fuzz/targets/input.h"

namespace opserve::fuzz {
namespace {

using server::ClientHelloReader;
using server::ConnectionProgress;
using server::Flood;
using server::Http2Inspector;
using server::Http2Limits;

constexpr absl::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

Http2Limits SmallLimits() {
  return {.max_header_block_bytes = 200,
          .max_continuations = 3,
          .stream_burst = 4,
          .reset_burst = 3,
          .control_burst = 8,
          .identified_stream_burst = 16,
          .identified_reset_burst = 6,
          .identified_control_burst = 8,
          .streams_per_second = 2,
          .identified_streams_per_second = 20,
          .resets_per_second = 2,
          .control_per_second = 4,
          .unidentified_bytes = 4096,
          .unidentified_bytes_per_second = 2048};
}

void CheckCuts(absl::string_view bytes, size_t piece) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector whole(limits, 0);
  Http2Inspector cut(limits, 0);
  const Flood verdict = whole.Read(bytes);
  for (size_t at = 0; at < bytes.size(); at += piece) cut.Read(bytes.substr(at, piece));
  Check(cut.Read("") == verdict, "cuts change nothing");
  Check(whole.Read(kPreface) == verdict || verdict == Flood::kNone, "a verdict stays");
}

void CheckProgress(absl::string_view bytes, size_t piece, uint8_t service) {
  const Http2Limits limits = SmallLimits();
  Http2Inspector idle(limits, 0);
  Http2Inspector served(limits, 0);
  ConnectionProgress progress;
  for (size_t at = 0; at < bytes.size(); at += piece) {
    progress.now_ns += int64_t{service} * 10'000'000;
    progress.identified_calls += service % 4;
    progress.is_identified = progress.identified_calls > 0;
    progress.sent_bytes += service;
    served.Advance(progress);
    const bool is_ended = served.Read(bytes.substr(at, piece)) != Flood::kNone;
    const bool would_be = idle.Read(bytes.substr(at, piece)) != Flood::kNone;
    Check(!is_ended || would_be, "time and service end no connection");
  }
}

void CheckHello(absl::string_view bytes, size_t piece) {
  ClientHelloReader whole;
  ClientHelloReader cut;
  whole.Read(bytes);
  for (size_t at = 0; at < bytes.size(); at += piece) cut.Read(bytes.substr(at, piece));
  Check(whole.state() == cut.state() && whole.random() == cut.random(), "cuts change nothing");
  if (whole.state() != ClientHelloReader::State::kDone) return;
  Check(std::equal(whole.random().begin(), whole.random().end(), bytes.begin() + 11,
                   [](uint8_t a, char b) { return a == static_cast<uint8_t>(b); }),
        "the number is the client's");
}

}  // namespace
}  // namespace opserve::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace opserve;  // NOLINT: the function stands for a namespace of its own
  fuzz::Input input(data, size);
  const uint8_t reading = input.Byte();
  const size_t piece = std::max<size_t>(input.Byte(), 1);
  const uint8_t service = input.Byte();
  if (reading % 3 == 0) {
    fuzz::CheckHello(input.Rest(), piece);
    return 0;
  }
  const std::string bytes = absl::StrCat(reading % 3 == 1 ? fuzz::kPreface : "", input.Rest());
  fuzz::CheckCuts(bytes, piece);
  fuzz::CheckProgress(bytes, piece, service);
  return 0;
}
