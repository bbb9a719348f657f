// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element after the other.
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/kernels/element_conversion.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layout.h"
#include "engine/primitives/quantize/implementations.h"

namespace tilewire::quantize {
namespace {

// Immutable.
class Reference final : public Primitive {
 public:
  Reference(PrimitiveInfo info, const QuantizeDesc& desc)
      : Primitive(std::move(info)), desc_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    // One piece: denormals are flushed as everywhere.
    team.ParallelFor(1, [&](int64_t) { RunAll(args); });
    ZeroPadding(desc_.dst, args.Find(kArgDst));
  }

  void RunAll(const ExecuteArgs& args) const {
    const MemoryDesc &src = desc_.src, &dst = desc_.dst;
    ForEachIndex(dst.dims(), [&](const Dims& index) {
      const size_t i = desc_.scales.size() == 1 ? 0 : index[desc_.axis];
      const float x = LoadElement(src.data_type(), args.Find(kArgSrc), src.Offset(index));
      const float scale = desc_.scales[i];
      const float zero_point = static_cast<float>(desc_.zero_points[i]);
      const float result =
          IsByte(dst.data_type()) ? Quantized(x, scale, zero_point) : (x - zero_point) * scale;
      StoreElement(dst.data_type(), result, args.Find(kArgDst), dst.Offset(index));
    });
  }

  // Saturated before it is rounded, so that NaN is the lowest integer.
  float Quantized(float x, float scale, float zero_point) const {
    const bool is_unsigned = desc_.dst.data_type() == DataType::kU8;
    const float lowest = (is_unsigned ? 0 : -128) - zero_point;
    const float highest = (is_unsigned ? 255 : 127) - zero_point;
    const float scaled = x / scale;
    if (!(scaled > lowest)) return lowest + zero_point;
    return std::nearbyint(scaled < highest ? scaled : highest) + zero_point;
  }

  const QuantizeDesc desc_;
};

}  // namespace

absl::StatusOr<QuantizeDesc> ResolveReference(const QuantizeDesc& desc,
                                              const Attributes& attributes,
                                              const ImplementationFacts&) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  const DataType from = desc.src.data_type(), to = desc.dst.data_type();
  const bool quantizes = from == DataType::kF32 && IsByte(to);
  const bool returns = to == DataType::kF32 && (IsByte(from) || from == DataType::kF32);
  if (!quantizes && !returns) {
    return absl::UnimplementedError(
        absl::StrCat("does not go from ", DataTypeName(from), " to ", DataTypeName(to)));
  }
  QuantizeDesc resolved = desc;
  if (desc.dst.IsAny()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc like, desc.src.WithDataType(to));
    ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, like));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const QuantizeDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts) {
  return std::make_unique<Reference>(
      BasicInfo(facts, PrimitiveKind::kQuantize, ArgsOf(desc.src, desc.dst), attributes), desc);
}

}  // namespace tilewire::quantize
