// Group norm and its gradients.
//
// A row is one group of channels of one sample. It is read in pieces, and a channel's part of a
// piece is computed with that channel's numbers: spread over the positions they would take as much
// memory as the row. Gradients are summed up channel by channel, which serves the row's sums and
// those of gamma and beta, so that all is read twice at most.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <type_traits>

#include "kernels/cpu/call.h"
#include "kernels/cpu/registry.h"
#include "kernels/cpu/rows.h"

namespace opserve::kernels {
namespace {

// Elements that are read at a time; a row that is not longer is converted once.
constexpr int64_t kPiece = 4096;

// (N, C, ...) with the channels cut into groups.
struct Grouping {
  int64_t num_samples = 0;
  int64_t num_groups = 1;
  int64_t group_channels = 0;
  int64_t num_positions = 0;

  int64_t num_rows() const { return num_samples * num_groups; }
  int64_t num_columns() const { return group_channels * num_positions; }

  RowOperand Tensor(const TensorRef& tensor) const {
    if (!tensor.is_given()) return SplitAt(tensor, 0);
    const Layout& layout = tensor.layout;
    const int64_t stride = StrideOf(layout, 1);
    return {layout.dtype, tensor.address, 0,
            JoinGroups(GroupOf(layout, 0, 1), OneAxis(num_groups, stride * group_channels)),
            JoinGroups(OneAxis(group_channels, stride), GroupOf(layout, 2, layout.rank))};
  }
};

// A tensor with one number for each row, or each channel.
RowOperand Numbers(const TensorRef& tensor, double absent = 0) {
  return SplitAt(tensor, tensor.layout.rank, absent);
}

Grouping GroupingOf(const Call& call) {
  Grouping grouping;
  grouping.num_samples = IntAttribute(call, 0);
  grouping.num_groups = std::max<int64_t>(1, IntAttribute(call, 3));
  grouping.group_channels = IntAttribute(call, 1) / grouping.num_groups;
  grouping.num_positions = IntAttribute(call, 2);
  return grouping;
}

// Columns of one row.
struct Piece {
  int64_t row;
  int64_t column;
  int64_t count;
};

// Calls visit(piece) for pieces of a row: some whole channels, or a part of one.
template <typename Visit>
void ForEachPiece(const Grouping& grouping, int64_t row, const TaskRunner& runner, Visit visit) {
  const int64_t num_columns = grouping.num_columns();
  for (int64_t column = 0; column < num_columns && !runner.MustStop();) {
    const int64_t num_positions = grouping.num_positions;
    const int64_t whole = kPiece / num_positions * num_positions;
    const int64_t count = whole > 0 ? std::min(whole, num_columns - column)
                                    : std::min(kPiece, num_positions - column % num_positions);
    visit(Piece{row, column, count});
    column += count;
  }
}

// Calls visit(channel of the group, first element in the piece, count) for a piece's channels.
template <typename Visit>
void ForEachChannel(const Grouping& grouping, const Piece& piece, Visit visit) {
  int64_t channel = piece.column / grouping.num_positions;
  for (int64_t i = 0; i < piece.count; i += grouping.num_positions, ++channel) {
    visit(channel, i, std::min(grouping.num_positions, piece.count - i));
  }
}

// Gives out pieces of a tensor, where they lie or as a copy. Belongs to one task.
template <typename C>
class PieceReader {
 public:
  // `operand` outlives the reader.
  PieceReader(const RowOperand& operand, const void* const* inputs)
      : operand_(operand), address_(inputs[operand.address]) {}

  // Valid until the next call.
  const C* Read(const Piece& piece) {
    if (AreRuns<C>(operand_, piece.row, 1, piece.column, piece.count)) {
      return static_cast<const C*>(address_) + OffsetOf(operand_, piece.row, piece.column);
    }
    if (piece.row != held_.row || piece.column != held_.column) {
      LoadTile(operand_, address_, piece.row, 1, piece.column, piece.count, buffer_);
      held_ = piece;
    }
    return buffer_;
  }

