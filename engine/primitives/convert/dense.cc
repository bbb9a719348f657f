// SPDX-License-Identifier: Apache-2.0
//
// Tensors that lie alike and without gaps are runs of elements in the order of memory. What pads
// them is 0 in every type.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/convert/conversion.h"
#include "engine/primitives/convert/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/ranges.h"

namespace tilewire::convert {
namespace {

// Immutable.
class Dense final : public SingleSource<std::byte> {
 public:
  Dense(PrimitiveInfo info, const ConvertDesc& desc)
      : SingleSource(std::move(info)),
        convert_(TypesOf(desc)),
        count_(desc.dst.PaddedElementCount()),
        src_size_(SizeOf(desc.src.data_type())),
        dst_size_(SizeOf(desc.dst.data_type())) {}

 private:
  static constexpr int64_t kElementsAtOnce = 16 * 1024;

  void RunOn(const std::byte* src, std::byte* dst, const threading::Team& team) const override {
    threading::ParallelForRanges(team, count_, kElementsAtOnce, [&](int64_t first, int64_t end) {
      convert_.Run(src + first * src_size_, end - first, dst + first * dst_size_);
    });
  }

  const ConversionChain convert_;
  const int64_t count_, src_size_, dst_size_;
};

}  // namespace

absl::StatusOr<ConvertDesc> ResolveDense(const Request<ConvertDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ConvertDesc resolved, ResolveReference(request));
  if (resolved.src.strides() != resolved.dst.strides() ||
      resolved.src.inner_blocks() != resolved.dst.inner_blocks()) {
    return Unimplemented("layouts differ");
  }
  if (!resolved.dst.IsDense()) return Unimplemented("not dense");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<ConvertDesc>& request) {
  return std::make_unique<Dense>(InfoOf(request), request.desc);
}

}  // namespace tilewire::convert
