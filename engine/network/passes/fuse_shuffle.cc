// SPDX-License-Identifier: Apache-2.0
//
// An axis of size p * q seen as [p, q] and transposed moves element u * q + v to v * p + u. That is
// the shuffle dst[v * (C/G) + u] = src[u * G + v] with G = q: for ShuffleNet's
// channel_shuffle(groups = p), group_size is C / groups.
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// The axis that `order` swaps with its successor while all others stay; -1 when it does anything
// else.
int SwappedAxis(const std::vector<int>& order) {
  int axis = -1;
  for (int i = 0; i < static_cast<int>(order.size()); ++i) {
    if (order[i] == i) continue;
    if (axis < 0 && i + 1 < static_cast<int>(order.size()) && order[i] == i + 1 &&
        order[i + 1] == i) {
      axis = i++;
    } else {
      return -1;
    }
  }
  return axis;
}

// `split` is `whole` with the axis cut in two.
bool Splits(const Dims& whole, const Dims& split, int axis) {
  if (split.size() != whole.size() + 1 || axis >= static_cast<int>(whole.size())) return false;
  Dims joined = split;
  joined[axis] *= split[axis + 1];
  joined.erase(joined.begin() + axis + 1);
  return joined == whole;
}

}  // namespace

void FuseShuffle(Network* network) {
  constexpr int kChannelAxis = 1;  // along others a transpose is faster than a shuffle
  ForEachOperation(network, [](Editor& editor, int last) {
    if (editor.As<Reshape>(last) == nullptr) return;
    const ValueId transposed = editor.operation(last).srcs[0];
    const int middle = editor.producer(transposed);
    const Transpose* transpose = editor.As<Transpose>(middle);
    if (transpose == nullptr) return;
    const ValueId split = editor.operation(middle).srcs[0];
    const int first = editor.producer(split);
    if (editor.As<Reshape>(first) == nullptr) return;
    const ValueId src = editor.operation(first).srcs[0];
    const int axis = SwappedAxis(transpose->order);
    if (axis != kChannelAxis || !Splits(editor.dims(src), editor.dims(split), axis) ||
        editor.dims(src) != editor.dims(editor.operation(last).dst)) {
      return;
    }
    editor.SetSource(last, 0, src);
    editor.operation(last).params = Shuffle{axis, editor.dims(split)[axis + 1]};
  });
}

}  // namespace tilewire::network
