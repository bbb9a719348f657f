// SPDX-License-Identifier: Apache-2.0
//
// Everything row-major: what stands after the axis is one piece of memory per index.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gather/implementations.h"
#include "engine/primitives/gather/indices.h"
#include "engine/threading/ranges.h"

namespace tilewire::gather {
namespace {

// Immutable.
class SliceCopy final : public Primitive {
 public:
  SliceCopy(PrimitiveInfo info, const GatherDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        size_(desc.src.dim(desc.axis)),
        indices_(desc.indices.ElementCount()),
        slice_(SizeOf(desc.src.data_type())) {
    for (int d = 0; d < desc.src.rank(); ++d) {
      if (d < desc.axis) outer_ *= desc.src.dim(d);
      if (d > desc.axis) slice_ *= desc.src.dim(d);
    }
  }

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team& team) const override {
    return CheckIndices(desc_, args.Find(kArgSrc1), team);
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = args.Get<const std::byte>(kArgSrc);
    const void* indices = args.Find(kArgSrc1);
    auto* dst = args.Get<std::byte>(kArgDst);
    const int64_t slices = slice_ == 0 || size_ == 0 ? 0 : outer_ * indices_;
    const int64_t at_once = threading::ItemsAtOnce(kBytesAtOnce, slice_);
    threading::ParallelForItems(team, slices, at_once, [&](int64_t i) {
      // CheckElements() has seen this index, or the run is stopped: the bound keeps reads inside.
      const int64_t at = std::max<int64_t>(
          0, PlaceOfIndex(desc_.indices.data_type(), indices, i % indices_, size_));
      std::memcpy(dst + i * slice_, src + (i / indices_ * size_ + at) * slice_, slice_);
    });
  }

  static constexpr int64_t kBytesAtOnce = 65536;  // in one piece of work

  const GatherDesc desc_;
  const int64_t size_, indices_;  // elements along the axis, and how many are taken
  int64_t outer_ = 1;             // elements of what stands before the axis
  int64_t slice_;                 // bytes of what stands after it
};

}  // namespace

absl::StatusOr<GatherDesc> ResolveSliceCopy(const Request<GatherDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(GatherDesc resolved, ResolveReference(request));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.indices, &resolved.dst}) {
    ABSL_RETURN_IF_ERROR(RequireRowMajor(*tensor));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateSliceCopy(const Request<GatherDesc>& request) {
  return std::make_unique<SliceCopy>(InfoOf(request), request.desc);
}

}  // namespace tilewire::gather
