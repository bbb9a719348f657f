// SPDX-License-Identifier: Apache-2.0
//
// A linear layer on tensors with the channels last is an inner product between reshapes to rows and
// back. Between such layers and the transpose to [N, C, spatial...] everything works on one pixel
// at a time, so the transpose may as well come first.
#include <utility>
#include <vector>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// From [N, spatial..., C] to [N, C, spatial...].
std::vector<int> ChannelsFirst(size_t rank) {
  std::vector<int> order = {0, static_cast<int>(rank) - 1};
  for (size_t d = 1; d + 1 < rank; ++d) order.push_back(static_cast<int>(d));
  return order;
}

bool AreInverse(const std::vector<int>& a, const std::vector<int>& b) {
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[b[d]] != static_cast<int>(d)) return false;
  }
  return true;
}

bool DifferInChannelsOnly(const Dims& a, const Dims& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end() - 1, b.begin());
}

// The operations between the transpose `last` and the value that the earliest linear layer reads as
// pixels, in the order in which they run, the first being the reshape of that value; none if there
// is no such layer.
std::vector<int> PixelwiseBefore(Editor& editor, int last) {
  std::vector<int> backwards;
  size_t kept = 0;
  bool has_product = false;
  ValueId value = editor.operation(last).srcs[0];
  const Dims pixels = editor.dims(value);
  while (editor.use_count(value) == 1) {
    const int op = editor.producer(value);
    if (op == Editor::kNone) break;
    const ValueId src = editor.operation(op).srcs.empty() ? kNoValue : editor.operation(op).srcs[0];
    const InnerProduct* product = editor.As<InnerProduct>(op);
    const bool is_reshape = editor.As<Reshape>(op) != nullptr;
    if (product != nullptr) {
      if (!product->fused.empty() || product->src_quantization || product->dst_quantization) break;
      has_product = true;
    } else if (is_reshape) {
      if (editor.dims(src).back() != editor.dims(value).back()) break;
    } else if (editor.As<Activation>(op) == nullptr) {
      break;
    }
    backwards.push_back(op);
    value = src;
    const bool is_start = is_reshape && DifferInChannelsOnly(editor.dims(src), pixels);
    if (is_start && has_product) kept = backwards.size();
  }
  return std::vector<int>(backwards.rend() - kept, backwards.rend());
}

// [N, C, spatial...] instead of rows of C or [N, spatial..., C].
void SetChannelsFirst(Editor& editor, ValueId value, const Dims& pixels) {
  Dims& dims = editor.network().values[value].dims;
  Dims changed = {pixels[0], dims.back()};
  changed.insert(changed.end(), pixels.begin() + 1, pixels.end() - 1);
  dims = std::move(changed);
}

void Forward(Editor& editor, int op, ValueId src) {
  editor.ReplaceUses(editor.operation(op).dst, src);
  editor.Remove(op);
}

// Replaces the first reshape by the transpose, or by nothing if the two cancel.
void TransposeFirst(Editor& editor, int reshape, const Dims& pixels) {
  const std::vector<int> order = ChannelsFirst(pixels.size());
  const int before = editor.producer(editor.operation(reshape).srcs[0]);
  const Transpose* transpose = editor.As<Transpose>(before);
  if (transpose != nullptr && AreInverse(transpose->order, order))
    return Forward(editor, reshape, editor.operation(before).srcs[0]);
  SetChannelsFirst(editor, editor.operation(reshape).dst, pixels);
  editor.operation(reshape).params = Transpose{order};
}

void MoveForward(Editor& editor, const std::vector<int>& pixelwise, int last) {
  const Dims pixels = editor.dims(editor.operation(last).srcs[0]);
  TransposeFirst(editor, pixelwise[0], pixels);
  for (size_t i = 1; i < pixelwise.size(); ++i) {
    const int op = pixelwise[i];
    if (editor.As<Reshape>(op) != nullptr) {
      Forward(editor, op, editor.operation(op).srcs[0]);
      continue;
    }
    if (InnerProduct* product = editor.As<InnerProduct>(op); product != nullptr)
      editor.operation(op).params = ConvolutionOfPixels(std::move(*product), pixels.size() - 2);
    SetChannelsFirst(editor, editor.operation(op).dst, pixels);
  }
  Forward(editor, last, editor.operation(last).srcs[0]);
}

}  // namespace

void ConvolveRows(Network* network) {
  constexpr size_t kLargestRank = 5;
  ForEachOperation(network, [](Editor& editor, int i) {
    const Transpose* transpose = editor.As<Transpose>(i);
    const size_t rank = transpose == nullptr ? 0 : transpose->order.size();
    if (rank < 3 || rank > kLargestRank || transpose->order != ChannelsFirst(rank)) return;
    const std::vector<int> pixelwise = PixelwiseBefore(editor, i);
    if (!pixelwise.empty()) MoveForward(editor, pixelwise, i);
  });
}

}  // namespace tilewire::network
