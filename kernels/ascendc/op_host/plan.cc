#include "plan.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace opserve::ascendc {
namespace {

using Axis = KlDivTargetBackwardAxis;

constexpr Axis kNoAxis = {1, {0, 0, 0}};
constexpr int64_t kRepeatElements = 64;           // floats of one repeat of a vector instruction
constexpr int64_t kRowElements = 16;              // rows start on 32 bytes in a 2-byte dtype, too
constexpr int64_t kReservedForSelect = 8 * 1024;  // Select's own part of the unified buffer
constexpr int64_t kColumnBytes = kMaxRows * 4;    // a float for each row
constexpr int64_t kMaskSlack = 32;                // nonzero_ is rounded up to so much

int64_t DivideUp(int64_t value, int64_t by) { return (value + by - 1) / by; }
int64_t RoundUp(int64_t value, int64_t multiple) { return DivideUp(value, multiple) * multiple; }

bool IsReduced(const Axis& axis) { return axis.count > 1 && axis.stride[kTarget] == 0; }

// The axes of `common`, innermost first: those of one element left out, neighbours that every input
// walks through as through one merged into one.
std::vector<Axis> MergedAxes(const Shape& common, const Shape (&shape)[kNumInputs]) {
  std::vector<Axis> merged;
  int64_t next_stride[kNumInputs] = {1, 1, 1};
  for (size_t from_end = 1; from_end <= common.size(); ++from_end) {
    Axis axis = {common[common.size() - from_end], {0, 0, 0}};
    for (int32_t input = 0; input < kNumInputs; ++input) {
      const Shape& own = shape[input];
      const int64_t extent = from_end <= own.size() ? own[own.size() - from_end] : 1;
      if (extent != 1) axis.stride[input] = next_stride[input];
      next_stride[input] *= extent;
    }
    if (axis.count == 1) continue;
    const bool continues =
        !merged.empty() && std::equal(axis.stride, axis.stride + kNumInputs, merged.back().stride,
                                      [&](int64_t outer, int64_t inner) {
                                        return outer == inner * merged.back().count;
                                      });
    if (continues) {
      merged.back().count *= axis.count;
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

double Divisor(int64_t reduction, const Shape& common) {
  if (reduction == 1) return static_cast<double>(NumElements(common));
  if (reduction == 3 && !common.empty()) return static_cast<double>(common[0]);
  return 1.0;
}

// Sets slot_bytes and tile_elements: the largest tile for which the kernel's buffers (Init in
// kl_div_target_backward.h and input.h) fit. 0 where none does.
void SizeBuffers(const Problem& problem, const Device& device, KlDivTargetBackwardTiling* tiling) {
  int64_t fixed = kReservedForSelect + kMaskSlack + kColumnBytes;
  int64_t per_element = 2 * problem.element_bytes[kTarget] + 3 * 4;
  for (int32_t input = 0; input < kNumInputs; ++input) {
    const int64_t bytes = problem.element_bytes[input];
    if (tiling->col.stride[input] == 0) {
      fixed += kColumnBytes + 2 * kMaxRows * bytes;
      per_element += 4;
    } else {
      per_element += 2 * bytes + (bytes == 4 ? 0 : 4);
    }
  }
  const int64_t free = static_cast<int64_t>(device.unified_buffer_bytes) - fixed;
  const int64_t elements =
      std::max<int64_t>(free, 0) * 8 / (per_element * 8 + 1);  // and a bit of the mask
  tiling->tile_elements = static_cast<int32_t>(elements / kRepeatElements * kRepeatElements);
  for (int32_t input = 0; input < kNumInputs; ++input) {
    const int32_t per_tile = tiling->col.stride[input] == 0 ? kMaxRows : tiling->tile_elements;
    tiling->slot_bytes[input] = per_tile * problem.element_bytes[input];
  }
}

// The largest tile: whole rows where the buffers hold at least one.
void ChooseTile(KlDivTargetBackwardTiling* tiling) {
  const int64_t capacity = tiling->tile_elements;
  const int64_t row = RoundUp(tiling->col.count, kRowElements);
  if (row > capacity) {
    tiling->col_tile = tiling->pitch = tiling->tile_elements;
    tiling->row_tile = 1;
    return;
  }
  tiling->col_tile = static_cast<int32_t>(tiling->col.count);
  tiling->pitch = static_cast<int32_t>(row);
  tiling->row_tile = static_cast<int32_t>(std::min(capacity / row, int64_t{kMaxRows}));
}

void CountTiles(KlDivTargetBackwardTiling* tiling) {
  tiling->num_items = 1;
  tiling->num_steps = 1;
  for (int32_t i = 0; i < tiling->num_kept; ++i) tiling->num_items *= tiling->kept[i].count;
  for (int32_t i = 0; i < tiling->num_reduced; ++i) tiling->num_steps *= tiling->reduced[i].count;
  (tiling->row_reduced ? tiling->num_steps : tiling->num_items) *=
      DivideUp(tiling->row.count, tiling->row_tile);
  (tiling->col_reduced ? tiling->num_steps : tiling->num_items) *=
      DivideUp(tiling->col.count, tiling->col_tile);
}

// Where there are fewer items than cores, makes them smaller, along kept axes only: the sums stay
// as they are.
void ShareOut(int64_t num_cores, KlDivTargetBackwardTiling* tiling) {
  const auto chunk = [&](int64_t count, int64_t tile, int64_t multiple) {
    const int64_t wanted = DivideUp(DivideUp(count, tile) * num_cores, tiling->num_items);
    return static_cast<int32_t>(std::min(tile, RoundUp(DivideUp(count, wanted), multiple)));
  };
  if (tiling->num_items < num_cores && !tiling->row_reduced) {
    tiling->row_tile = chunk(tiling->row.count, tiling->row_tile, 1);
    CountTiles(tiling);
  }
  if (tiling->num_items < num_cores && !tiling->col_reduced) {
    tiling->col_tile = chunk(tiling->col.count, tiling->col_tile, kRepeatElements);
    tiling->pitch = static_cast<int32_t>(RoundUp(tiling->col_tile, kRowElements));
    CountTiles(tiling);
  }
}

// Whether every tile takes the same part of an input: all of what is not broadcast lies in one
// tile.
bool IsConstant(const KlDivTargetBackwardTiling& tiling, int32_t input) {
  const auto stays = [input](const Axis& axis) { return axis.stride[input] == 0; };
  return std::all_of(tiling.kept, tiling.kept + tiling.num_kept, stays) &&
         std::all_of(tiling.reduced, tiling.reduced + tiling.num_reduced, stays) &&
         (stays(tiling.row) || tiling.row_tile >= tiling.row.count) &&
         (stays(tiling.col) || tiling.col_tile >= tiling.col.count);
}

}  // namespace

bool MakePlan(const Problem& problem, const Device& device, Plan* plan, std::string* error) {
  const std::optional<Shape> common = Broadcast(problem.shape[kSelf], problem.shape[kTarget]);
  if (!common || Broadcast(problem.shape[kGradOutput], *common) != common) {
    *error = "KlDivTargetBackward: the shapes of grad_output, self and target do not broadcast";
    return false;
  }
  if (common->size() > kMaxRank) {
    *error = "KlDivTargetBackward: rank " + std::to_string(common->size()) + ", expected at most 8";
    return false;
  }
  *plan = Plan{};
  KlDivTargetBackwardTiling& tiling = plan->tiling;
  const bool sums_nothing = NumElements(*common) == 0;
  std::vector<Axis> axes;
  if (!sums_nothing) {
    axes = MergedAxes(*common, problem.shape);
  } else if (const int64_t count = NumElements(problem.shape[kTarget]); count != 1) {
    axes = {{count, {0, 0, 1}}};
  }
  for (int32_t input = 0; input < kNumInputs; ++input) {
    tiling.num_elements[input] = NumElements(problem.shape[input]);
  }
  tiling.scale = static_cast<float>(1.0 / Divisor(problem.reduction, *common));
  tiling.log_target = problem.log_target ? 1 : 0;
  tiling.col = axes.empty() ? kNoAxis : axes[0];
  tiling.row = axes.size() < 2 ? kNoAxis : axes[1];
  tiling.col_reduced = IsReduced(tiling.col) ? 1 : 0;
  tiling.row_reduced = IsReduced(tiling.row) ? 1 : 0;
  for (size_t i = axes.size(); i-- > 2;) {  // outermost first
    if (IsReduced(axes[i])) {
      tiling.reduced[tiling.num_reduced++] = axes[i];
    } else {
      tiling.kept[tiling.num_kept++] = axes[i];
    }
  }
  SizeBuffers(problem, device, &tiling);
  if (tiling.tile_elements == 0) {
    *error = "KlDivTargetBackward: a unified buffer of " +
             std::to_string(device.unified_buffer_bytes) +
             " bytes does not hold the smallest tiles";
    return false;
  }
  if (tiling.num_elements[kTarget] == 0) return true;
  ChooseTile(&tiling);
  CountTiles(&tiling);
  ShareOut(device.num_cores, &tiling);
  if (sums_nothing) {
    tiling.num_steps = 0;
  } else {
    for (int32_t input = 0; input < kNumInputs; ++input) {
      tiling.is_constant[input] = IsConstant(tiling, input) ? 1 : 0;
    }
  }
  plan->num_cores = std::min(device.num_cores, tiling.num_items);
  return true;
}

}  // namespace opserve::ascendc