 private:
  const RowOperand& operand_;
  const void* const address_;
  Piece held_ = {-1, -1, 0};
  alignas(64) C buffer_[kPiece];
};

// Takes pieces of the output. Belongs to one task.
template <typename C>
class PieceWriter {
 public:
  // `operand` outlives the writer.
  PieceWriter(const RowOperand& operand, void* const* outputs)
      : operand_(operand), address_(outputs[operand.address]) {}

  // Calls compute(elements) to put the piece's elements there, and writes them.
  template <typename Compute>
  void Write(const Piece& piece, Compute compute) {
    if (AreRuns<C>(operand_, piece.row, 1, piece.column, piece.count)) {
      compute(static_cast<C*>(address_) + OffsetOf(operand_, piece.row, piece.column));
      return;
    }
    compute(buffer_);
    StoreTile(operand_, buffer_, piece.row, 1, piece.column, piece.count, address_);
  }

 private:
  const RowOperand& operand_;
  void* const address_;
  alignas(64) C buffer_[kPiece];
};

// A kernel that runs Work<C>{plan, inputs, outputs, workspace}.Row(row, ...) in tasks of rows, and
// then Finish(). In float64 if an input is.
template <template <typename> typename Work, typename Plan>
std::unique_ptr<Kernel> MakeGroupKernel(const Call& call, const Plan& plan,
                                        size_t workspace_bytes) {
  bool is_double = false;
  for (const Tensors& tensors : call.inputs) {
    for (const Layout& layout : tensors) is_double |= layout.dtype == Dtype::kDouble;
  }
  const Grouping& grouping = plan.grouping;
  return MakePlannedKernel(
      grouping.num_rows() * grouping.num_columns(), workspace_bytes,
      [=](const void* const* inputs, void* const* outputs, void* workspace, TaskRunner& runner) {
        if (is_double) {
          Work<double>{plan, inputs, outputs, workspace}.Run(runner);
        } else {
          Work<float>{plan, inputs, outputs, workspace}.Run(runner);
        }
      });
}

struct NormPlan {
  Grouping grouping;
  RowOperand x, gamma, beta, out, mean, rstd;
  double eps = 0;
};

template <typename C>
struct NormRows {
  const NormPlan& plan;
  const void* const* inputs;
  void* const* outputs;
  void* workspace;

  void Run(TaskRunner& runner) const {
    const int64_t num_rows = plan.grouping.num_rows();
    const int64_t per_task = PiecesPerTask(plan.grouping.num_columns());
    RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
      PieceReader<C> x(plan.x, inputs);
      PieceWriter<C> out(plan.out, outputs);
      const int64_t end = std::min((task + 1) * per_task, num_rows);
      for (int64_t row = task * per_task; row < end; ++row) Normalize(row, runner, x, out);
    });
  }

  [[gnu::flatten]] void Normalize(int64_t row, const TaskRunner& runner, PieceReader<C>& reader,
                                  PieceWriter<C>& writer) const {
    const Grouping& grouping = plan.grouping;
    const auto count = static_cast<double>(grouping.num_columns());
    double sum = 0;
    ForEachPiece(grouping, row, runner, [&](const Piece& piece) {
      const C* x = reader.Read(piece);
      sum += SumOf<C>(piece.count, [&](auto at) { return at(x); });
    });
    const C mean = static_cast<C>(sum / count);
    double squares = 0;
    ForEachPiece(grouping, row, runner, [&](const Piece& piece) {
      const C* x = reader.Read(piece);
      squares += SumOf<C>(piece.count, [&](auto at) { return (at(x) - mean) * (at(x) - mean); });
    });
    const C rstd = static_cast<C>(1 / std::sqrt(squares / count + plan.eps));
    ForEachPiece(grouping, row, runner, [&](const Piece& piece) {
      const C* x = reader.Read(piece);
      writer.Write(piece, [&](C* __restrict out) {
        ForEachChannel(grouping, piece, [&](int64_t channel, int64_t begin, int64_t num) {
          channel += row % grouping.num_groups * grouping.group_channels;
          const C factor = rstd * LoadOfRow<C>(plan.gamma, inputs, channel);
          const C beta = LoadOfRow<C>(plan.beta, inputs, channel);
          for (int64_t i = begin; i < begin + num; ++i) out[i] = (x[i] - mean) * factor + beta;
        });
      });
    });
    if (plan.mean.address >= 0) StoreOfRow(mean, plan.mean, outputs, row);
    if (plan.rstd.address >= 0) StoreOfRow(rstd, plan.rstd, outputs, row);
  }
};

