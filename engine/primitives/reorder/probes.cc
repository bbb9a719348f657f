// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire {

std::vector<ReorderDesc> ReorderProbes(DataType type) {
  std::vector<ReorderDesc> descs;
  for (DataType to : {type, DataType::kF32, DataType::kS8}) {
    for (absl::string_view from_tag : probes::kImageTags) {
      for (absl::string_view to_tag : probes::kImageTags) {
        const Dims dims = {2, 32, 8, 8};
        descs.push_back(
            ReorderDesc{probes::Tagged(dims, type, from_tag), probes::Tagged(dims, to, to_tag)});
      }
    }
    if (to == DataType::kS8) {
      const MemoryDesc packed =
          probes::Tagged({32, 32, 3, 3}, to, "OIhw4i16o4i").WithCompensation(1).value();
      descs.push_back(ReorderDesc{probes::Tagged(packed.dims(), type, "oihw"), packed});
    }
    for (absl::string_view tag : {"OIhw16i16o", "OIhw8i8o"}) {
      const Dims dims = {32, 32, 3, 3};
      descs.push_back(
          ReorderDesc{probes::Tagged(dims, type, "oihw"), probes::Tagged(dims, to, tag)});
    }
    for (int lanes : {16, 8}) {
      const WinogradLayout winograd{.tile = 4, .lanes = lanes, .panel_blocks = 2};
      const Dims dims = {32, 32, 3, 3};
      descs.push_back(ReorderDesc{probes::Tagged(dims, type, "oihw"),
                                  MemoryDesc::CreateWinograd(dims, winograd).value()});
    }
    const MemoryDesc numbers = probes::Tagged({32, 32, 3, 3}, DataType::kF32, "OIhw16i16o");
    const PlaneLayout planes = {
        .planes = 1, .matrices = 1, .outputs = 32, .taps = 9, .channels = 32};
    descs.push_back(ReorderDesc{probes::Tagged(numbers.dims(), type, "oihw"),
                                MemoryDesc::CreatePlanes(numbers, planes).value()});
  }
  return descs;
}

}  // namespace tilewire
