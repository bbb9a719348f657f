// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/passes.h"
#include "engine/network/training/fuse_normalization.h"

namespace tilewire::network {
namespace {

constexpr Pass kTrainingPasses[] = {
    {"fold_pad", FoldPad, "", "first, while a Pad stands directly before its window"},
    {"fuse_gelu", FuseGelu, "", "its derivative is one function, too"},
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
