// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/arguments.h"

#include "absl/strings/str_cat.h"

namespace tilewire {

std::string ArgName(int arg) {
  switch (arg) {
    case kArgSrc:
      return "src";
    case kArgSrc1:
      return "src1";
    case kArgSrcIterC:
      return "src_iter_c";
    case kArgSequenceLengths:
      return "sequence_lengths";
    case kArgMean:
      return "mean";
    case kArgVariance:
      return "variance";
    case kArgDst:
      return "dst";
    case kArgDstIter:
      return "dst_iter";
    case kArgDstIterC:
      return "dst_iter_c";
    case kArgWeights:
      return "weights";
    case kArgWeightsIter:
      return "weights_iter";
    case kArgWeightsPeephole:
      return "weights_peephole";
    case kArgBias:
      return "bias";
    case kArgWorkspace:
      return "workspace";
    case kArgScratchpad:
      return "scratchpad";
    case kArgDiffSrc:
      return "diff_src";
    case kArgDiffSrc1:
      return "diff_src1";
    case kArgDiffDst:
      return "diff_dst";
    case kArgDiffWeights:
      return "diff_weights";
    case kArgDiffBias:
      return "diff_bias";
    case kArgQuantizationRange:
      return "range";
    case kArgWeightsRange:
      return "weights_range";
    default:
      break;
  }
  if (arg >= kArgMultipleDst) return absl::StrCat("multiple_dst[", arg - kArgMultipleDst, "]");
  if (arg >= kArgMultipleSrc) return absl::StrCat("multiple_src[", arg - kArgMultipleSrc, "]");
  return absl::StrCat("argument ", arg);
}

bool IsOutput(PropKind kind, int arg) {
  switch (arg) {
    case kArgDiffSrc:
    case kArgDiffSrc1:
    case kArgDiffWeights:
    case kArgDiffBias:
      return true;
    case kArgWorkspace:
      return !IsBackward(kind);
    default:
      break;
  }
  const bool is_result = (arg >= kArgDst && arg <= kArgDstIterC) || arg >= kArgMultipleDst;
  return is_result && !IsBackward(kind);
}

}  // namespace tilewire
