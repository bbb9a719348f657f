// SPDX-License-Identifier: Apache-2.0
//
// To a descriptor whose elements are bounded (memory_desc.h): the elements of src, bytes that are
// copied as they are, are looked at first, and the best reorder to the same descriptor without the
// bound follows. A src that is bounded as much is not looked at again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"

namespace tilewire::reorder {
namespace {

int LargestMagnitude(const MemoryDesc& desc, const int8_t* elements) {
  int largest = 0;
  const auto see = [&](int8_t element) { largest = std::max(largest, std::abs(int{element})); };
  if (desc.IsDense()) {  // what pads it is zero
    const int8_t* const first = elements + desc.offset0();
    std::for_each(first, first + desc.PaddedElementCount(), see);
    return largest;
  }
  const SeparableOffsets offsets(desc);
  ForEachIndex(desc.dims(), [&](const Dims& index) { see(elements[offsets.Offset(index)]); });
  return largest;
}

// Immutable.
class BoundedReorder final : public Primitive {
 public:
  BoundedReorder(PrimitiveInfo info, std::shared_ptr<const Primitive> copy)
      : Primitive(std::move(info)), copy_(std::move(copy)) {}

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team&) const override {
    const MemoryDesc &src = Desc(kArgSrc), &dst = Desc(kArgDst);
    const bool keeps_bound = src.IsBounded() && src.extra().bound <= dst.extra().bound;
    if (keeps_bound || src.ElementCount() == 0) return absl::OkStatus();
    const int largest = LargestMagnitude(src, args.Get<const int8_t>(kArgSrc));
    if (largest <= dst.extra().bound) return absl::OkStatus();
    return InvalidArgument(name(), ": an element of src has the magnitude ", largest,
                           ", and dst is ", dst.ToString());
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    ExecuteArgs copy_args = args;
    if (scratchpad != nullptr) copy_args.Set(kArgScratchpad, scratchpad);
    (void)copy_->Execute(copy_args, team);  // has all its arguments, and so cannot fail
  }

  const std::shared_ptr<const Primitive> copy_;
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveBounded(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (!desc.dst.IsBounded()) return Unimplemented("the elements of dst are not bounded");
  ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
  ABSL_RETURN_IF_ERROR(RequireType(DataType::kS8, {&desc.src}));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBounded(const Request<ReorderDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(auto copy, CreateCopyInside(request, request.desc.dst.WithoutBound()));
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = copy->info().scratchpad_bytes;
  info.code_bytes = copy->info().code_bytes;
  return std::make_unique<BoundedReorder>(std::move(info), std::move(copy));
}

}  // namespace tilewire::reorder
