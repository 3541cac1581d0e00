#include "server/execution/memory_plan.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "server/execution/program.h"

namespace opserve::server {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kSlack = 32;

// A piece and the invocations during which its bytes must not change, both ends included.
struct Piece {
  uint64_t bytes = 0;
  int first = 0;
  int last = 0;
  uint64_t* offset = nullptr;
  size_t order = 0;  // in which it was named

  bool Overlaps(const Piece& other) const { return first <= other.last && other.first <= last; }
  uint64_t end() const { return *offset + bytes; }
};

uint64_t RoundUp(uint64_t bytes) {
  return (bytes + kSlack + kAlignment - 1) / kAlignment * kAlignment;
}

// The lowest offset at which `piece` collides with none of `placed` that lives at the same time.
// `placed` is in order of offsets.
uint64_t LowestFit(const Piece& piece, absl::Span<const Piece> placed) {
  uint64_t offset = 0;
  for (const Piece& other : placed) {
    if (!piece.Overlaps(other)) continue;
    if (offset + piece.bytes <= *other.offset) break;
    offset = std::max(offset, other.end());
  }
  return offset;
}

}  // namespace

MemoryPlan PlanMemory(const Program& program, absl::Span<const uint64_t> payload_bytes,
                      absl::Span<const uint64_t> workspace_bytes,
                      const std::vector<bool>& copied_windows) {
  const auto is_copied = [&](size_t window) {
    return window < copied_windows.size() && copied_windows[window];
  };
  const size_t count = program.invocations.size();
  MemoryPlan plan;
  plan.payloads.resize(payload_bytes.size());
  plan.windows.resize(program.windows.size());
  const BoundInvocation* last_invocation = count == 0 ? nullptr : &program.invocations.back();
  plan.outputs.resize(last_invocation == nullptr
                          ? 0
                          : last_invocation->first_output + last_invocation->outputs.size());
  plan.workspaces.resize(count);

  // Small programs are planned without asking for memory.
  absl::InlinedVector<Piece, 8> pieces;
  absl::InlinedVector<int, 4> last_reader(payload_bytes.size(), 0);
  const auto add = [&pieces](uint64_t bytes, int first, int last, uint64_t* offset) {
    if (bytes > 0) pieces.push_back({RoundUp(bytes), first, last, offset, pieces.size()});
  };
  int last_literal_reader = 0;
  std::vector<std::optional<int>> last_window_reader(program.windows.size());  // none: an output
  for (size_t i = 0; i < count; ++i) {
    const BoundInvocation& invocation = program.invocations[i];
    const int now = static_cast<int>(i);
    for (const BoundInput& input : invocation.inputs) {
      if (const auto* payload = std::get_if<PayloadSource>(&input.source)) {
        last_reader[payload->payload] = now;
      } else if (const auto* shared = std::get_if<SharedSource>(&input.source)) {
        last_window_reader[shared->window] = now;
      } else if (std::holds_alternative<LiteralSource>(input.source)) {
        last_literal_reader = now;
      }
    }
    for (size_t k = 0; k < invocation.outputs.size(); ++k) {
      const BoundOutput& output = invocation.outputs[k];
      const int last = output.is_result ? static_cast<int>(count)
                                        : static_cast<int>(output.last_reader.value_or(i));
      if (!output.kept && (!output.window || is_copied(*output.window))) {
        add(static_cast<uint64_t>(NumBytes(output.spec)), now, last,
            &plan.outputs[invocation.first_output + k]);
      }
    }
    add(workspace_bytes[i], now, now, &plan.workspaces[i]);
  }
  for (size_t i = 0; i < payload_bytes.size(); ++i) {
    add(payload_bytes[i], 0, last_reader[i], &plan.payloads[i]);
  }
  add(program.literals.size(), 0, last_literal_reader, &plan.literals);
  for (size_t i = 0; i < program.windows.size(); ++i) {
    if (!last_window_reader[i] || !is_copied(i)) continue;
    add(program.windows[i].range.size(), 0, *last_window_reader[i], &plan.windows[i]);
  }

  // Largest first: what is small fits into the gaps that are left.
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.order < b.order;
  });
  absl::InlinedVector<Piece, 8> placed;
  for (const Piece& piece : pieces) {
    *piece.offset = LowestFit(piece, placed);
    plan.total_bytes = std::max(plan.total_bytes, piece.end());
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), piece,
                         [](const Piece& a, const Piece& b) { return *a.offset < *b.offset; }),
        piece);
  }
  return plan;
}

}  // namespace opserve::server
