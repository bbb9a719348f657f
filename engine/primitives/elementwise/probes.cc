// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/elementwise/elementwise.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<ElementwiseDesc> ElementwiseProbes(DataType type) {
  const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  return {ElementwiseDesc{{functions::Elementwise::Function::kMax}, {image, image}, image}};
}

}  // namespace tilewire
