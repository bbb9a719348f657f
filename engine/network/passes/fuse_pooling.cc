// SPDX-License-Identifier: Apache-2.0
//
// Fuses only what costs nothing if no primitive does both: the runtime then runs the two in turn.
#include <utility>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

// Rounded down: ceil_mode that adds a window shows in dst and in the padding on the right.
bool IsMaximumOfTwoByTwo(const Pooling& pooling, const Dims& src, const Dims& dst) {
  const Dims two = {2, 2}, none = {0, 0};
  return pooling.algorithm == Pooling::Algorithm::kMax && pooling.kernel == two &&
         pooling.strides == two && pooling.padding_left == none && pooling.padding_right == none &&
         dst[2] == src[2] / 2 && dst[3] == src[3] / 2;
}

// The convolution that computes `value`, if a maximum may follow in it.
int PoolableProducer(Editor& editor, ValueId value) {
  const int op = editor.producer(value);
  const Convolution* convolution = editor.As<Convolution>(op);
  if (convolution == nullptr || editor.use_count(value) != 1) return Editor::kNone;
  const bool is_real = !convolution->src_quantization && !convolution->dst_quantization;
  return is_real && !convolution->pooling && !HasSum(convolution->fused) ? op : Editor::kNone;
}

}  // namespace

void FusePooling(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    const Pooling* pooling = editor.As<Pooling>(i);
    if (pooling == nullptr) return;
    const Operation& operation = editor.operation(i);
    const Dims& src = editor.dims(operation.srcs[0]);
    if (!IsMaximumOfTwoByTwo(*pooling, src, editor.dims(operation.dst))) return;
    const int before = PoolableProducer(editor, operation.srcs[0]);
    if (before == Editor::kNone) return;
    Operation fused = editor.operation(before);
    std::get<Convolution>(fused.params).pooling = FusedPooling{operation.name, src};
    fused.dst = operation.dst;
    editor.Replace(i, std::move(fused), before);
  });
}

}  // namespace tilewire::network
