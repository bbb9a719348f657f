// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convert/convert.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<ConvertDesc> ConvertProbes(DataType type) {
  return {ConvertDesc{probes::Tagged({40, 32}, type, "nc"), probes::Any({40, 32}, DataType::kS64)}};
}

}  // namespace tilewire
