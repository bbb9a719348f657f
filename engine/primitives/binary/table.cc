// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

namespace binary {
namespace {

absl::Status Validate(const BinaryDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckSource("binary: src0", desc.src0));
  ABSL_RETURN_IF_ERROR(CheckSource("binary: src1", desc.src1));
  ABSL_RETURN_IF_ERROR(CheckDestination("binary: dst", desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims("binary: src0", desc.src0, "dst", desc.dst));
  bool fits = desc.src1.rank() == desc.src0.rank();
  for (int d = 0; fits && d < desc.src0.rank(); ++d) {
    fits = desc.src1.dim(d) == desc.src0.dim(d) || desc.src1.dim(d) == 1;
  }
  if (!fits) {
    return InvalidArgument("binary: src1 ", DimsToString(desc.src1.dims()),
                           " cannot be broadcast to src0 ", DimsToString(desc.src0.dims()));
  }
  if (!IsBinaryAlgorithm(desc.algorithm)) {
    return InvalidArgument("binary: no algorithm ", static_cast<int>(desc.algorithm));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace binary

std::vector<BinaryDesc> BinaryProbes(DataType type) {
  std::vector<BinaryDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    BinaryDesc desc;
    desc.src0 = desc.dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    desc.src1 = probes::Tagged({2, 32, 1, 1}, type, tag);
    descs.push_back(desc);
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(Binary, binary, {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}});

}  // namespace tilewire
