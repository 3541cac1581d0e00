// Rules for the shapes of tensors that windows slide over.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ops/catalog/rule_tables.h"
#include "ops/catalog/rules.h"

namespace opserve::catalog {
namespace {

using Arguments = absl::Span<const Expression>;

// Numbers of a list for `axes` axes: one for each, or one for all.
bool PerAxis(Judge& judge, const Expression& at, size_t axes, std::vector<int64_t>* numbers) {
  if (!judge.NumbersOf(at, numbers)) return false;
  if (numbers->size() == 1) numbers->assign(axes, numbers->front());
  if (numbers->size() == axes) return true;
  return judge.Fail(at, absl::StrCat("has ", numbers->size(), " entries; there must be ", axes));
}

// pool2d(a, kernel, stride, padding[, dilation], ceil_mode): the last axes, as many as kernel has
// entries, become the windows' positions. An empty stride is the kernel. Up to half a kernel of
// padding.
bool Pool2d(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> kernel;
  std::vector<int64_t> stride;
  std::vector<int64_t> padding;
  std::vector<int64_t> dilation;
  int64_t ceil = 0;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumbersOf(arguments[1], &kernel)) return false;
  // At least two spatial axes: a kernel of one entry stands for a square.
  const size_t axes = std::max<size_t>(kernel.size(), 2);
  if (kernel.size() == 1) kernel.assign(axes, kernel.front());
  if (result->size() != axes + 1 && result->size() != axes + 2) {
    return judge.Fail(arguments[0],
                      absl::StrCat("rank ", result->size(), " of shape ", ShapeText(*result),
                                   "; it must be ", axes + 1, " or ", axes + 2));
  }
  if (!judge.NumbersOf(arguments[2], &stride)) return false;
  if (stride.empty()) {
    stride = kernel;
  } else if (!PerAxis(judge, arguments[2], axes, &stride)) {
    return false;
  }
  if (!PerAxis(judge, arguments[3], axes, &padding) || !judge.NumberOf(arguments.back(), &ceil)) {
    return false;
  }
  dilation.assign(axes, 1);
  if (arguments.size() > 5 && !PerAxis(judge, arguments[4], axes, &dilation)) return false;
  for (size_t i = 0; i < axes; ++i) {
    // Kernel and dilation up to 2^24, so that their product below stays far within int64.
    if (kernel[i] < 1 || stride[i] < 1 || dilation[i] < 1 || kernel[i] > (1 << 24) ||
        dilation[i] > (1 << 24)) {
      return judge.Fail(arguments[1], "kernel, stride and dilation must be above 0");
    }
    if (padding[i] < 0 || padding[i] > kernel[i] / 2) {
      return judge.Fail(arguments[3], absl::StrCat(padding[i], " is outside [0, ", kernel[i] / 2,
                                                   "], half the kernel"));
    }
    int64_t& extent = (*result)[result->size() - axes + i];
    const int64_t size = extent;
    const int64_t room = size + 2 * padding[i] - dilation[i] * (kernel[i] - 1) - 1;
    if (room < 0) {
      return judge.Fail(arguments[0],
                        absl::StrCat("shape ", ShapeText(*result), " is smaller than the window"));
    }
    // Rounded up without a sum, which a stride near the largest number would make overflow.
    extent = room / stride[i] + 1 + (ceil != 0 && room % stride[i] != 0 ? 1 : 0);
    // A window must not begin behind the padded input.
    if (ceil != 0 && (extent - 1) * stride[i] >= size + padding[i]) --extent;
  }
  return true;
}

// conv(input, weight, stride, padding, dilation, transposed, output_padding, groups)
bool Conv(Judge& judge, Arguments arguments, Shape* result) {
  Shape input;
  Shape weight;
  std::vector<int64_t> lists[4];  // stride, padding, dilation, output padding
  int64_t transposed = 0;
  int64_t groups = 1;
  if (!judge.ShapeOf(arguments[0], &input) || !judge.ShapeOf(arguments[1], &weight)) return false;
  if (input.size() < 3 || input.size() > 5) {
    return judge.Fail(arguments[0], absl::StrCat("rank ", input.size(), " of shape ",
                                                 ShapeText(input), "; it must be from 3 to 5"));
  }
  if (weight.size() != input.size()) {
    return judge.Fail(arguments[1], absl::StrCat("rank ", weight.size(), " of shape ",
                                                 ShapeText(weight), "; it must be ", input.size()));
  }
  // Far more than fits in memory, and products of two of them fit int64.
  constexpr int64_t kMostExtent = int64_t{1} << 40;
  constexpr int64_t kMostNumber = int64_t{1} << 20;
  for (size_t i = 0; i < 2; ++i) {
    for (const int64_t extent : i == 0 ? input : weight) {
      if (extent <= kMostExtent && (i == 0 || extent > 0)) continue;
      return judge.Fail(arguments[i], absl::StrCat("extent ", extent, " is outside [", i, ", ",
                                                   kMostExtent, "]"));
    }
  }
  const size_t axes = input.size() - 2;
  static constexpr size_t kLists[] = {2, 3, 4, 6};
  for (size_t i = 0; i < 4; ++i) {
    if (!PerAxis(judge, arguments[kLists[i]], axes, &lists[i])) return false;
    for (const int64_t number : lists[i]) {
      const bool may_be_zero = i == 1 || i == 3;
      if (number < (may_be_zero ? 0 : 1) || number > kMostNumber) {
        return judge.Fail(
            arguments[kLists[i]],
            absl::StrCat(number, " is outside [", may_be_zero ? 0 : 1, ", ", kMostNumber, "]"));
      }
    }
  }
  if (!judge.NumberOf(arguments[5], &transposed) || !judge.NumberOf(arguments[7], &groups))
    return false;
  if (groups < 1 || groups > kMostNumber) {
    return judge.Fail(arguments[7], absl::StrCat(groups, " is outside [1, ", kMostNumber, "]"));
  }
  // Transposed, the weight's first axis is the input's channels; else its second is those of one
  // group.
  const int64_t channels = transposed != 0 ? weight[0] : weight[1] * groups;
  if (input[1] != channels || weight[0] % groups != 0) {
    return judge.Fail(arguments[0], absl::StrCat("shape ", ShapeText(input), " has ", input[1],
                                                 " channels; weight ", ShapeText(weight), " with ",
                                                 groups, " groups takes ", channels));
  }
  *result = {input[0], transposed != 0 ? weight[1] * groups : weight[0]};
  // Of the wider images, with their padding and the room windows need beyond it.
  Shape padded = {input[0], std::max(input[1], (*result)[1])};
  for (size_t i = 0; i < axes; ++i) {
    const int64_t taps = lists[2][i] * (weight[2 + i] - 1) + 1;
    const int64_t size = input[2 + i];
    const int64_t extent = transposed != 0
                               ? (size - 1) * lists[0][i] - 2 * lists[1][i] + taps + lists[3][i]
                               : (size + 2 * lists[1][i] - taps) / lists[0][i] + 1;
    if ((transposed == 0 && size + 2 * lists[1][i] < taps) || extent < 0) {
      return judge.Fail(arguments[0],
                        absl::StrCat("shape ", ShapeText(input),
                                     " is smaller than the window of weight ", ShapeText(weight)));
    }
    result->push_back(extent);
    padded.push_back(std::max(size, extent) + 2 * lists[1][i] + lists[0][i] + taps);
  }
  if (CountElements(padded) > INT64_MAX / 8) {
    return judge.Fail(arguments[0], absl::StrCat("shape ", ShapeText(input),
                                                 " with padding takes 2^63 ", "bytes or more"));
  }
  return true;
}

// upsample2d(a, sizes): the last axes get these extents, where `a` has elements along them.
bool Upsample2d(Judge& judge, Arguments arguments, Shape* result) {
  std::vector<int64_t> sizes;
  if (!judge.ShapeOf(arguments[0], result) || !judge.NumbersOf(arguments[1], &sizes)) return false;
  if (sizes.size() + 1 > result->size()) {
    return judge.Fail(arguments[1], absl::StrCat("has ", sizes.size(), " entries for shape ",
                                                 ShapeText(*result)));
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& extent = (*result)[result->size() - sizes.size() + i];
    if (sizes[i] < 1) return judge.Fail(arguments[1], absl::StrCat(sizes[i], " must be above 0"));
    if (extent < 1) {
      return judge.Fail(arguments[0], absl::StrCat("shape ", ShapeText(*result),
                                                   " has an empty axis that is to be resized"));
    }
    extent = sizes[i];
  }
  return true;
}

}  // namespace

absl::Span<const NamedRule<ShapeRule>> WindowRules() {
  static constexpr NamedRule<ShapeRule> kRules[] = {
      {"pool2d", Pool2d, 5},
      {"conv", Conv, 8},
      {"upsample2d", Upsample2d, 2},
  };
  return kRules;
}

}  // namespace opserve::catalog
