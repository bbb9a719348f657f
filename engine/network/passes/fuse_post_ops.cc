// SPDX-License-Identifier: Apache-2.0
//
// A fused operation takes the place of the last one of its chain. So the addend of a sum is always
// there: it was computed before the sum, and it cannot depend on the other source, whose only use
// is the sum.
#include <algorithm>
#include <cmath>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

constexpr size_t kLongestChain = 4;  // PostOps::kCapacity of the primitives

// The operation that computes `value`, if it can take one more step; kNone otherwise.
int Absorber(Editor& editor, ValueId value, bool for_sum) {
  const int op = editor.producer(value);
  if (op == Editor::kNone || editor.use_count(value) != 1) return Editor::kNone;
  const std::vector<FusedStep>* steps = FusedSteps(std::as_const(editor.operation(op)));
  if (steps == nullptr || steps->size() >= kLongestChain || (for_sum && HasSum(*steps)))
    return Editor::kNone;
  if (for_sum && editor.As<DynamicInnerProduct>(op) != nullptr) return Editor::kNone;
  return op;
}

void Absorb(Editor& editor, int into, int op, const FusedStep& step) {
  Operation fused = editor.operation(into);
  FusedSteps(fused)->push_back(step);
  fused.dst = editor.operation(op).dst;
  editor.Replace(op, std::move(fused), into);
}

// A function of single elements can equally run before a reshape.
void TryActivation(Editor& editor, int op, const Activation& activation) {
  const FusedStep step = {FusedStep::Kind::kActivation, activation.op, kNoValue};
  const ValueId src = editor.operation(op).srcs[0];
  const int into = Absorber(editor, src, /*for_sum=*/false);
  if (into != Editor::kNone) return Absorb(editor, into, op, step);
  const int reshape = editor.producer(src);
  if (editor.As<Reshape>(reshape) == nullptr || editor.use_count(src) != 1) return;
  const int behind = Absorber(editor, editor.operation(reshape).srcs[0], /*for_sum=*/false);
  if (behind == Editor::kNone) return;
  FusedSteps(editor.operation(behind))->push_back(step);
  editor.ReplaceUses(editor.operation(op).dst, src);
  editor.Remove(op);
}

// The numbers per channel that PRelu multiplies by, which follow each other along dimension 1
// alone; none if the slope is something else.
std::vector<float> SlopesOfChannels(Editor& editor, ValueId slope, const Dims& dims) {
  const Literal* literal = editor.As<Literal>(editor.producer(slope));
  if (literal == nullptr || dims.size() < 2) return {};
  const Constant& constant = *literal->constant;
  const size_t rank = constant.dims.size(), from_end = dims.size() - 1;
  if (rank < from_end || rank > dims.size() || constant.count() != dims[1]) return {};
  if (constant.dims[rank - from_end] != dims[1]) return {};
  const bool fits = static_cast<int64_t>(constant.floats.size()) == dims[1] &&
                    std::all_of(constant.floats.begin(), constant.floats.end(),
                                [](float number) { return std::isfinite(number); });
  if (!fits) return {};
  return {constant.floats.begin(), constant.floats.end()};
}

// Only convolutions of f32 have primitives that take it.
void TryPRelu(Editor& editor, int op) {
  const std::vector<ValueId> srcs = editor.operation(op).srcs;
  const Dims& dims = editor.dims(srcs[0]);
  const int into = Absorber(editor, srcs[0], /*for_sum=*/false);
  const Convolution* convolution = editor.As<Convolution>(into);
  if (convolution == nullptr || convolution->src_quantization || convolution->dst_quantization ||
      dims != editor.dims(editor.operation(op).dst)) {
    return;
  }
  for (const FusedStep& step : convolution->fused)
    if (step.kind == FusedStep::Kind::kPRelu) return;
  std::vector<float> slopes = SlopesOfChannels(editor, srcs[1], dims);
  if (!slopes.empty())
    Absorb(editor, into, op, {.kind = FusedStep::Kind::kPRelu, .slopes = std::move(slopes)});
}

// Fuses a sum into one of its sources: if either could take it, into the one that is computed
// later, so that its own sources then live no longer.
void TrySum(Editor& editor, int op) {
  const std::vector<ValueId> srcs = editor.operation(op).srcs;
  if (srcs.size() != 2) return;
  const int first = Absorber(editor, srcs[0], /*for_sum=*/true);
  const int second = Absorber(editor, srcs[1], /*for_sum=*/true);
  const int into = std::max(first, second);
  if (into == Editor::kNone) return;
  Absorb(editor, into, op, {FusedStep::Kind::kSum, {}, into == first ? srcs[1] : srcs[0]});
}

}  // namespace

void FusePostOps(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    if (const Activation* activation = editor.As<Activation>(i); activation != nullptr) {
      TryActivation(editor, i, Activation(*activation));
    } else if (editor.As<Sum>(i) != nullptr) {
      TrySum(editor, i);
    } else if (const Elementwise* function = editor.As<Elementwise>(i);
               function != nullptr && function->function == Function::kPRelu) {
      TryPRelu(editor, i);
    }
  });
}

}  // namespace tilewire::network
