// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include "engine/base/status_macros.h"
#include "engine/primitives/attention/attention.h"
#include "engine/primitives/attention/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace attention {
namespace {

absl::Status Mismatch(const AttentionDesc& desc, absl::string_view what) {
  std::string dims;
  for (const MemoryDesc& src : desc.srcs) absl::StrAppend(&dims, " ", DimsToString(src.dims()));
  return InvalidArgument("attention: ", what, ": srcs", dims, ", dst ",
                         DimsToString(desc.dst.dims()));
}

absl::Status CheckMasks(const AttentionDesc& desc, const Dims& scores) {
  for (size_t i = AttentionDesc::kFirstMask; i < desc.srcs.size(); ++i) {
    const Dims& mask = desc.srcs[i].dims();
    bool fits = mask[0] > 0 && scores[0] % mask[0] == 0;
    for (int d = 1; d < 4; ++d) fits &= mask[d] == scores[d] || mask[d] == 1;
    if (!fits) return Mismatch(desc, absl::StrCat("source ", i, " does not fit the scores"));
  }
  return absl::OkStatus();
}

absl::Status Validate(const AttentionDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckDestination("attention: dst", desc.dst));
  if (desc.srcs.size() < AttentionDesc::kFirstMask)
    return Mismatch(desc, "takes queries, keys and values");
  for (const MemoryDesc& src : desc.srcs) {
    ABSL_RETURN_IF_ERROR(CheckSource("attention: a source", src));
    if (src.rank() != 4) return Mismatch(desc, "takes tensors of rank 4");
  }
  if (desc.dst.rank() != 4) return Mismatch(desc, "takes tensors of rank 4");
  if (!std::isfinite(desc.scale)) return Mismatch(desc, "the scale is not finite");
  const Dims &queries = desc.srcs[AttentionDesc::kQueries].dims(),
             &keys = desc.srcs[AttentionDesc::kKeys].dims(),
             &values = desc.srcs[AttentionDesc::kValues].dims();
  if (keys[0] != queries[0] || keys[1] == 0 || queries[1] % keys[1] != 0 || keys[3] != queries[3])
    return Mismatch(desc, "keys do not fit queries");
  if (values[0] != keys[0] || values[1] != keys[1] || values[2] != keys[2])
    return Mismatch(desc, "values do not fit keys");
  if (desc.dst.dims() != Dims{queries[0], queries[1], queries[2], values[3]})
    return Mismatch(desc, "dst does not fit");
  return CheckMasks(desc, {queries[0], queries[1], queries[2], keys[2]});
}

}  // namespace

}  // namespace attention

std::vector<AttentionDesc> AttentionProbes(DataType type) {
  const MemoryDesc heads = probes::Tagged({2, 4, 8, 16}, type, "nchw");
  return {{.srcs = {heads, heads, heads}, .dst = heads}};
}

TILEWIRE_DEFINE_PRIMITIVE(Attention, attention,
                          {kAvx512AndAvx2, {{"f32", ResolveBlocks, CreateBlocks}}});

}  // namespace tilewire
