// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/passes/passes.h"

namespace tilewire::graph {

void RunPasses(Network* network) {
  FoldPad(network);
  FuseGelu(network);
  FuseLayerNormalization(network);
  FuseBias(network);
  ConvolveRows(network);
  FoldScaleShift(network);
  LiftQuantize(network);
  SinkDequantize(network);
  FoldDequantize(network);
  CollapseReshapes(network);
  FuseShuffle(network);
  FuseGatherChannels(network);
  NestConcats(network);
  FoldFlatten(network);
  FuseHardSigmoid(network);
  FuseSwish(network);
  FusePostOps(network);
  ConvolveGates(network);
  FusePooling(network);
  FoldQuantize(network);
  FoldIntegerSum(network);
  RemoveDead(network);
}

}  // namespace tilewire::graph
