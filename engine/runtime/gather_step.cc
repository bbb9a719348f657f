// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/gather_step.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/runtime/plan.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

constexpr int64_t kOutside = -1;

// Where the index stands among `size` elements.
int64_t PlaceOfIndex(float index, int64_t size) {
  const float end = static_cast<float>(size);
  if (!(index > -end - 1 && index < end)) return kOutside;  // NaN is outside, too
  const int64_t whole = static_cast<int64_t>(index);
  return whole < 0 ? std::max(whole + size, kOutside) : whole;
}

// Immutable.
class IndexedGatherStep final : public Primitive, public SourceCheck {
 public:
  IndexedGatherStep(PrimitiveInfo info, const graph::Gather& gather, const MemoryDesc& src,
                    const MemoryDesc& indices)
      : Primitive(std::move(info)),
        axis_(gather.axis),
        size_(src.dim(gather.axis)),
        indices_(indices.ElementCount()),
        piece_(SizeOf(src.data_type())) {
    for (int d = 0; d < src.rank(); ++d) {
      if (d < axis_) outer_ *= src.dim(d);
      if (d > axis_) piece_ *= src.dim(d);
    }
  }

  absl::Status Check(const ExecuteArgs& args) const override {
    const auto* indices = args.Get<const float>(kArgSrc1);
    for (int64_t i = 0; i < indices_; ++i) {
      if (PlaceOfIndex(indices[i], size_) == kOutside) {
        return absl::InvalidArgumentError(absl::StrCat("index ", indices[i], " is outside the ",
                                                       size_, " elements along axis ", axis_));
      }
    }
    return absl::OkStatus();
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = args.Get<const std::byte>(kArgSrc);
    const auto* indices = args.Get<const float>(kArgSrc1);
    auto* dst = args.Get<std::byte>(kArgDst);
    const int64_t pieces = outer_ * indices_;
    const int64_t at_once = std::max<int64_t>(1, kBytesAtOnce / piece_);
    team.ParallelFor(DivUp(pieces, at_once), [&](int64_t task) {
      const int64_t end = std::min(pieces, (task + 1) * at_once);
      for (int64_t i = task * at_once; i < end; ++i) {
        // Check() has seen this index: the bound keeps reads inside whatever it holds.
        const int64_t at = std::max<int64_t>(0, PlaceOfIndex(indices[i % indices_], size_));
        std::memcpy(dst + i * piece_, src + (i / indices_ * size_ + at) * piece_, piece_);
      }
    });
  }

  static constexpr int64_t kBytesAtOnce = 65536;  // in one piece of work

  const int axis_;
  const int64_t size_, indices_;  // elements along the axis, and how many are taken
  int64_t outer_ = 1;             // of what stands before the axis
  int64_t piece_;                 // bytes of what stands behind it
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateGatherStep(const graph::Gather& gather,
                                                                  const MemoryDesc& src,
                                                                  const MemoryDesc& indices,
                                                                  const MemoryDesc& dst) {
  if (indices.data_type() != DataType::kF32)
    return absl::UnimplementedError("indices that are not held in f32");
  return std::make_shared<IndexedGatherStep>(
      StepInfo("runtime/indexed_gather", {{kArgSrc, src}, {kArgSrc1, indices}, {kArgDst, dst}}),
      gather, src, indices);
}

}  // namespace tilewire::runtime
