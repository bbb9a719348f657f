// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/elementwise.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace elementwise {
namespace {

absl::Status ValidateSource(const ElementwiseDesc& desc, size_t i) {
  const MemoryDesc& src = desc.srcs[i];
  ABSL_RETURN_IF_ERROR(CheckSource(absl::StrCat("elementwise: source ", i), src));
  bool fits = src.rank() == desc.dst.rank();
  for (int d = 0; fits && d < src.rank(); ++d) {
    fits = src.dim(d) == 1 || src.dim(d) == desc.dst.dim(d);
  }
  if (fits) return absl::OkStatus();
  return InvalidArgument("elementwise: source ", i, " ", DimsToString(src.dims()),
                         " is not broadcast to dst ", DimsToString(desc.dst.dims()));
}

absl::Status Validate(const ElementwiseDesc& desc, const Attributes&) {
  const int arity = functions::ArityOf(desc.function.function);
  if (static_cast<int>(desc.srcs.size()) != arity) {
    return InvalidArgument("elementwise: ", desc.srcs.size(), " sources of a function of ", arity);
  }
  ABSL_RETURN_IF_ERROR(CheckDestination("elementwise: dst", desc.dst));
  for (size_t i = 0; i < desc.srcs.size(); ++i) ABSL_RETURN_IF_ERROR(ValidateSource(desc, i));
  return absl::OkStatus();
}

}  // namespace
}  // namespace elementwise

std::vector<ElementwiseDesc> ElementwiseProbes(DataType type) {
  const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  return {ElementwiseDesc{{functions::Elementwise::Function::kMax}, {image, image}, image}};
}

TILEWIRE_DEFINE_PRIMITIVE(Elementwise, elementwise,
                          {kAvx512AndAvx2,
                           {{"vectors", ResolveVectors, CreateVectors, {.takes_all_types = true}}}},
                          {kAnyCpu, {{"rows", ResolveRows, CreateRows}}});

}  // namespace tilewire
