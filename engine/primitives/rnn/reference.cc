// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one sequence after the other, sums in double; states
// and gates are rounded to f32.
#include <algorithm>
#include <optional>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/rnn/implementations.h"

namespace tilewire::rnn {
namespace {

using States = std::vector<float>;

// An argument, with offsets that are cheap to compute; or none.
struct Tensor {
  Tensor(int arg, const MemoryDesc& desc) : arg(arg) {
    if (!desc.IsZero()) offsets.emplace(desc);
  }
  const int arg;
  std::optional<SeparableOffsets> offsets;
};

// Immutable.
struct Formula {
  explicit Formula(const RnnDesc& desc)
      : desc(desc),
        sizes(desc),
        src_layer(kArgSrc, desc.src_layer),
        src_iter(kArgSrcIter, desc.src_iter),
        src_iter_c(kArgSrcIterC, desc.src_iter_c),
        weights_layer(kArgWeights, desc.weights_layer),
        weights_iter(kArgWeightsIter, desc.weights_iter),
        peephole(kArgWeightsPeephole, desc.weights_peephole),
        bias(kArgBias, desc.bias),
        lengths(kArgSequenceLengths, desc.sequence_lengths),
        dst_layer(kArgDst, desc.dst_layer),
        dst_iter(kArgDstIter, desc.dst_iter),
        dst_iter_c(kArgDstIterC, desc.dst_iter_c) {}

  const RnnDesc desc;
  const RnnSizes sizes;
  const Tensor src_layer, src_iter, src_iter_c, weights_layer, weights_iter, peephole, bias,
      lengths, dst_layer, dst_iter, dst_iter_c;
};

// One direction of one sequence.
class Sequence {
 public:
  Sequence(const Formula& formula, const ReferencePiece& piece, int direction, int64_t n)
      : formula_(formula), piece_(piece), direction_(direction), n_(n) {}

  void Run() {
    const int64_t length = Length();
    state_ = Initial(formula_.src_iter);
    memory_ = Initial(formula_.src_iter_c);
    for (int64_t s = 0; s < length && !threading::Stopped(); ++s) {
      const int64_t t = RunsBack(formula_.desc, direction_) ? length - 1 - s : s;
      state_ = Next(t);
      for (int64_t j = 0; j < formula_.sizes.states; ++j) *Result(t, j) += state_[j];
    }
    Final(formula_.dst_iter, state_);
    Final(formula_.dst_iter_c, memory_);
  }

  // Where the state after step t goes, or is added.
  float* Result(int64_t t, int64_t j) const {
    const bool beside = formula_.desc.direction == RnnDirection::kBidirectionalConcat;
    const int64_t column = j + (beside ? direction_ * formula_.sizes.states : 0);
    return piece_.Get<float>(kArgDst) + formula_.dst_layer.offsets->Offset({t, n_, column});
  }

 private:
  int64_t Length() const {
    if (!formula_.lengths.offsets) return formula_.sizes.steps;
    return piece_.Get<const int32_t>(kArgSequenceLengths)[formula_.lengths.offsets->Offset({n_})];
  }

  States Initial(const Tensor& from) const {
    States states(formula_.sizes.states, 0.0f);
    if (!from.offsets) return states;
    for (int64_t j = 0; j < formula_.sizes.states; ++j)
      states[j] = piece_.Get<const float>(from.arg)[from.offsets->Offset({0, direction_, n_, j})];
    return states;
  }

  void Final(const Tensor& to, const States& states) const {
    if (!to.offsets) return;
    for (int64_t j = 0; j < formula_.sizes.states; ++j)
      piece_.Get<float>(to.arg)[to.offsets->Offset({0, direction_, n_, j})] = states[j];
  }

  States Next(int64_t t) {
    States next(state_.size()), update(state_.size()), reset(state_.size());
    const bool lstm = formula_.desc.cell == RnnCell::kLstm;
    const bool vanilla = formula_.desc.cell == RnnCell::kVanillaRnn;
    for (size_t j = 0; j < next.size() && !threading::Stopped(); ++j) {
      const int64_t unit = static_cast<int64_t>(j);
      if (lstm) next[j] = NextOfLstm(t, unit);
      if (vanilla) next[j] = Function(0, Layer(t, 0, unit) + Iter(state_, 0, unit));
      if (lstm || vanilla) continue;
      update[j] = Function(0, Layer(t, 0, unit) + Iter(state_, 0, unit));
      reset[j] = Function(0, Layer(t, 1, unit) + Iter(state_, 1, unit));
    }
    if (lstm) memory_ = next_memory_;
    if (lstm || vanilla) return next;
    return NextOfGru(t, update, reset);
  }

  float NextOfLstm(int64_t t, int64_t j) {
    const auto sum = [&](int gate) { return Layer(t, gate, j) + Iter(state_, gate, j); };
    next_memory_.resize(state_.size());
    const float memory = memory_[j];
    const float i = Function(0, sum(0) + Peephole(0, j, memory));
    const float f =
        formula_.desc.couples_gates ? 1 - i : Function(0, sum(1) + Peephole(1, j, memory));
    const float next = static_cast<float>(static_cast<double>(f) * memory +
                                          static_cast<double>(i) * Function(1, sum(2)));
    next_memory_[j] = next;
    return Function(0, sum(3) + Peephole(2, j, next)) *
           functions::EltwiseScalar(Activation(2), next);
  }

