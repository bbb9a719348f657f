// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/top_k/implementations.h"
#include "engine/primitives/top_k/top_k.h"

namespace tilewire {
namespace top_k {
namespace {

absl::Status Validate(const TopKDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("top_k", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckAxis("top_k", desc.axis, desc.src));
  bool fits = desc.src.rank() == desc.dst.rank();
  for (int d = 0; fits && d < desc.src.rank(); ++d) {
    fits = d == desc.axis ? desc.dst.dim(d) <= desc.src.dim(d) : desc.dst.dim(d) == desc.src.dim(d);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("top_k along axis ", desc.axis, ": src is ", desc.src.ToString(), ", dst ",
                         desc.dst.ToString());
}

}  // namespace
}  // namespace top_k

std::vector<TopKDesc> TopKProbes(DataType type) {
  return {TopKDesc{probes::Tagged({8, 100}, type, "nc"), probes::Tagged({8, 5}, type, "nc"), 1}};
}

TILEWIRE_DEFINE_PRIMITIVE(TopK, top_k,
                          {kAnyCpu, {{"partial_sort", ResolvePartialSort, CreatePartialSort}}});

}  // namespace tilewire
