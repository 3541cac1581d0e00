#include "server/program/memory_plan.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "server/program/interval_placement.h"
#include "server/program/program.h"

namespace opserve::server {
namespace {

// CANN's rules for tensors inside a larger allocation.
constexpr uint64_t kAlignment = 64;
constexpr uint64_t kSlack = 32;

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kSlack + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

MemoryPlan PlanMemory(const Program& program, absl::Span<const uint64_t> payload_bytes,
                      absl::Span<const uint64_t> workspace_bytes,
                      const std::vector<bool>& copied_windows, bool stages_kept) {
  const auto is_copied = [&](size_t window) {
    return window < copied_windows.size() && copied_windows[window];
  };
  MemoryPlan plan;
  plan.payloads.resize(payload_bytes.size());
  plan.windows.resize(program.windows.size());
  const BoundInvocation* last_invocation =
      program.invocations.empty() ? nullptr : &program.invocations.back();
  plan.outputs.resize(last_invocation == nullptr
                          ? 0
                          : last_invocation->first_output + last_invocation->outputs.size());
  plan.workspaces.resize(program.invocations.size());

  // Small programs are planned without asking for memory.
  absl::InlinedVector<Interval, 8> pieces;
  absl::InlinedVector<uint64_t*, 8> places;  // of the pieces, in the plan
  absl::InlinedVector<uint32_t, 4> last_reader(payload_bytes.size(), 0);
  const auto add = [&](uint64_t bytes, uint32_t first, uint32_t last, uint64_t* place) {
    // A piece without bytes stays at 0, where nothing is read.
    if (bytes == 0) return;
    pieces.push_back({RoundUp(bytes), first, last});
    places.push_back(place);
  };
  uint32_t last_literal_reader = 0;
  std::vector<std::optional<uint32_t>> last_window_reader(
      program.windows.size());  // none: an output
  const auto count = static_cast<uint32_t>(program.invocations.size());
  const auto note_reader = [&](const BoundInput& input, uint32_t now) {
    if (const auto* payload = std::get_if<PayloadSource>(&input.source)) {
      if (payload_bytes.empty()) return;  // they lie apart
      last_reader[payload->payload] = std::max(last_reader[payload->payload], now);
    } else if (const auto* shared = std::get_if<SharedSource>(&input.source)) {
      std::optional<uint32_t>& last = last_window_reader[shared->window];
      last = std::max(last.value_or(0), now);
    } else if (std::holds_alternative<LiteralSource>(input.source)) {
      last_literal_reader = std::max(last_literal_reader, now);
    }
  };
  plan.copies.resize(program.copies.size());
  for (size_t i = 0; i < program.copies.size(); ++i) {
    const ContiguousCopy& copy = program.copies[i];
    note_reader(copy.view(), copy.invocation);
    add(copy.bytes(), copy.invocation, copy.invocation, &plan.copies[i]);
  }
  for (uint32_t now = 0; now < count; ++now) {
    const BoundInvocation& invocation = program.invocations[now];
    for (const BoundInput& input : invocation.inputs) note_reader(input, now);
    for (size_t k = 0; k < invocation.outputs.size(); ++k) {
      const BoundOutput& output = invocation.outputs[k];
      const bool is_staged = stages_kept && output.kept && !program.kept[*output.kept].is_in_place;
      // Results are copied when all has run.
      const uint32_t last =
          output.is_result || is_staged ? count : output.last_reader.value_or(now);
      if ((!output.kept || is_staged) && (!output.window || is_copied(*output.window))) {
        add(static_cast<uint64_t>(NumBytes(output.spec)), now, last,
            &plan.outputs[invocation.first_output + k]);
      }
    }
    add(workspace_bytes[now], now, now, &plan.workspaces[now]);
  }
  for (size_t i = 0; i < payload_bytes.size(); ++i) {
    add(payload_bytes[i], 0, last_reader[i], &plan.payloads[i]);
  }
  add(program.literals.size(), 0, last_literal_reader, &plan.literals);
  for (size_t i = 0; i < program.windows.size(); ++i) {
    // A window for a result has the place of its output.
    if (!last_window_reader[i] || !is_copied(i)) continue;
    add(program.windows[i].bytes, 0, *last_window_reader[i], &plan.windows[i]);
  }

  absl::InlinedVector<uint64_t, 8> offsets(pieces.size());
  plan.total_bytes = PlaceIntervals(pieces, absl::MakeSpan(offsets));
  for (size_t i = 0; i < places.size(); ++i) *places[i] = offsets[i];
  return plan;
}

std::shared_ptr<const MemoryPlan> WorkspacePlan::For(const Program& program,
                                                     absl::Span<const uint64_t> workspace_bytes) {
  // Held while it plans: other lanes would plan the same.
  absl::MutexLock lock(&mutex_);
  if (plan_ == nullptr || workspace_bytes_ != workspace_bytes) {
    workspace_bytes_.assign(workspace_bytes.begin(), workspace_bytes.end());
    plan_ = std::make_shared<const MemoryPlan>(
        PlanMemory(program, program.payload_sizes, workspace_bytes));
  }
  return plan_;
}

}  // namespace opserve::server
