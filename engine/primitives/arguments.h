// SPDX-License-Identifier: Apache-2.0
//
// The arguments of executions: their numbers, their names, and which of them are written. Pure
// functions; thread-safe.
//
// Source: tests/engine/rows.txt A12.
#ifndef ENGINE_PRIMITIVES_ARGUMENTS_H_
#define ENGINE_PRIMITIVES_ARGUMENTS_H_

#include <string>

#include "engine/primitives/propagation.h"

namespace tilewire {

// Names of execution arguments; MKL-DNN 1.0's numbers, and oneDNN's for the peephole.
enum Arg : int {
  kArgSrc = 1,
  kArgSrc1 = 2,      // of a binary function; the indices of gather
  kArgSrcIter = 2,   // of rnn
  kArgSrcIterC = 3,  // of rnn
  kArgSequenceLengths = 4,
  kArgDst = 17,
  kArgDstIter = 18,
  kArgDstIterC = 19,
  kArgWeights = 33,
  kArgWeightsIter = 34,
  kArgWeightsPeephole = 35,
  kArgBias = 41,
  kArgMean = 49,
  kArgVariance = 50,
  kArgWorkspace = 64,  // what forward saves for backward alone
  kArgScratchpad = 80,
  kArgDiffSrc = 129,
  kArgDiffSrc1 = 130,  // of the second source of a binary function
  kArgDiffDst = 145,
  kArgDiffWeights = 161,  // also of scale and shift
  kArgDiffBias = 169,
  kArgQuantizationRange = 513,  // the scale and zero point of src,
  kArgWeightsRange = 514,       // and of weights
  kArgMultipleSrc = 1024,       // + i
  kArgMultipleDst = 2048,       // + i
};
std::string ArgName(int arg);  // "src", "multiple_src[2]"

// Whether primitives of this propagation write the argument. Statistics, which forward training
// may write or read, count as read: the primitive's ArgDesc says more.
bool IsOutput(PropKind kind, int arg);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ARGUMENTS_H_