struct NormBackwardPlan {
  Grouping grouping;
  RowOperand grad, x, mean, rstd, gamma, grad_x, grad_gamma, grad_beta;
};

template <typename C>
struct NormBackwardRows {
  const NormBackwardPlan& plan;
  const void* const* inputs;
  void* const* outputs;
  void* workspace;

  // Sums over the positions of a channel of one sample.
  struct ChannelSums {
    double slopes;  // of the gradient times x - mean
    double grads;
  };

  void Run(TaskRunner& runner) const {
    const int64_t num_rows = plan.grouping.num_rows();
    const int64_t per_task = PiecesPerTask(plan.grouping.num_columns());
    RunTasks(runner, CeilDivide(num_rows, per_task), [&](int64_t task) {
      PieceReader<C> grad(plan.grad, inputs);
      PieceReader<C> x(plan.x, inputs);
      const int64_t end = std::min((task + 1) * per_task, num_rows);
      for (int64_t row = task * per_task; row < end; ++row) {
        SumUp(row, runner, grad, x);
        if (plan.grad_x.address >= 0) Compute(row, runner, grad, x);
      }
    });
    StoreChannels(runner);
  }

  ChannelSums* SumsOfRow(int64_t row) const {
    return static_cast<ChannelSums*>(workspace) + row * plan.grouping.group_channels;
  }

  [[gnu::flatten]] void SumUp(int64_t row, const TaskRunner& runner, PieceReader<C>& grads,
                              PieceReader<C>& xs) const {
    const Grouping& grouping = plan.grouping;
    const C mean = LoadOfRow<C>(plan.mean, inputs, row);
    ChannelSums* const sums = SumsOfRow(row);
    std::fill_n(sums, grouping.group_channels, ChannelSums{});
    ForEachPiece(grouping, row, runner, [&](const Piece& piece) {
      const C* all_grad = grads.Read(piece);
      const C* all_x = xs.Read(piece);
      ForEachChannel(grouping, piece, [&](int64_t channel, int64_t begin, int64_t num) {
        const C* grad = all_grad + begin;
        const C* x = all_x + begin;
        const auto both = SumsOf<C, 2>(num, [&](auto at) {
          return std::array{at(grad) * (at(x) - mean), at(grad)};
        });
        sums[channel].slopes += both[0];
        sums[channel].grads += both[1];
      });
    });
  }

  void Compute(int64_t row, const TaskRunner& runner, PieceReader<C>& grads,
               PieceReader<C>& xs) const {
    const Grouping& grouping = plan.grouping;
    const int64_t first_channel = row % grouping.num_groups * grouping.group_channels;
    const ChannelSums* const sums = SumsOfRow(row);
    ChannelSums all = {};
    for (int64_t i = 0; i < grouping.group_channels; ++i) {
      const double gamma = LoadOfRow<C>(plan.gamma, inputs, first_channel + i);
      all.slopes += gamma * sums[i].slopes;
      all.grads += gamma * sums[i].grads;
    }
    const auto count = static_cast<double>(grouping.num_columns());
    const C mean = LoadOfRow<C>(plan.mean, inputs, row);
    const C rstd = LoadOfRow<C>(plan.rstd, inputs, row);
    const double wide_rstd = rstd;
    const C slope = static_cast<C>(all.slopes / count * wide_rstd * wide_rstd * wide_rstd);
    const C mean_grad = static_cast<C>(all.grads / count * wide_rstd);
    PieceWriter<C> writer(plan.grad_x, outputs);
    ForEachPiece(grouping, row, runner, [&](const Piece& piece) {
      const C* grad = grads.Read(piece);
      const C* x = xs.Read(piece);
      writer.Write(piece, [&](C* __restrict out) {
        ForEachChannel(grouping, piece, [&](int64_t channel, int64_t begin, int64_t num) {
          const C factor = rstd * LoadOfRow<C>(plan.gamma, inputs, first_channel + channel);
          for (int64_t i = begin; i < begin + num; ++i) {
            out[i] = grad[i] * factor - ((x[i] - mean) * slope + mean_grad);
          }
        });
      });
    });
  }

