// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::Status BuildIdentity(NodeContext& context) { return context.SetOutput(context.input(0)); }

// Whether elements are dropped at random: when training, unless the ratio is 0.
absl::StatusOr<bool> Drops(const NodeContext& context) {
  if (!context.Has(2)) return false;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr training, context.Ints(2));
  if (training->count() != 1) return context.node.Invalid("training_mode is not one truth value");
  if (training->ints[0] == 0) return false;
  if (!context.Has(1)) return true;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr ratio, context.Floats(1));
  return ratio->count() != 1 || ratio->floats[0] != 0;
}

// Output 1: everything is kept.
absl::Status SetMask(NodeContext& context) {
  const Operand src = context.input(0);
  const Dims single(src.dims.size(), 1);
  const std::string name = absl::StrCat(context.output_name(), "/kept");
  Operand one = OperandOf(MakeInts(name, single, {1}));
  if (src.constant == nullptr) {
    network::Literal literal{MakeFloats(name, single, {1})};
    ABSL_ASSIGN_OR_RETURN(one, context.EmitOperand(std::move(literal), {}, single, "/kept"));
  }
  Select select = WholeOf(single.size());
  for (size_t d = 0; d < single.size(); ++d) {
    if (src.dims[d] != 1) select.from[d] = {{0, 0, src.dims[d]}};
  }
  ABSL_ASSIGN_OR_RETURN(const Operand mask, SelectOf(context, one, std::move(select), "/mask"));
  return context.SetOutput(mask, 1);
}

absl::Status BuildDropout(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const bool drops, Drops(context));
  if (drops) return context.node.Unimplemented("training_mode with a ratio other than 0");
  if (context.node.HasOutput(1)) ABSL_RETURN_IF_ERROR(SetMask(context));
  return context.SetOutput(context.input(0));
}

DataType MaskAfterFirst(const TypedNode& node, int i) {
  return i == 0 ? node.input(0) : DataType::kBool;
}

}  // namespace

TILEWIRE_OPERATORS(Identity) = {
    TrainsFirst({"Dropout", 1, 1, 3, "is_test ratio seed", BuildDropout, Folds::kInMemory,
                 MaskAfterFirst, Inputs({1, 2})}),
    OfSequences(TrainsFirst({"Identity", 1, 1, 1, "", BuildIdentity, Folds::kInMemory})),
};

}  // namespace tilewire::reader
