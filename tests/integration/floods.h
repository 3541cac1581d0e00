// What one connection of a stranger can send without end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/integration/http2_frames.h"
#include "tests/integration/raw_http2.h"

namespace opserve {

struct FloodKind {
  const char* name;   // of the test
  const char* label;  // of the metric opserve_flooding_connections_total
  // Before the flood, and a piece of it.
  std::function<void(RawHttp2&)> begin;
  std::function<void(RawHttp2&)> send;
};

inline std::string Repeated(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

inline const std::vector<FloodKind>& FloodKinds() {
  static constexpr char kExecute[] = "/opserve.v1.OperatorService/Execute";
  static const auto nothing = [](RawHttp2&) {};
  static const std::string fields = Repeated(128, Http2Header("field", std::string(100, 'x')));
  static const auto* const kinds = new std::vector<FloodKind>{
      {"Continuations", "headers",
       [](RawHttp2& peer) {
         peer.Add(Http2Frame(kHttp2Headers, 0, 1, Http2Header(":method", "POST")));
       },
       [](RawHttp2& peer) { peer.Add(Http2Frame(kHttp2Continuation, 0, 1, fields)); }},
      {"Resets", "resets", nothing,
       [](RawHttp2& peer) {
         for (int i = 0; i < 100; ++i) peer.Reset(peer.Open("/grpc.health.v1.Health/Watch"));
       }},
      {"ResetsOfOneStream", "resets", [](RawHttp2& peer) { peer.Open(kExecute); },
       [](RawHttp2& peer) {
         for (int i = 0; i < 100; ++i) peer.Reset(1);
       }},
      {"CallsOfNobody", "streams", nothing,
       [](RawHttp2& peer) {
         for (int i = 0; i < 100; ++i) peer.Open(kExecute);
       }},
      {"Pings", "control_frames", nothing,
       [](RawHttp2& peer) {
         for (int i = 0; i < 500; ++i) peer.Ping();
       }},
      {"Settings", "control_frames", nothing,
       [](RawHttp2& peer) { peer.Add(Repeated(500, Http2Frame(kHttp2Settings, 0, 0, ""))); }},
      {"EmptyData", "control_frames", [](RawHttp2& peer) { peer.Open(kExecute); },
       [](RawHttp2& peer) { peer.Add(Repeated(500, Http2Frame(kHttp2Data, 0, 1, ""))); }},
  };
  return *kinds;
}

}  // namespace opserve
