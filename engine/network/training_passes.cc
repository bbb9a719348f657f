// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/passes.h"
#include "engine/network/training/fuse_normalization.h"
#include "engine/network/training/fuse_row_parameters.h"

namespace tilewire::network {
namespace {

constexpr Pass kTrainingPasses[] = {
    {"fold_pad", FoldPad, "", "first, while a Pad stands directly before its window"},
    {"fuse_gelu", FuseGelu, "", "its derivative is one function, too"},
    {"fuse_layer_normalization", FuseLayerNormalization, "fuse_row_parameters",
     "scale and shift belong to the operation that its pattern becomes"},
    {"fuse_row_parameters", FuseRowParameters, "",
     "before sums of two tensors, which another pass looks for"},
    {"collapse_reshapes", CollapseReshapes, "",
     "before shuffles, which stand between two reshapes"},
    {"fuse_shuffle", FuseShuffle, "", "its gradient is a shuffle"},
    {"fuse_hard_sigmoid", FuseHardSigmoid, "", "its derivative is one function, too"},
    {"fuse_swish", FuseSwish, "", "the same"},
    {"fuse_normalization", FuseNormalization, "",
     "normalizations take relu and sums, which no other pass looks for"},
    {"remove_dead", RemoveDead, "", "last, because the passes leave behind what nothing reads"},
};

}  // namespace

absl::Span<const Pass> TrainingPassTable() { return kTrainingPasses; }

void RunTrainingPasses(Network* network) { RunPassesOf(TrainingPassTable(), network); }

}  // namespace tilewire::network
