// SPDX-License-Identifier: Apache-2.0
//
// Late nodes (cut.h): tensors in memory between stages, and what late nodes compute of them, by the
// functions that fold constants. Pure functions.
#ifndef ENGINE_ONNX_STAGES_HELD_TENSOR_H_
#define ENGINE_ONNX_STAGES_HELD_TENSOR_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/aligned_buffer.h"
#include "engine/onnx/stages/cut.h"

namespace tilewire::reader {

struct HeldTensor {
  StagedTensor tensor;
  std::shared_ptr<const AlignedBuffer> bytes;  // row-major, exactly the tensor's
};

// The elements as a constant; floats are not copied.
ConstantPtr AsConstant(const std::string& name, const HeldTensor& held);
// The elements of a constant in memory, in `type`; integers may be held in f32.
//   kUnimplemented      an integer that the type does not hold
//   kResourceExhausted  memory
absl::StatusOr<HeldTensor> AsTensor(const Constant& constant, TensorId id, DataType type);
// The same in f32; integers that it does not hold exactly in s64.
absl::StatusOr<HeldTensor> AsTensor(const Constant& constant, TensorId id);

// The outputs of a late node other than a Loop. `inputs` are those of its inputs that are not
// constants of `cut`. Indices are held in f32.
//   kInvalidArgument    what the operator does not allow
//   kResourceExhausted  more than kLargestFold elements
//   and what `interrupted` returned
absl::StatusOr<std::vector<HeldTensor>> ComputeLate(const Node& node, const ModelGraph& graph,
                                                    const Cut& cut,
                                                    const std::vector<HeldTensor>& inputs,
                                                    const Interrupted& interrupted);

// A Loop that is run: its body's graph, with a graph's tensors for one run of it.
//   inputs: the number of the run, what the runs carry, then what the body reads of graphs around
// The condition is a constant, since the body runs only where it holds.
//   kInvalidArgument  a body whose inputs and outputs do not fit the node's
absl::StatusOr<StageStart> BodyStart(const Node& loop, const Cut& cut,
                                     const std::vector<StagedTensor>& carried);
// The body's input that is the number of the run.
StagedTensor RunNumber(const Node& loop);
const Body& BodyOfLoop(const Node& loop);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_STAGES_HELD_TENSOR_H_
