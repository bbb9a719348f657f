// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/sum/implementations.h"
#include "engine/primitives/sum/sum.h"

namespace tilewire {
namespace sum {
namespace {

absl::Status Validate(const SumDesc& desc, const Attributes&) {
  if (desc.srcs.empty()) return InvalidArgument("sum: no source");
  if (desc.scales.size() != desc.srcs.size()) {
    return InvalidArgument("sum: ", desc.scales.size(), " scales for ", desc.srcs.size(),
                           " sources");
  }
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    const MemoryDesc& src = desc.srcs[i];
    ABSL_RETURN_IF_ERROR(CheckSource(absl::StrCat("sum: source ", i), src));
    if (src.dims() != desc.dst.dims() || src.data_type() != desc.dst.data_type()) {
      return InvalidArgument("sum: source ", i, " is ", src.ToString(), ", the destination ",
                             desc.dst.ToString());
    }
  }
  return CheckDestination("sum: dst", desc.dst);
}

}  // namespace

}  // namespace sum

std::vector<SumDesc> SumProbes(DataType type) {
  const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  return {SumDesc{{1, 1}, {image, image}, image}};
}

TILEWIRE_DEFINE_PRIMITIVE(Sum, sum, {kAvx512AndAvx2, {{"dense", ResolveDense, CreateDense}}});

}  // namespace tilewire
