// SPDX-License-Identifier: Apache-2.0
//
// A path is the types that numbers have one after the other: the source's, those between, the
// result's.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "engine/memory/data_type.h"
#include "engine/network/elementwise.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

using Path = std::vector<DataType>;

bool IsSigned(DataType type) {
  return type == DataType::kS8 || type == DataType::kS16 || type == DataType::kS32 ||
         type == DataType::kS64;
}

bool IsWhole(DataType type) { return IsIntegerType(type) || type == DataType::kBool; }

// Whether `type` is one of integers that has every number of `part`.
bool HasIntegersOf(DataType type, DataType part) {
  if (!IsIntegerType(type)) return false;
  if (part == DataType::kBool || part == type) return true;
  if (!IsIntegerType(part)) return false;
  if (IsSigned(part) == IsSigned(type)) return SizeOf(type) >= SizeOf(part);
  return IsSigned(type) && SizeOf(type) > SizeOf(part);
}

// Whether `from` becomes `to` in one step as it does by way of `between`.
bool IsSkipped(DataType from, DataType between, DataType to) {
  if (from == between && from != DataType::kBool) return true;
  if (HasIntegersOf(between, from)) return true;
  if (from == DataType::kBool)
    return between == DataType::kBool ||
           (between == DataType::kF32 && (IsWhole(to) || to == between));
  // Numbers other than 0 stay so.
  const bool keeps_truth =
      between == DataType::kF32 || (IsIntegerType(between) && SizeOf(between) >= SizeOf(from));
  return to == DataType::kBool && IsIntegerType(from) && keeps_truth;
}

// Whether the types from `i` on cut real numbers to integers twice.
bool CutsTwice(const Path& path, size_t i) {
  return i + 4 <= path.size() && path[i] == DataType::kF32 && path[i + 1] == DataType::kS64 &&
         path[i + 2] == DataType::kF32 && path[i + 3] == DataType::kS64;
}

Path Shortened(Path path) {
  for (size_t i = 0; i + 2 < path.size();) {
    const bool twice = CutsTwice(path, i);
    const bool skipped = IsSkipped(path[i], path[i + 1], path[i + 2]);
    if (!twice && !skipped) {
      ++i;
      continue;
    }
    path.erase(path.begin() + i + 1, path.begin() + i + (twice ? 3 : 2));
    i = 0;
  }
  return path;
}

// The path that an operation takes its only source along, if that is all that it does.
std::optional<Path> PathOf(Editor& editor, int op) {
  if (op == Editor::kNone || editor.removed(op)) return std::nullopt;
  const Operation& operation = editor.operation(op);
  const auto type_of = [&](ValueId value) { return editor.network().values[value].type; };
  Path path = {type_of(operation.srcs.empty() ? operation.dst : operation.srcs[0])};
  if (const auto* convert = editor.As<Convert>(op)) {
    path.insert(path.end(), convert->via.begin(), convert->via.end());
  } else if (const auto* elementwise = editor.As<Elementwise>(op)) {
    const std::vector<ValueId>& srcs = operation.srcs;
    const bool is_truth = elementwise->function == Function::kAnd && srcs[0] == srcs[1];
    const bool is_cut = elementwise->function == Function::kTruncate && path[0] == DataType::kF32;
    if (!is_truth && !is_cut) return std::nullopt;
    path.push_back(is_truth ? DataType::kBool : DataType::kS64);
  } else {
    return std::nullopt;
  }
  path.push_back(type_of(operation.dst));
  return path;
}

// Whether vectors convert along the path, or it is one step.
bool IsShort(const Path& path) {
  constexpr size_t kMost = 4 + 2;  // kMostConversionsBetween of the primitive, and the ends
  const auto is_known = [](DataType type) { return type == DataType::kF32 || IsWhole(type); };
  return path.size() == 2 ||
         (path.size() <= kMost && std::all_of(path.begin(), path.end(), is_known));
}

// Lets the operation read the source of the conversion before it; false if there is none, or if
// others read its result too and the way would become longer.
bool Collapse(Editor& editor, int op, const Path& own) {
  const ValueId src = editor.operation(op).srcs[0];
  const int before = editor.producer(src);
  std::optional<Path> path = PathOf(editor, before);
  if (!path) return false;
  path->insert(path->end(), own.begin() + 1, own.end());
  *path = Shortened(*std::move(path));
  const int reads = static_cast<int>(editor.operation(op).srcs.size());
  if (!IsShort(*path) || (editor.use_count(src) > reads && path->size() > own.size())) return false;
  editor.SetSources(op, {editor.operation(before).srcs[0]});
  editor.operation(op).params = Convert{{path->begin() + 1, path->end() - 1}};
  return true;
}

}  // namespace

void CollapseConverts(Network* network) {
  ForEachOperation(network, [](Editor& editor, int i) {
    std::optional<Path> own = PathOf(editor, i);
    while (own && Collapse(editor, i, *own)) own = PathOf(editor, i);
  });
}

}  // namespace tilewire::network
