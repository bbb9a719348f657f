// SPDX-License-Identifier: Apache-2.0
//
// To a descriptor that carries compensation (memory_desc.h): the best reorder to the same layout
// without it, then the sums over what was written, padding included (it is zero).
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::reorder {
namespace {

// Offsets of all indices of the padded dimensions whose bit is set in `mask`, row-major; 0 for the
// others.
std::vector<int64_t> OffsetsOf(const MemoryDesc& desc, int mask) {
  Dims dims = desc.padded_dims();
  for (int d = 0; d < desc.rank(); ++d) {
    if ((mask >> d & 1) == 0) dims[d] = 1;
  }
  std::vector<int64_t> offsets;
  ForEachIndex(dims, [&](const Dims& index) { offsets.push_back(desc.Offset(index)); });
  return offsets;
}

// Immutable.
class Compensated final : public Primitive {
 public:
  Compensated(PrimitiveInfo info, const MemoryDesc& dst, std::shared_ptr<const Primitive> copy)
      : Primitive(std::move(info)),
        copy_(std::move(copy)),
        compensation_offset_(dst.CompensationOffsetBytes()),
        offset0_(dst.offset0()),
        origins_(OffsetsOf(dst, dst.extra().compensation_mask)),
        summands_(OffsetsOf(dst, ~dst.extra().compensation_mask)) {}

 private:
  static constexpr int64_t kSumsAtOnce =
      16;  // a block of output channels, and a cache line of sums

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    ExecuteArgs copy_args = args;
    if (scratchpad != nullptr) copy_args.Set(kArgScratchpad, scratchpad);
    (void)copy_->Execute(copy_args, team);  // has all its arguments, and so cannot fail
    std::byte* dst = args.Get<std::byte>(kArgDst);
    auto* sums = reinterpret_cast<int32_t*>(dst + compensation_offset_);
    const auto* weights = reinterpret_cast<const int8_t*>(dst);
    const int64_t count = static_cast<int64_t>(origins_.size());
    threading::ParallelForItems(team, count, kSumsAtOnce, [&](int64_t i) {
      uint32_t sum = 0;
      for (int64_t offset : summands_) sum += weights[origins_[i] + offset - offset0_];
      sums[i] = static_cast<int32_t>(-128 * sum);
    });
  }

  const std::shared_ptr<const Primitive> copy_;
  const int64_t compensation_offset_, offset0_;
  const std::vector<int64_t> origins_, summands_;  // both count offset0
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveCompensated(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (!desc.dst.HasCompensation()) return Unimplemented("dst carries no compensation");
  if (desc.dst.ElementCount() == 0) return Unimplemented("nothing to sum up");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateCompensated(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  Attributes copy_attributes = request.attributes;
  copy_attributes.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(
      std::shared_ptr<const Primitive> copy,
      CreateReorder({.src = desc.src, .dst = desc.dst.WithoutExtra()}, copy_attributes, {}));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = copy->info().scratchpad_bytes;
  info.code_bytes = copy->info().code_bytes;
  return std::make_unique<Compensated>(std::move(info), desc.dst, std::move(copy));
}

}  // namespace tilewire::reorder
