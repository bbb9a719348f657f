// SPDX-License-Identifier: Apache-2.0
//
// Rows are gathered from the source as [pixels, channels].
#include "engine/onnx/ops/sampling/sampler.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

// The element that a place reads along one dimension, and how much it counts.
struct Tap {
  Operand index, weight;
};

// Appends the operations of one sampling.
class Sampler {
 public:
  Sampler(NodeContext& context, const Operand& src, const Sampling& args)
      : context_(context), src_(src), args_(args) {}

  // The taps around places along a dimension of `size` elements.
  absl::StatusOr<std::vector<Tap>> Taps(const Operand& places, int64_t size) {
    ABSL_ASSIGN_OR_RETURN(const Operand at, Finite(places, size));
    if (args_.mode == "nearest") {
      ABSL_ASSIGN_OR_RETURN(const Operand nearest, Of(Function::kRound, {at}));
      ABSL_ASSIGN_OR_RETURN(const Tap tap, Inside(nearest, std::nullopt, size));
      return std::vector<Tap>{tap};
    }
    ABSL_ASSIGN_OR_RETURN(const Operand before, Of(Function::kFloor, {at}));
    ABSL_ASSIGN_OR_RETURN(const Operand share, Of(Function::kSub, {at, before}));
    const bool is_cubic = args_.mode == "cubic";
    // Polynomials in the share t: coefficients of t^3, t^2, t and 1. Cubic: Keys' kernel with
    // -0.75.
    static constexpr float kCubic[4][4] = {{-0.75f, 1.5f, -0.75f, 0},
                                           {1.25f, -2.25f, 0, 1},
                                           {-1.25f, 1.5f, 0.75f, 0},
                                           {0.75f, -0.75f, 0, 0}};
    static constexpr float kLinear[2][4] = {{0, 0, -1, 1}, {0, 0, 1, 0}};
    std::vector<Tap> taps;
    for (int t = 0; t < (is_cubic ? 4 : 2); ++t) {
      ABSL_ASSIGN_OR_RETURN(const Operand index, Linear(before, 1, t - (is_cubic ? 1 : 0)));
      ABSL_ASSIGN_OR_RETURN(const Operand weight,
                            Polynomial(share, is_cubic ? kCubic[t] : kLinear[t]));
      ABSL_ASSIGN_OR_RETURN(taps.emplace_back(), Inside(index, weight, size));
    }
    return taps;
  }

  // The sum over all pairs of taps, as [N, H, W, C].
  absl::StatusOr<Operand> Sum(const std::vector<Tap>& rows, const std::vector<Tap>& columns) {
    const Dims& src = src_.dims;
    const Dims places = rows[0].index.dims;
    ABSL_ASSIGN_OR_RETURN(const Operand turned, TurnedOf(context_, src_, {0, 2, 3, 1}, Next()));
    ABSL_ASSIGN_OR_RETURN(const Operand pixels,
                          ReshapeOf(context_, turned, {src[0] * src[2] * src[3], src[1]}, Next()));
    std::vector<float> images;
    for (int64_t n = 0; n < src[0]; ++n) images.push_back(static_cast<float>(n * src[2] * src[3]));
    const Operand first = context_.KnownFloats(Next(), {src[0], 1, 1}, std::move(images));
    Operand sum;
    for (const Tap& row : rows) {
      ABSL_ASSIGN_OR_RETURN(const Operand line, Linear(row.index, static_cast<float>(src[3]), 0));
      ABSL_ASSIGN_OR_RETURN(const Operand start, Of(Function::kAdd, {line, first}));
      for (const Tap& column : columns) {
        ABSL_ASSIGN_OR_RETURN(const Operand at, Of(Function::kAdd, {start, column.index}));
        ABSL_ASSIGN_OR_RETURN(Operand taken, GatherOf(context_, pixels, at, 0, Next()));
        if (row.weight.defined()) {
          ABSL_ASSIGN_OR_RETURN(Operand weight, Of(Function::kMul, {row.weight, column.weight}));
          ABSL_ASSIGN_OR_RETURN(
              weight, ReshapeOf(context_, weight, {places[0], places[1], places[2], 1}, Next()));
          ABSL_ASSIGN_OR_RETURN(taken, Of(Function::kMul, {taken, weight}));
        }
        ABSL_ASSIGN_OR_RETURN(
            sum, sum.defined() ? Of(Function::kAdd, {sum, taken}) : absl::StatusOr<Operand>(taken));
      }
    }
    return sum;
  }

 private:
  std::string Next() { return absl::StrCat("/sample", ++steps_); }
  absl::StatusOr<Operand> Of(Function function, const std::vector<Operand>& operands) {
    return ElementwiseOf(context_, {function}, operands, Next());
  }
  absl::StatusOr<Operand> Linear(const Operand& src, float scale, float shift) {
    return LinearOf(context_, src, scale, shift, Next());
  }
  Operand Number(float number) { return context_.KnownFloat(Next(), number); }
  absl::StatusOr<Operand> Clamped(const Operand& src, float low, float high) {
    ABSL_ASSIGN_OR_RETURN(const Operand above, Of(Function::kMax, {src, Number(low)}));
    return Of(Function::kMin, {above, Number(high)});
  }

