// SPDX-License-Identifier: Apache-2.0
//
// Nodes that a file keeps in the form in which they are trained, and that do something else when
// they are served: Dropout that drops, BatchNormalization by the statistics of the batch.
#ifndef ENGINE_ONNX_TRAINING_LEFTOVERS_H_
#define ENGINE_ONNX_TRAINING_LEFTOVERS_H_

#include <string>
#include <vector>

#include "engine/onnx/file/onnx_file.h"

namespace tilewire::reader {

// A sentence for each kind that the main graph has, with the first node's name.
std::vector<std::string> TrainingLeftovers(const OnnxFile& file);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_TRAINING_LEFTOVERS_H_
