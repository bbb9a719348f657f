// SPDX-License-Identifier: Apache-2.0
//
// How models normalise images that come as bytes: they are made real numbers, of which a mean is
// subtracted and which are divided by a deviation, for each channel, or by 255. All of that is one
// scale and one shift per channel, which are computed in double and rounded once. The result is off
// by a rounding of each of the two, of the product and of the sum, where the steps round too.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// x * scale + shift, one of each or one per index of `axis`.
struct ScaleShift {
  int axis = 0;
  std::vector<double> scale, shift;
};

// The scaling of bytes so far: `axis` is a dimension of theirs, and dimension d of the latest value
// is dimension order[d] of the bytes.
struct Scaling {
  ScaleShift total{0, {1}, {0}};
  std::vector<int> order;
};

// The dimension of `dims` along which a tensor that is broadcast to it has elements; nullopt where
// there are several.
std::optional<int> AxisOf(const Dims& constant, const Dims& dims) {
  if (constant.size() > dims.size()) return std::nullopt;
  std::optional<int> axis;
  for (size_t i = 0; i < constant.size(); ++i) {
    const size_t d = dims.size() - constant.size() + i;
    if (constant[i] == 1) continue;
    if (axis || constant[i] != dims[d]) return std::nullopt;
    axis = static_cast<int>(d);
  }
  return axis.value_or(0);
}

// {scale, shift} of x `function` c, or of c `function` x if `reversed`; nullopt where that is not
// linear in x.
std::optional<std::pair<double, double>> LinearIn(Function function, double c, bool reversed) {
  switch (function) {
    case Function::kAdd:
      return std::pair(1.0, c);
    case Function::kSub:
      return reversed ? std::pair(-1.0, c) : std::pair(1.0, -c);
    case Function::kMul:
      return std::pair(c, 0.0);
    case Function::kDiv:
      if (reversed) return std::nullopt;
      return std::pair(1 / c, 0.0);
    default:
      return std::nullopt;
  }
}

std::optional<ScaleShift> OfElementwise(Editor& editor, int op, ValueId value) {
  const Elementwise* function = editor.As<Elementwise>(op);
  const std::vector<ValueId>& srcs = editor.operation(op).srcs;
  if (function == nullptr || srcs.size() != 2) return std::nullopt;
  const bool reversed = srcs[1] == value;
  const Literal* literal = editor.As<Literal>(editor.producer(srcs[reversed ? 0 : 1]));
  if (literal == nullptr || editor.dims(editor.operation(op).dst) != editor.dims(value))
    return std::nullopt;
  const Constant& constant = *literal->constant;
  const std::optional<int> axis = AxisOf(constant.dims, editor.dims(value));
  if (!axis || static_cast<int64_t>(constant.floats.size()) != constant.count())
    return std::nullopt;
  ScaleShift result{*axis, {}, {}};
  for (const float c : constant.floats) {
    const auto linear = LinearIn(function->function, c, reversed);
    if (!linear) return std::nullopt;
    result.scale.push_back(linear->first);
    result.shift.push_back(linear->second);
  }
  return result;
}

// A convolution of one tap per channel, with nothing after it.
std::optional<ScaleShift> OfConvolution(Editor& editor, int op) {
  const Convolution* convolution = editor.As<Convolution>(op);
  if (convolution == nullptr) return std::nullopt;
  const Dims& dims = editor.dims(editor.operation(op).dst);
  const Weights& weights = convolution->weights;
  const auto channels = static_cast<size_t>(dims[1]);
  const bool in_place = dims == editor.dims(editor.operation(op).srcs[0]) &&
                        convolution->strides == Dims(dims.size() - 2, 1);
  if (!in_place || convolution->groups != dims[1] || weights.data.size() != channels ||
      convolution->bias.size() != channels || !weights.scale.empty() ||
      !convolution->fused.empty()) {
    return std::nullopt;
  }
  return ScaleShift{1,
                    {weights.data.begin(), weights.data.end()},
                    {convolution->bias.begin(), convolution->bias.end()}};
}

