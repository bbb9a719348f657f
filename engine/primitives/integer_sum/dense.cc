// SPDX-License-Identifier: Apache-2.0
//
// Integers that lie densely in one layout without padding, as vectors of f32 or, where the row has
// none, in a plain loop.
#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/element_primitives.h"
#include "engine/primitives/integer_sum/arithmetic.h"
#include "engine/primitives/integer_sum/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::integer_sum {
namespace {

std::vector<DataType> TypesOf(const std::vector<MemoryDesc>& tensors) {
  std::vector<DataType> types;
  for (const MemoryDesc& tensor : tensors) types.push_back(tensor.data_type());
  return types;
}

class DenseGenerator final : public DenseRunGenerator {
 public:
  DenseGenerator(absl::string_view name, const IntegerSumDesc& desc, const VectorUnit& unit)
      : DenseRunGenerator(name,
                          {.unit = unit, .srcs = TypesOf(desc.srcs), .dst = desc.dst.data_type()}),
        desc_(desc) {}

 private:
  static constexpr int kToNearestEven = 8;  // and no exception

  const Xbyak::Reg64 params_ = rax;  // scale and zero point of each source, and of dst
  Xbyak::Xmm Term(int v) const { return Vector(kFree + v); }
  Xbyak::Xmm Scale() const { return Vector(kFree + kUnroll); }
  Xbyak::Xmm Zero() const { return Vector(12); }

  void EmitConstants() override { lea(params_, ptr[rip + table_]); }

  void EmitTables() override {
    L(table_);
    for (size_t i = 0; i < desc_.srcs.size(); ++i)
      EmitParams(desc_.scales[i], desc_.zero_points[i]);
    EmitParams(desc_.dst_scale, desc_.dst_zero_point);
  }

  void EmitParams(float scale, int32_t zero_point) {
    dd(std::bit_cast<uint32_t>(scale));
    dd(std::bit_cast<uint32_t>(static_cast<float>(zero_point)));
  }

  // Loads the params of source i, or, after the last, of dst.
  void LoadParams(size_t i) {
    const int at = static_cast<int>(i * 2 * sizeof(float));
    vbroadcastss(Scale(), ptr[params_ + at]);
    vbroadcastss(Zero(), ptr[params_ + at + static_cast<int>(sizeof(float))]);
  }

  void EmitVectors(int vectors) override {
    for (size_t i = 0; i < desc_.srcs.size(); ++i) AddTerms(static_cast<int>(i), vectors);
    LoadParams(desc_.srcs.size());
    for (int v = 0; v < vectors; ++v) ToInteger(v);
  }

  void AddTerms(int i, int vectors) {
    LoadParams(i);
    for (int v = 0; v < vectors; ++v) {
      const Xbyak::Xmm term = i == 0 ? Value(v) : Term(v);
      Load(i, v, term);
      vsubps(term, term, Zero());
      vmulps(term, term, Scale());
      if (i > 0) vaddps(Value(v), Value(v), term);
    }
  }

  void ToInteger(int v) {
    const Xbyak::Xmm total = Value(v), none = Term(v);
    if (desc_.relu) {
      unit().Zero(this, none);
      vmaxps(total, total, none);
    }
    vdivps(total, total, Scale());
    unit().Round(this, total, kToNearestEven);
    vaddps(total, total, Zero());
  }

  const IntegerSumDesc desc_;
  Xbyak::Label table_;
};

// Immutable.
class DenseLoop final : public Primitive {
 public:
  DenseLoop(PrimitiveInfo info, const IntegerSumDesc& desc)
      : Primitive(std::move(info)), desc_(desc), count_(desc.dst.ElementCount()) {}

 private:
  static constexpr int64_t kElementsAtOnce = 32 * 1024;  // a piece of work for one thread

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    absl::InlinedVector<const std::byte*, 4> srcs;
    for (size_t i = 0; i < desc_.srcs.size(); ++i)
      srcs.push_back(args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i)));
    auto* const dst = args.Get<std::byte>(kArgDst);
    threading::ParallelForItems(team, count_, kElementsAtOnce,
                                [&](int64_t i) { RunElement(srcs, dst, i); });
  }

  void RunElement(absl::Span<const std::byte* const> srcs, std::byte* dst, int64_t i) const {
    const DataType type = desc_.dst.data_type();
    float real = 0;
    for (size_t s = 0; s < srcs.size(); ++s) {
      const float term = RealOf(LoadElement(desc_.srcs[s].data_type(), srcs[s], i), desc_.scales[s],
                                desc_.zero_points[s]);
      real = s == 0 ? term : real + term;
    }
    if (desc_.relu) real = std::max(real, 0.0f);
    StoreElement(type, IntegerOf(real, desc_.dst_scale, desc_.dst_zero_point, type), dst, i);
  }

  const IntegerSumDesc desc_;
  const int64_t count_;
};

absl::Status RequireDense(const MemoryDesc& desc, const MemoryDesc& dst) {
  const absl::StatusOr<MemoryDesc> as_dst = desc.WithDataType(dst.data_type());
  const bool same = as_dst.ok() && *as_dst == dst;
  if (same && desc.IsDense() && !desc.HasPadding() && desc.offset0() == 0) return absl::OkStatus();
  return Unimplemented("takes integers that lie densely in one layout, not ", desc.ToString(),
                       " to ", dst.ToString());
}

}  // namespace

absl::StatusOr<IntegerSumDesc> ResolveDense(const Request<IntegerSumDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(IntegerSumDesc resolved, ResolveReference(request));
  for (const MemoryDesc& src : resolved.srcs) ABSL_RETURN_IF_ERROR(RequireDense(src, resolved.dst));
  ABSL_RETURN_IF_ERROR(RequireDense(resolved.dst, resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<IntegerSumDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<DenseGenerator>(request.facts.name, request.desc,
                                                     VectorUnit::Of(request.facts.isa)));
  return MakeDensePrimitive(InfoOf(request), /*stay_zero=*/true, std::move(generator));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseLoop(const Request<IntegerSumDesc>& request) {
  return std::make_unique<DenseLoop>(InfoOf(request), request.desc);
}

}  // namespace tilewire::integer_sum
