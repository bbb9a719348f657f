// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/matmul.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<MatmulDesc> MatmulProbes(DataType type) {
  std::vector<MatmulDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    descs.push_back(MatmulDesc{probes::Any({8, 64}, type),
                               probes::Any({64, 48}, probes::WeightsType(type)),
                               {},
                               probes::Any({8, 48}, to)});
    descs.push_back(descs.back());
    descs.back().dst = probes::Tagged({8, 48}, to, "cn");
  }
  return descs;
}

}  // namespace tilewire
