// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/top_k/top_k.h"

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/top_k/implementations.h"

namespace tilewire {
namespace top_k {
namespace {

absl::Status Validate(const TopKDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckSource("top_k: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckDestination("top_k: dst", desc.dst));
  if (desc.axis < 0 || desc.axis >= desc.src.rank()) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k: axis ", desc.axis, " of a tensor of rank ", desc.src.rank()));
  }
  bool fits = desc.src.rank() == desc.dst.rank();
  for (int d = 0; fits && d < desc.src.rank(); ++d) {
    fits = d == desc.axis ? desc.dst.dim(d) <= desc.src.dim(d) : desc.dst.dim(d) == desc.src.dim(d);
  }
  if (fits) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("top_k along axis ", desc.axis, ": src is ",
                                                 desc.src.ToString(), ", dst ",
                                                 desc.dst.ToString()));
}

}  // namespace
}  // namespace top_k

absl::Span<const Implementation<TopKDesc>> TopKImplementations() {
  static constexpr Implementation<TopKDesc> kRows[] = {
      {{"top_k/partial_sort", cpu::Isa::kBaseline},
       top_k::ResolvePartialSort,
       top_k::CreatePartialSort},
      {{"top_k/reference", cpu::Isa::kBaseline, {.is_reference = true}},
       top_k::ResolveReference,
       top_k::CreateReference},
  };
  return kRows;
}

TILEWIRE_DEFINE_CREATE(TopK, top_k::Validate);

}  // namespace tilewire
