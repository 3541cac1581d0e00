// A peer that speaks just enough HTTP/2 to misbehave: it opens streams, sends parts of bodies,
// resets and pings, and reads nothing but to throw it away.
#pragma once

#include <cstdint>
#include <string>

#include "tests/integration/wire.h"

namespace opserve {

class RawHttp2 {
 public:
  // What becomes of what the daemon sends: thrown away; left in the socket although any amount was
  // announced as welcome; thrown away, but with windows of zero, so that no message may be sent.
  enum class Reading { kAll, kNothing, kZeroWindow };

  // Connects to a Unix socket, or as `target` says, and greets. Aborts the test program if nobody
  // listens.
  explicit RawHttp2(const std::string& path, Reading reading = Reading::kAll)
      : RawHttp2(WireTarget{.unix_path = path}, reading) {}
  explicit RawHttp2(const WireTarget& target, Reading reading = Reading::kAll);

  // Begins a call of `method`, "/PACKAGE.SERVICE/METHOD", on the next stream, whose id it gives.
  // `token`: of the tenant; `timeout`: of the call, as grpc-timeout has it; empty: none is sent.
  uint32_t Open(const std::string& method, const std::string& token = "",
                const std::string& timeout = "");
  // Part of the body.
  void SendData(uint32_t stream, const std::string& bytes);
  // All of it: one message.
  void SendOnlyMessage(uint32_t stream, const std::string& message);
  void Reset(uint32_t stream);
  void Ping();
  // Any frame (http2_frames.h).
  void Add(const std::string& frame) { unsent_ += frame; }

  // What was said before is sent when this returns; false: the daemon has closed the connection.
  bool Flush();

 private:
  Wire wire_;
  uint32_t next_stream_ = 1;
  std::string unsent_;
};

}  // namespace opserve
