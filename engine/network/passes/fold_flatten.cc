// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {

void FoldFlatten(Network* network) {
  constexpr size_t kLargestRank = 5;  // of an inner product's source: three spatial dimensions
  ForEachOperation(network, [](Editor& editor, int i) {
    if (editor.As<InnerProduct>(i) == nullptr) return;
    const ValueId flat = editor.operation(i).srcs[0];
    const int before = editor.producer(flat);
    if (editor.As<Reshape>(before) == nullptr) return;
    const ValueId src = editor.operation(before).srcs[0];
    const Dims& dims = editor.dims(src);
    if (dims.size() < 3 || dims.size() > kLargestRank || dims[0] != editor.dims(flat)[0]) return;
    editor.SetSource(i, 0, src);
  });
}

}  // namespace tilewire::network