  States NextOfGru(int64_t t, const States& update, const States& reset) {
    const bool linear = formula_.desc.cell == RnnCell::kLbrGru;
    States kept(state_), next(state_);
    for (size_t j = 0; j < kept.size(); ++j) kept[j] *= reset[j];
    for (size_t j = 0; j < next.size() && !threading::Stopped(); ++j) {
      const int64_t unit = static_cast<int64_t>(j);
      const double from_state =
          linear ? reset[j] * (Iter(state_, 2, unit) + Bias(3, unit)) : Iter(kept, 2, unit);
      const float o = Function(1, Layer(t, 2, unit) + from_state);
      next[j] =
          static_cast<float>(static_cast<double>(update[j]) * state_[j] + (1.0 - update[j]) * o);
    }
    return next;
  }

  // The gate's function of its sum.
  float Function(int which, double x) const {
    const RnnDesc& desc = formula_.desc;
    float argument = static_cast<float>(x);
    if (desc.clip > 0) argument = std::clamp(argument, -desc.clip, desc.clip);
    return functions::EltwiseScalar(Activation(which), argument);
  }
  const RnnActivation& Activation(int which) const {
    const RnnDesc& desc = formula_.desc;
    return desc.activations[direction_ * functions::ActivationsOf(desc.cell) + which];
  }

  double Bias(int gate, int64_t j) const {
    if (!formula_.bias.offsets) return 0;
    return piece_.Get<const float>(
        kArgBias)[formula_.bias.offsets->Offset({0, direction_, gate, j})];
  }
  double Peephole(int gate, int64_t j, float memory) const {
    if (!formula_.peephole.offsets) return 0;
    return static_cast<double>(memory) *
           piece_.Get<const float>(
               kArgWeightsPeephole)[formula_.peephole.offsets->Offset({0, direction_, gate, j})];
  }

  // Input by weights and bias; state by weights.
  double Layer(int64_t t, int gate, int64_t j) const {
    const SeparableOffsets &src = *formula_.src_layer.offsets,
                           &weights = *formula_.weights_layer.offsets;
    const float* x = piece_.Get<const float>(kArgSrc) + src.Offset({t, n_, 0});
    const float* w =
        piece_.Get<const float>(kArgWeights) + weights.Offset({0, direction_, 0, gate, j});
    double sum = Bias(gate, j);
    ForEachOperation(formula_.sizes.inputs, [&](int64_t i) {
      sum += static_cast<double>(x[src.At(2, i)]) * w[weights.At(2, i)];
    });
    return sum;
  }
  double Iter(const States& state, int gate, int64_t j) const {
    const SeparableOffsets& weights = *formula_.weights_iter.offsets;
    const float* w =
        piece_.Get<const float>(kArgWeightsIter) + weights.Offset({0, direction_, 0, gate, j});
    double sum = 0;
    ForEachOperation(formula_.sizes.states, [&](int64_t i) {
      sum += static_cast<double>(state[i]) * w[weights.At(2, i)];
    });
    return sum;
  }

  const Formula& formula_;
  const ReferencePiece& piece_;
  const int direction_;
  const int64_t n_;
  States state_, memory_, next_memory_;  // h and c of rnn.h
};

void RunSequence(const Formula& formula, const ReferencePiece& piece, int64_t n) {
  const SeparableOffsets& dst = *formula.dst_layer.offsets;
  const int64_t columns = formula.desc.dst_layer.dim(2);
  for (int64_t t = 0; t < formula.sizes.steps && !threading::Stopped(); ++t) {
    float* row = piece.Get<float>(kArgDst) + dst.Offset({t, n, 0});
    for (int64_t column = 0; column < columns; ++column) row[dst.At(2, column)] = 0;
  }
  for (int d = 0; d < formula.sizes.directions; ++d) Sequence(formula, piece, d, n).Run();
}

}  // namespace

absl::StatusOr<RnnDesc> ResolveReference(const Request<RnnDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireInferenceF32(request.desc, request.attributes));
  RnnDesc resolved = request.desc;
  for (MemoryDesc* tensor :
       {&resolved.src_iter, &resolved.src_iter_c, &resolved.weights_layer, &resolved.weights_iter,
        &resolved.weights_peephole, &resolved.bias, &resolved.sequence_lengths, &resolved.dst_layer,
        &resolved.dst_iter, &resolved.dst_iter_c}) {
    if (tensor->IsZero()) continue;
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<RnnDesc>& request) {
  const RnnDesc& desc = request.desc;
  const auto compute = [formula = Formula(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { RunSequence(formula, piece, index[0]); });
  };
  const RnnSizes sizes(desc);
  const auto check = [desc](const ExecuteArgs& args, const threading::Team&) {
    return CheckLengths(desc, args);
  };
  return CreateReferencePrimitive(InfoOf(request),
                                  {.results = {sizes.sequences},
                                   .operations = {sizes.steps, sizes.directions * sizes.gates,
                                                  sizes.states, sizes.inputs + sizes.states},
                                   .check = check},
                                  compute);
}

}  // namespace tilewire::rnn
