// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/concat/concat.h"
#include "engine/primitives/concat/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace concat {
namespace {

absl::Status ValidateSource(const ConcatDesc& desc, size_t i) {
  const MemoryDesc& src = desc.srcs[i];
  ABSL_RETURN_IF_ERROR(CheckSource(absl::StrCat("concat: source ", i), src));
  bool fits = src.rank() == desc.dst.rank() && src.data_type() == desc.dst.data_type();
  for (int d = 0; fits && d < src.rank(); ++d) {
    fits = d == desc.axis || src.dim(d) == desc.dst.dim(d);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("concat along axis ", desc.axis, ": source ", i, " is ", src.ToString(),
                         ", the destination ", desc.dst.ToString());
}

absl::Status Validate(const ConcatDesc& desc, const Attributes&) {
  if (desc.srcs.empty()) return InvalidArgument("concat: no source");
  ABSL_RETURN_IF_ERROR(CheckAxis("concat", desc.axis, desc.dst));
  int64_t total = 0;
  for (size_t i = 0; i < desc.srcs.size(); ++i) {
    ABSL_RETURN_IF_ERROR(ValidateSource(desc, i));
    total += desc.srcs[i].dim(desc.axis);
  }
  if (total != desc.dst.dim(desc.axis)) {
    return InvalidArgument("concat: the sources have ", total, " along axis ", desc.axis,
                           ", the destination ", desc.dst.dim(desc.axis));
  }
  return CheckDestination("concat: dst", desc.dst);
}

}  // namespace

}  // namespace concat

std::vector<ConcatDesc> ConcatProbes(DataType type) {
  std::vector<ConcatDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    for (int64_t channels : {32, 20}) {
      const MemoryDesc src = probes::Tagged({2, channels, 8, 8}, type, tag);
      descs.push_back(
          ConcatDesc{1, {src, src}, probes::Tagged({2, 2 * channels, 8, 8}, type, tag)});
    }
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(Concat, concat,
                          {kAnyCpu, {{"block_copy", ResolveBlockCopy, CreateBlockCopy}}},
                          {kAvx512AndAvx2, {{"lanes", ResolveLanes, CreateLanes}}});

}  // namespace tilewire
