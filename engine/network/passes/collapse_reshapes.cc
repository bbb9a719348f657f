// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {

void CollapseReshapes(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    if (editor.As<Reshape>(i) == nullptr) return;
    const int before = editor.producer(editor.operation(i).srcs[0]);
    if (editor.As<Reshape>(before) != nullptr)
      editor.SetSource(i, 0, editor.operation(before).srcs[0]);
    const ValueId src = editor.operation(i).srcs[0], dst = editor.operation(i).dst;
    if (editor.dims(src) != editor.dims(dst)) return;
    editor.ReplaceUses(dst, src);
    editor.Remove(i);
  });
}

}  // namespace tilewire::network
