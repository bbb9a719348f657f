// SPDX-License-Identifier: Apache-2.0
//
// Goes through the stages of a model (cut.h) before anything runs: with made-up results of late
// nodes, so that all uses of operators are found that are not supported, and the dims of outputs.
// Pure functions.
#ifndef ENGINE_ONNX_STAGES_ASSUMED_STAGES_H_
#define ENGINE_ONNX_STAGES_ASSUMED_STAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/onnx/stages/cut.h"

namespace tilewire::reader {

struct AssumedSizes {
  int64_t found;    // elements that a NonZero finds, boxes that are kept, runs of a loop
  int64_t element;  // each of those that a node waits for
};

// The dims of the model's outputs for these dims of its inputs. Errors are those of BuildStage();
// all but kUnimplemented may be due to what is made up.
absl::StatusOr<std::vector<Dims>> OutputDimsOf(const ModelGraph& graph,
                                               const std::vector<Operand>& folded,
                                               absl::Span<const Dims> input_dims,
                                               const AssumedSizes& assumed);

// The stages after the first one of a model, for a description of it. The bodies of loops are left
// out.
struct LaterStages {
  std::vector<Stage> stages;  // in their order, before any pass
  absl::Status status;        // not OK: why the last of the model's stages are missing
};
// The stages for the first made-up sizes that lead to the last stage, or else for those that lead
// farthest.
LaterStages StagesAfter(const ModelGraph& graph, const Stage& first,
                        const Interrupted& interrupted);

// Describes one of a graph's outputs after its last stage.
StagedTensor OutputOf(const Cut& last, TensorId id);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_STAGES_ASSUMED_STAGES_H_
