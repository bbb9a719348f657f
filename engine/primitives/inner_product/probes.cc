// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/inner_product/inner_product.h"
#include "engine/primitives/probe_tensors.h"

namespace tilewire {

std::vector<InnerProductDesc> InnerProductProbes(DataType type) {
  std::vector<InnerProductDesc> descs;
  for (DataType to : probes::ResultTypes(type)) {
    for (int64_t images : {2, 16}) {
      InnerProductDesc desc;
      desc.src = probes::Any({images, 64}, type);
      desc.weights = probes::Any({32, 64}, probes::WeightsType(type));
      desc.dst = probes::Any({images, 32}, to);
      descs.push_back(desc);
    }
    InnerProductDesc named = descs.back();
    named.weights = probes::Tagged({32, 64}, probes::WeightsType(type), "io");
    descs.push_back(named);
  }
  return descs;
}

}  // namespace tilewire