  absl::StatusOr<Operand> Polynomial(const Operand& t, const float coefficients[4]) {
    Operand result;
    for (int i = 0; i < 3; ++i) {
      if (!result.defined() && coefficients[i] == 0) continue;
      if (!result.defined()) {
        ABSL_ASSIGN_OR_RETURN(result, Linear(t, coefficients[i], coefficients[i + 1]));
        continue;
      }
      ABSL_ASSIGN_OR_RETURN(result, Of(Function::kMul, {result, t}));
      ABSL_ASSIGN_OR_RETURN(result, Linear(result, 1, coefficients[i + 1]));
    }
    return result;
  }

  // No place is NaN or infinite, as those of a projection may be: what is far away stays as far as
  // no tap reaches, and NaN is there too where zeros are around, else at element 0, as in PyTorch.
  absl::StatusOr<Operand> Finite(const Operand& at, int64_t size) {
    const float far = args_.padding == "reflection" ? 1e9f : 8;
    ABSL_ASSIGN_OR_RETURN(const Operand is_number, Of(Function::kEqual, {at, at}));
    ABSL_ASSIGN_OR_RETURN(const ValueId truth, context_.Numbers(is_number));
    const Operand otherwise = Number(args_.padding == "zeros" ? -far : 0);
    ABSL_ASSIGN_OR_RETURN(
        const Operand number,
        Of(Function::kWhere, {Operand{nullptr, truth, is_number.dims}, at, otherwise}));
    return Clamped(number, -far, static_cast<float>(size) + far);
  }

  // Mirrored at the edges as often as it takes.
  absl::StatusOr<Operand> Mirrored(const Operand& index, int64_t size) {
    const float low = args_.aligns_corners ? 0 : -0.5f;
    const float span = static_cast<float>(args_.aligns_corners ? size - 1 : size);
    if (span == 0) return index;
    ABSL_ASSIGN_OR_RETURN(const Operand from_low, Linear(index, 1, -low));
    ABSL_ASSIGN_OR_RETURN(const Operand distance, Of(Function::kAbs, {from_low}));
    ABSL_ASSIGN_OR_RETURN(const Operand rest, Of(Function::kMod, {distance, Number(2 * span)}));
    ABSL_ASSIGN_OR_RETURN(const Operand from_span, Linear(rest, 1, -span));
    ABSL_ASSIGN_OR_RETURN(const Operand back, Of(Function::kAbs, {from_span}));
    return Linear(back, -1, span + low);
  }

  // An element that is there in the place of `index`; with zeros around, its weight is 0 where
  // `index` is outside.
  absl::StatusOr<Tap> Inside(const Operand& index, std::optional<Operand> weight, int64_t size) {
    const float last = static_cast<float>(size - 1);
    Tap tap;
    if (weight) tap.weight = *weight;
    Operand at = index;
    if (args_.padding == "reflection") {
      ABSL_ASSIGN_OR_RETURN(at, Mirrored(index, size));
    }
    ABSL_ASSIGN_OR_RETURN(tap.index, Clamped(at, 0, last));
    if (args_.padding != "zeros") return tap;
    ABSL_ASSIGN_OR_RETURN(const Operand inside, Of(Function::kEqual, {tap.index, index}));
    ABSL_ASSIGN_OR_RETURN(const ValueId truth, context_.Numbers(inside));
    const Operand share = {nullptr, truth, inside.dims};
    ABSL_ASSIGN_OR_RETURN(
        tap.weight, weight ? Of(Function::kMul, {*weight, share}) : absl::StatusOr<Operand>(share));
    return tap;
  }

  NodeContext& context_;
  const Operand src_;
  const Sampling args_;
  int steps_ = 0;
};

}  // namespace

absl::StatusOr<Operand> SampleOf(NodeContext& context, const Operand& src, const Operand& rows,
                                 const Operand& columns, const Sampling& sampling,
                                 absl::string_view suffix) {
  ABSL_RETURN_IF_ERROR(CheckCountable(context.node, src.dims[0] * src.dims[2] * src.dims[3]));
  Sampler sampler(context, src, sampling);
  ABSL_ASSIGN_OR_RETURN(const std::vector<Tap> across, sampler.Taps(columns, src.dims[3]));
  ABSL_ASSIGN_OR_RETURN(const std::vector<Tap> down, sampler.Taps(rows, src.dims[2]));
  ABSL_ASSIGN_OR_RETURN(const Operand sum, sampler.Sum(down, across));
  return TurnedOf(context, sum, {0, 3, 1, 2}, suffix);
}

}  // namespace tilewire::reader