std::optional<ScaleShift> ScaleShiftOf(Editor& editor, int op, ValueId value) {
  const Activation* linear = editor.As<Activation>(op);
  if (linear != nullptr && linear->op.function == EltwiseAlgorithm::kLinear)
    return ScaleShift{0, {linear->op.alpha}, {linear->op.beta}};
  std::optional<ScaleShift> result = OfElementwise(editor, op, value);
  return result ? result : OfConvolution(editor, op);
}

// Whether `next` could follow: one per index of another axis could not.
bool Append(const ScaleShift& next, Scaling* scaling) {
  ScaleShift& total = scaling->total;
  const int axis = scaling->order[next.axis];
  if (next.scale.size() > 1 && total.scale.size() > 1 && axis != total.axis) return false;
  if (next.scale.size() > total.scale.size()) {
    total.axis = axis;
    total.scale.resize(next.scale.size(), total.scale[0]);
    total.shift.resize(next.scale.size(), total.shift[0]);
  }
  for (size_t i = 0; i < total.scale.size(); ++i) {
    const size_t n = next.scale.size() == 1 ? 0 : i;
    total.scale[i] *= next.scale[n];
    total.shift[i] = total.shift[i] * next.scale[n] + next.shift[n];
  }
  return true;
}

// Whether f32 holds it well, and the scales are positive.
bool IsUsable(const ScaleShift& total) {
  for (size_t i = 0; i < total.scale.size(); ++i) {
    if (!IsOrdinary(static_cast<float>(total.scale[i])) || !(std::abs(total.shift[i]) <= 1e12))
      return false;
  }
  return true;
}

// The operation that alone reads the value; kNone if there is none.
int SoleReader(Editor& editor, ValueId value) {
  for (int i = 0; editor.use_count(value) == 1 && i < editor.size(); ++i) {
    const std::vector<ValueId>& srcs = editor.operation(i).srcs;
    if (!editor.removed(i) && std::find(srcs.begin(), srcs.end(), value) != srcs.end()) return i;
  }
  return Editor::kNone;
}

bool TakesBytesAsTheyAre(Editor& editor, int op) {
  const Dequantize* dequantize = editor.As<Dequantize>(op);
  return dequantize != nullptr && dequantize->params == std::vector<QuantizationParams>(1) &&
         IsByte(editor.network().values[editor.operation(op).srcs[0]].type);
}

void FuseFrom(Editor& editor, int first) {
  if (!TakesBytesAsTheyAre(editor, first)) return;
  ValueId value = editor.operation(first).dst;
  Scaling scaling;
  scaling.order.resize(editor.dims(value).size());
  std::iota(scaling.order.begin(), scaling.order.end(), 0);
  std::vector<std::pair<int, ValueId>> chain;  // operations and what they read of it
  std::optional<ScaleShift> usable;
  size_t taken = 0;  // of the chain, by `usable`
  for (int op; (op = SoleReader(editor, value)) != Editor::kNone;) {
    if (const Transpose* transpose = editor.As<Transpose>(op)) {
      std::vector<int> order;
      for (const int d : transpose->order) order.push_back(scaling.order[d]);
      scaling.order = std::move(order);
    } else {
      const std::optional<ScaleShift> next = ScaleShiftOf(editor, op, value);
      if (!next || !Append(*next, &scaling)) break;
      chain.emplace_back(op, value);
      if (IsUsable(scaling.total)) {
        usable = scaling.total;
        taken = chain.size();
      }
    }
    value = editor.operation(op).dst;
  }
  if (!usable) return;
  for (size_t i = taken; i-- > 0;) {
    editor.ReplaceUses(editor.operation(chain[i].first).dst, chain[i].second);
    editor.Remove(chain[i].first);
  }
  editor.operation(first).params = ScaleBytes{usable->axis,
                                              {usable->scale.begin(), usable->scale.end()},
                                              {usable->shift.begin(), usable->shift.end()}};
}

}  // namespace

void FuseImageScaling(Network* network) { ForEachOperation(network, FuseFrom); }

}  // namespace tilewire::network
