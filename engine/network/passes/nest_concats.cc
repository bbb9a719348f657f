// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

struct SeenConcat {
  int op = Editor::kNone;
  int axis = 1;
  std::vector<ValueId> srcs;  // before it was nested itself
};

bool BeginsWith(const SeenConcat& whole, const SeenConcat& part) {
  return part.axis == whole.axis && part.srcs.size() <= whole.srcs.size() &&
         std::equal(part.srcs.begin(), part.srcs.end(), whole.srcs.begin());
}

}  // namespace

void NestConcats(Network* network) {
  Editor editor(network);
  std::vector<SeenConcat> earlier;
  for (int i = 0; i < editor.size(); ++i) {
    const Concat* concat = editor.As<Concat>(i);
    if (concat == nullptr) continue;
    SeenConcat now{i, concat->axis, editor.operation(i).srcs};
    const SeenConcat* longest = nullptr;
    for (const SeenConcat& one : earlier) {
      if (one.srcs.size() < 2 || !BeginsWith(now, one)) continue;
      if (longest == nullptr || one.srcs.size() > longest->srcs.size()) longest = &one;
    }
    if (longest != nullptr) {
      std::vector<ValueId> srcs = {editor.operation(longest->op).dst};
      srcs.insert(srcs.end(), now.srcs.begin() + longest->srcs.size(), now.srcs.end());
      editor.SetSources(i, std::move(srcs));
    }
    earlier.push_back(std::move(now));
  }
}

}  // namespace tilewire::network
