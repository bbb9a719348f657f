// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

absl::Status BuildIdentity(NodeContext& context) { return context.SetOutput(context.input(0)); }

}  // namespace

TILEWIRE_OPERATORS(Identity) = {
    OfSequences(TrainsFirst({"Identity", 1, 1, 1, "", BuildIdentity, Folds::kInMemory})),
};

}  // namespace tilewire::reader
