// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/passes/editor.h"
#include "engine/graph/passes/passes.h"
#include "engine/memory/data_type.h"

namespace tilewire::graph {
namespace {

bool IsSigned(DataType type) {
  return type == DataType::kS8 || type == DataType::kS16 || type == DataType::kS32 ||
         type == DataType::kS64;
}

// Whether `type` is one of integers that has every number of `part`.
bool HasIntegersOf(DataType type, DataType part) {
  if (!IsIntegerType(type)) return false;
  if (part == DataType::kBool || part == type) return true;
  if (!IsIntegerType(part)) return false;
  if (IsSigned(part) == IsSigned(type)) return SizeOf(type) >= SizeOf(part);
  return IsSigned(type) && SizeOf(type) > SizeOf(part);
}

}  // namespace

void CollapseConverts(Network* network) {
  Editor editor(network);
  const auto type_of = [network](ValueId value) { return network->values[value].type; };
  for (int i = 0; i < editor.size(); ++i) {
    if (editor.As<Convert>(i) == nullptr) continue;
    const int before = editor.producer(editor.operation(i).srcs[0]);
    if (editor.As<Convert>(before) == nullptr) continue;
    const ValueId src = editor.operation(before).srcs[0];
    if (HasIntegersOf(type_of(editor.operation(before).dst), type_of(src)))
      editor.SetSource(i, 0, src);
  }
}

}  // namespace tilewire::graph
