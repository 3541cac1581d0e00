// The answer to a request to run a program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "grpcpp/support/slice.h"
#include "opserve/v1/operator_service.pb.h"
#include "server/execution/program.h"
#include "server/execution/program_runner.h"
#include "server/observability/stage_clock.h"
#include "server/observability/trace_context.h"

namespace opserve::server {

// A result that stays on the device.
struct KeptTensor {
  std::string handle;
  bool is_new = false;                          // else it replaced the content of a tensor
  absl::Time lease_end = absl::InfinitePast();  // of a new one
  uint64_t version = 1;
};

// Never changed once it is complete, so that several calls can send the same one.
struct ExecuteAnswer {
  std::shared_ptr<const v1::ExecuteResponse> header;  // without payloads
  absl::string_view header_bytes;                     // it, serialised, with the owner of `header`;
                                                      // "": to be serialised
  absl::InlinedVector<grpc::Slice, 1> payloads;       // of header->results that travel, one each
};

// Where the payloads of an answer are.
enum class AnswerMemory {
  kResultBuffers,  // the results' own buffers, without a copy; back in their pool when gRPC has
                   // sent them and the answer is gone
  kCopied,         // ordinary memory; the results' buffers are back in their pool at once
};

// kInvalidArgument (reason "too_large") if the results would make a message of more than `limit`
// bytes, which gRPC would refuse to send after all the work was done. The detail names the largest
// of them.
absl::Status CheckResponseFits(const Program& program, uint64_t limit);

// Where the pool found the program's memory.
v1::Receipt::PoolOutcome PoolOutcomeOf(const ProgramResult& result);

struct AnswerForm {
  AnswerMemory memory = AnswerMemory::kResultBuffers;
  // The header, where it is known: no result stays, and there is no receipt. Null: it is made.
  std::shared_ptr<const v1::ExecuteResponse> header = nullptr;
  absl::string_view header_bytes = {};  // as in ExecuteAnswer
  bool is_brief = false;                // of a prepared program's call: see v1::BriefResults
  bool has_receipt = false;
  bool says_not_remembered = false;  // in the receipt
};

// For callers that know the results of a prepared program.
AnswerForm BriefForm(const Program& program, bool has_receipt);

// Of a run of `program`. Books Stage::kWrite. `kept`: by position in Program::kept. `trace`: for
// the receipt.
ExecuteAnswer BuildExecuteAnswer(const Program& program, ProgramResult result,
                                 absl::Span<const KeptTensor> kept, const AnswerForm& form,
                                 const TraceContext& trace, StageClock* clock);

}  // namespace opserve::server