  // The gradients of gamma and beta: sums over the samples.
  void StoreChannels(TaskRunner& runner) const {
    if (plan.grad_gamma.address < 0 && plan.grad_beta.address < 0) return;
    const Grouping& grouping = plan.grouping;
    const int64_t num_channels = grouping.num_groups * grouping.group_channels;
    const int64_t per_task = PiecesPerTask(grouping.num_samples);
    RunTasks(runner, CeilDivide(num_channels, per_task), [&](int64_t task) {
      const int64_t end = std::min((task + 1) * per_task, num_channels);
      for (int64_t channel = task * per_task; channel < end; ++channel) {
        ChannelSums all = {};
        for (int64_t sample = 0; sample < grouping.num_samples; ++sample) {
          const int64_t row = sample * grouping.num_groups + channel / grouping.group_channels;
          const ChannelSums& sums = SumsOfRow(row)[channel % grouping.group_channels];
          all.slopes += sums.slopes * LoadOfRow<C>(plan.rstd, inputs, row);
          all.grads += sums.grads;
        }
        if (plan.grad_gamma.address >= 0) {
          StoreOfRow(static_cast<C>(all.slopes), plan.grad_gamma, outputs, channel);
        }
        if (plan.grad_beta.address >= 0) {
          StoreOfRow(static_cast<C>(all.grads), plan.grad_beta, outputs, channel);
        }
      }
    });
  }
};

std::unique_ptr<Kernel> MakeGroupNorm(const Call& call) {
  NormPlan plan;
  plan.grouping = GroupingOf(call);
  plan.eps = RealAttribute(call, 4);
  plan.x = plan.grouping.Tensor(InputRef(call, 0));
  plan.gamma = Numbers(InputRef(call, 1), 1);
  plan.beta = Numbers(InputRef(call, 2), 0);
  plan.out = plan.grouping.Tensor(OutputRef(call, 0));
  plan.mean = Numbers(OutputRef(call, 1));
  plan.rstd = Numbers(OutputRef(call, 2));
  return MakeGroupKernel<NormRows>(call, plan, 0);
}

std::unique_ptr<Kernel> MakeGroupNormBackward(const Call& call) {
  NormBackwardPlan plan;
  plan.grouping = GroupingOf(call);
  plan.grad = plan.grouping.Tensor(InputRef(call, 0));
  plan.x = plan.grouping.Tensor(InputRef(call, 1));
  plan.mean = Numbers(InputRef(call, 2));
  plan.rstd = Numbers(InputRef(call, 3));
  plan.gamma = Numbers(InputRef(call, 4), 1);
  plan.grad_x = plan.grouping.Tensor(OutputRef(call, 0));
  plan.grad_gamma = Numbers(OutputRef(call, 1));
  plan.grad_beta = Numbers(OutputRef(call, 2));
  const int64_t num_sums = plan.grouping.num_rows() * plan.grouping.group_channels;
  return MakeGroupKernel<NormBackwardRows>(
      call, plan, static_cast<size_t>(num_sums) * sizeof(NormBackwardRows<double>::ChannelSums));
}

}  // namespace

std::span<const KernelEntry> GroupNormKernels() {
  static constexpr KernelEntry kEntries[] = {
      {"aclnnGroupNorm", &MakeGroupNorm},
      {"aclnnGroupNormBackward", &MakeGroupNormBackward},
  };
  return kEntries;
}

}  // namespace opserve::kernels
