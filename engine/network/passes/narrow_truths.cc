// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/network/elementwise.h"
#include "engine/network/passes/editor.h"
#include "engine/network/passes/passes.h"

namespace tilewire::network {
namespace {

bool JoinsTruths(Function function) {
  return function == Function::kAnd || function == Function::kOr || function == Function::kXor ||
         function == Function::kNot;
}

// The truth values that may become bytes: at first all that predicates give, then fewer and fewer.
class Truths {
 public:
  explicit Truths(Network* network) : editor_(network), is_narrow_(network->values.size(), false) {
    for (int i = 0; i < editor_.size(); ++i) {
      const auto* elementwise = editor_.As<Elementwise>(i);
      if (elementwise != nullptr && functions::IsPredicate(elementwise->function))
        is_narrow_[editor_.operation(i).dst] = true;
    }
  }

  void Narrow() {
    while (DropWhatIsReadAsReals()) {
    }
    for (size_t value = 0; value < is_narrow_.size(); ++value) {
      if (is_narrow_[value]) editor_.network().values[value].type = DataType::kU8;
    }
  }

 private:
  // Whether source `s` of the operation may be a byte, as long as those beside it are.
  bool TakesByte(int op, size_t s) {
    const Operation& operation = editor_.operation(op);
    if (editor_.As<Convert>(op) != nullptr) {
      const DataType to = editor_.network().values[operation.dst].type;
      return to == DataType::kF32 || to == DataType::kBool || IsIntegerType(to);
    }
    const auto* elementwise = editor_.As<Elementwise>(op);
    if (elementwise == nullptr) return false;
    if (elementwise->function == Function::kWhere) return s == 0;
    if (!JoinsTruths(elementwise->function)) return false;
    for (ValueId src : operation.srcs) {
      if (!is_narrow_[src]) return false;
    }
    return true;
  }

  bool DropWhatIsReadAsReals() {
    std::vector<int> as_bytes(is_narrow_.size(), 0);
    for (int i = 0; i < editor_.size(); ++i) {
      const std::vector<ValueId>& srcs = editor_.operation(i).srcs;
      for (size_t s = 0; s < srcs.size(); ++s) as_bytes[srcs[s]] += TakesByte(i, s) ? 1 : 0;
    }
    bool dropped = false;
    for (size_t value = 0; value < is_narrow_.size(); ++value) {
      if (!is_narrow_[value] || as_bytes[value] == editor_.use_count(static_cast<ValueId>(value)))
        continue;
      is_narrow_[value] = false;
      dropped = true;
    }
    return dropped;
  }

  Editor editor_;
  std::vector<bool> is_narrow_;  // by value
};

}  // namespace

void NarrowTruths(Network* network) { Truths(network).Narrow(); }

}  // namespace tilewire::network
