// SPDX-License-Identifier: Apache-2.0
//
// Initializers that an exporter made one because their elements are equal. PyTorch does so in files
// for evaluation: it keeps the first, and leaves an Identity node of it in the place of each other
// one. In a network that was never trained the scales of all normalizations are ones and so are the
// running variances, so that one parameter would stand for all of them, and none could learn.
//
// Here such a node becomes an initializer again, with the name of its output, where all elements
// are the same number. Where they differ, two tensors are equal because they are one parameter.
// Thread-compatible. Source: torch 1.13, deduplicate_initializers.cpp.
#ifndef ENGINE_ONNX_MERGED_INITIALIZERS_H_
#define ENGINE_ONNX_MERGED_INITIALIZERS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/network/constant.h"
#include "engine/onnx/file/onnx_file.h"

namespace tilewire::reader {

// Takes the Identity nodes out of the main graph, and adds the initializers of f32, f16 or bf16
// that they become, which are returned, in memory, in the order of the nodes. None of files before
// IR version 4, in which initializers are inputs, too. Errors: those of StoredNumbers, as what such
// a node reads is looked at, however large it is.
absl::StatusOr<std::vector<network::ConstantPtr>> TakeApart(OnnxFile* file);

// A sentence that tells of them; empty if there are none.
std::string TakenApartText(const std::vector<network::ConstantPtr>& taken_apart);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_MERGED_INITIALIZERS_H_
