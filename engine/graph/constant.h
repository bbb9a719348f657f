// SPDX-License-Identifier: Apache-2.0
//
// A tensor whose elements are known before anything runs: an initializer, or what folding made of
// some. Floating-point types are held as f32, integer types and bool as int64. Immutable.
#ifndef ENGINE_GRAPH_CONSTANT_H_
#define ENGINE_GRAPH_CONSTANT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "engine/memory/dims.h"

namespace tilewire::graph {

struct Constant {
  std::string name;  // of the tensor in the file; unique in a model
  Dims dims;
  bool is_float = false;
  absl::Span<const float> floats;     // row-major, borrowed from `owner`
  std::shared_ptr<const void> owner;  // keeps `floats` alive
  std::vector<int64_t> ints;          // row-major

  int64_t count() const { return static_cast<int64_t>(is_float ? floats.size() : ints.size()); }
};

using ConstantPtr = std::shared_ptr<const Constant>;

ConstantPtr MakeInts(std::string name, Dims dims, std::vector<int64_t> values);
ConstantPtr MakeFloats(std::string name, Dims dims, std::vector<float> values);
// The same elements, not copied, under other dims (of the same count).
ConstantPtr Reshaped(const Constant& constant, std::string name, Dims dims);

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_CONSTANT_H_
