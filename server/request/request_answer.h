// The answer to a request, in the daemon's own types: each protocol says it in its own words.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "proto/dtypes/tensor_spec.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"
#include "server/program/program.h"
#include "server/request/result_bytes.h"
#include "server/run/program_runner.h"

namespace opserve::server {

// A result that stays on the device.
struct KeptTensor {
  std::string handle;
  bool is_new = false;                          // else it replaced the content of a tensor
  absl::Time lease_end = absl::InfinitePast();  // of a new one
  uint64_t version = 1;
};

struct AnsweredResult {
  uint32_t invocation = 0;
  std::string output;  // its name
  TensorSpec spec;
  // The place of its elements: one of the three.
  std::optional<uint32_t> payload = std::nullopt;  // position among the results that travel
  std::optional<uint32_t> kept = std::nullopt;     // position in RequestAnswer::kept
  std::optional<MemoryRange> range = std::nullopt;
};

// Never changed once it is complete, so that several calls can send the same one.
struct RequestAnswer {
  bool is_known = true;  // false: the request has run, but its answer is not remembered
  // In the order in which they were asked for. None where the protocol knows them
  // (RequestInput::knows_results, or known).
  bool has_results = false;
  std::vector<AnsweredResult> results;
  // Of the results that travel, unless they are in run.held.
  absl::InlinedVector<ResultBytes, 1> payloads;
  std::vector<KeptTensor> kept;  // by position in Program::kept
  // For receipts.
  ProgramResult run;                // without its outputs
  std::optional<StageClock> clock;  // when the answer was complete
  TraceContext trace;
  bool is_not_remembered = false;  // though it has a key
};

struct AnswerParts {
  bool has_results = true;
  // Into ordinary memory; the results' buffers are back in their pool at once. Else without a copy.
  bool are_results_copied = false;
};

// Of a run of `program`, but for clock, trace and is_not_remembered. `kept`: as the answer has it.
std::shared_ptr<RequestAnswer> MakeAnswer(const Program& program, ProgramResult&& result,
                                          std::vector<KeptTensor> kept, const AnswerParts& parts);

}  // namespace opserve::server
