// SPDX-License-Identifier: Apache-2.0
#include "engine/network/passes/passes.h"

#include "engine/base/progress.h"

namespace tilewire::network {
namespace {

// Exporters' patterns come first, while they are whole; then integers, then the order of elements,
// then what convolutions and inner products take over.
constexpr Pass kPasses[] = {
    {"fold_pad", FoldPad, "sink_dequantize",
     "a Pad that has moved to the integers no longer stands before its window"},
    {"fuse_gelu", FuseGelu, "convolve_rows",
     "linear layers become convolutions only through activations, which the spelled form is not"},
    {"fuse_layer_normalization", FuseLayerNormalization, "",
     "early, while nothing has taken a part of its pattern"},
    {"fuse_attention", FuseAttention, "",
     "early, while its factors, masks and reshapes stand where exporters write them"},
    {"fuse_dynamic_quantization", FuseDynamicQuantization, "fuse_bias fold_scale_shift",
     "the bias after a product folds into the operation that the product becomes"},
    {"fuse_image_scaling", FuseImageScaling, "sink_dequantize",
     "the bytes themselves would be transposed, which a convolution reads as they are"},
    {"fuse_bias", FuseBias, "convolve_rows",
     "linear layers become convolutions only if no sum stands between them"},
    {"convolve_rows", ConvolveRows, "fold_scale_shift",
     "a factor per channel folds into the convolution before it, not through a transpose"},
    {"fold_scale_shift", FoldScaleShift, "fuse_post_ops",
     "a factor does not fold once the convolution before or the factor itself has fused steps"},
    {"lift_quantize", LiftQuantize, "sink_dequantize",
     "a Quantize cancels a Dequantize only directly after it"},
    {"sink_dequantize", SinkDequantize, "fold_dequantize",
     "a convolution reads integers only if the Dequantize stands directly before it"},
    {"fold_dequantize", FoldDequantize, "fuse_pooling fold_quantize",
     "a convolution of integers takes no pooling, and only such a one writes integers"},
    {"collapse_reshapes", CollapseReshapes, "fold_flatten",
     "an inner product looks at one reshape before it"},
    {"narrow_truths", NarrowTruths, "collapse_converts",
     "a chain ends in the type that its truth values are read in"},
    {"collapse_converts", CollapseConverts, "", "anywhere; no other pass reads or leaves chains"},
    {"fuse_shuffle", FuseShuffle, "fuse_gather_channels", "channels are gathered through shuffles"},
    {"fuse_gather_channels", FuseGatherChannels, "",
     "before concatenations nest, because it reads their own sources"},
    {"nest_concats", NestConcats, "", "when the concatenations that stay are known"},
    {"fold_flatten", FoldFlatten, "", "after the passes that look for reshapes before products"},
    {"fuse_hard_sigmoid", FuseHardSigmoid, "fuse_post_ops",
     "the parts of its pattern would be fused one by one"},
    {"fuse_swish", FuseSwish, "fuse_post_ops", "an activation is a fused step, a product is not"},
    {"fuse_post_ops", FusePostOps, "convolve_gates fuse_pooling fold_quantize",
     "activations between these operations would be in their way"},
    {"convolve_gates", ConvolveGates, "", "when the products of a gate follow each other"},
    {"fuse_pooling", FusePooling, "", "when the fused steps, which it follows, are known"},
    {"fold_quantize", FoldQuantize, "", "when the fused steps, which it follows, are known"},
    {"fold_integer_sum", FoldIntegerSum, "",
     "with the other integers; it reads sums of dequantized tensors, which no other pass takes"},
    {"remove_dead", RemoveDead, "", "last, because the passes leave behind what nothing reads"},
};

}  // namespace

absl::Span<const Pass> PassTable() { return kPasses; }

void RunPassesOf(absl::Span<const Pass> table, Network* network) {
  for (const Pass& pass : table) {
    ReportProgress("pass", pass.name);
    pass.run(network);
  }
}

void RunPasses(Network* network) { RunPassesOf(PassTable(), network); }

}  // namespace tilewire::network
