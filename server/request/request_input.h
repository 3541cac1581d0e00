// A request as its protocol hands it over.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "proto/codec/payloads.h"
#include "server/identity/tenants.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"
#include "server/program/program.h"
#include "server/request/given_request.h"
#include "server/request/held_limit.h"
#include "server/run/call_state.h"
#include "server/shared_memory/shared_region.h"

namespace opserve::server {

// Keeps programs that requests were bound to, for equal messages of its protocol.
class ProgramKeeper {
 public:
  virtual ~ProgramKeeper() = default;
  // `message`: the request's. Returns the call's program from now on.
  virtual std::shared_ptr<const Program> Keep(const codec::PayloadMessage& message,
                                              const ProgramCall& bound) = 0;
};

struct RequestInput {
  Tenant* tenant = nullptr;       // the request's
  codec::PayloadMessage message;  // owns the payloads' bytes
  // What it asks for; with its views, it is used only while the request is handed over.
  const GivenRequest& asked;
  uint64_t request_bytes = 0;  // of the whole message
  TraceContext trace = {};     // its place in its trace
  uint64_t connection = 0;     // that will read the results, as in TaskDemand
  bool is_local = false;       // its client is on this machine, at a Unix socket
  // The protocol sends results in parts, so that they may have any size, and takes them from device
  // memory (RequestAnswer::run) for as many requests as this says. Null: they must fit one message.
  HeldLimit* held_limit = nullptr;
  bool knows_results = false;  // its answer need not say where results are from, and their shapes
  // Regions that the protocol has found by name already, for the ranges of `asked`, by
  // MemoryRange::region. None: ranges name those of the tenant's connections.
  std::vector<std::shared_ptr<SharedRegion>> named_regions = {};
  // The program that an equal message had; null: it is to be bound.
  std::shared_ptr<const Program> known = nullptr;
  bool is_answer_known = false;  // with it, as if the protocol had said knows_results
  // Where to keep the program, unless it is known; null: nowhere. Used during the hand-over.
  ProgramKeeper* keeper = nullptr;
  std::shared_ptr<CallState> call;
  StageClock clock;  // running since the request's arrival
};

}  // namespace opserve::server
