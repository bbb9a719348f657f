// SPDX-License-Identifier: Apache-2.0
//
// Integers that lie densely in one layout without padding. The generated code is a loop over whole
// vectors, which are f32 in registers; the last count % lanes elements of a piece of work go
// through a plain loop, and all of them where the row has no vectors.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/integer_sum/arithmetic.h"
#include "engine/primitives/integer_sum/implementations.h"

namespace tilewire::integer_sum {
namespace {

constexpr int64_t kElementsAtOnce = 32 * 1024;  // elements: a piece of work for one thread

struct KernelArgs {
  const std::byte* const* srcs;
  std::byte* dst;
  int64_t vectors;
};
using KernelFunction = void (*)(const KernelArgs*);

class DenseGenerator final : public jit::Generator {
 public:
  DenseGenerator(absl::string_view name, const IntegerSumDesc& desc, const VectorUnit& unit)
      : Generator(name),
        desc_(desc),
        unit_(unit),
        conversion_(this, unit, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {9, 10, 11}, .tail = k1, .mask = k2}) {}

 private:
  static constexpr int kUnroll = 4;
  static constexpr int kToNearestEven = 8;  // and no exception

  // Arguments arrive in rdi.
  const Xbyak::Reg64 srcs_ = rsi, src_ = r9, dst_ = rdx;
  const Xbyak::Reg64 left_ = rcx;       // vectors not yet written
  const Xbyak::Reg64 offset_ = r8;      // bytes from the start
  const Xbyak::Reg64 constants_ = r10;  // scale and zero point of each source, and of dst
  Xbyak::Xmm Total(int v) const { return unit_.Vector(v); }
  Xbyak::Xmm Term(int v) const { return unit_.Vector(kUnroll + v); }
  Xbyak::Xmm Scale() const { return unit_.Vector(2 * kUnroll); }
  Xbyak::Xmm Zero() const { return unit_.Vector(12); }

  void Emit() override {
    mov(srcs_, ptr[rdi + offsetof(KernelArgs, srcs)]);
    mov(dst_, ptr[rdi + offsetof(KernelArgs, dst)]);
    mov(left_, ptr[rdi + offsetof(KernelArgs, vectors)]);
    xor_(offset_.cvt32(), offset_.cvt32());
    lea(constants_, ptr[rip + table_]);
    conversion_.BeginStores(desc_.dst.data_type());
    EmitLoop(kUnroll);
    EmitLoop(1);
    vzeroupper();
    ret();
    conversion_.EmitTable();
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
    vbroadcastss(Scale(), ptr[constants_ + at]);
    vbroadcastss(Zero(), ptr[constants_ + at + static_cast<int>(sizeof(float))]);
  }

  // Takes `vectors` per step while as many are left.
  void EmitLoop(int vectors) {
    EmitWhileLeft(this, left_, vectors, [&] {
      for (size_t i = 0; i < desc_.srcs.size(); ++i) AddTerms(i, vectors);
      LoadParams(desc_.srcs.size());
      for (int v = 0; v < vectors; ++v) StoreTotal(v);
      add(offset_, vectors * unit_.lanes());
    });
  }

  void AddTerms(size_t i, int vectors) {
    mov(src_, ptr[srcs_ + static_cast<int>(i * sizeof(void*))]);
    LoadParams(i);
    for (int v = 0; v < vectors; ++v) {
      const Xbyak::Xmm term = i == 0 ? Total(v) : Term(v);
      conversion_.Load(desc_.srcs[i].data_type(), term, src_ + offset_ + v * unit_.lanes(),
                       /*tail=*/false);
      vsubps(term, term, Zero());
      vmulps(term, term, Scale());
      if (i > 0) vaddps(Total(v), Total(v), term);
    }
  }

  void StoreTotal(int v) {
    const Xbyak::Xmm total = Total(v), none = Term(v);
    if (desc_.relu) {
      unit_.Zero(this, none);
      vmaxps(total, total, none);
    }
    vdivps(total, total, Scale());
    unit_.Round(this, total, kToNearestEven);
    vaddps(total, total, Zero());
    conversion_.Store(desc_.dst.data_type(), total, dst_ + offset_ + v * unit_.lanes(),
                      /*tail=*/false);
  }

  const IntegerSumDesc desc_;
  const VectorUnit unit_;
  VectorConversion conversion_;
  Xbyak::Label table_;
};

// Immutable.
class Dense final : public Primitive {
 public:
  // `generator`: for `lanes` elements at once; null: the loop takes all.
  Dense(PrimitiveInfo info, const IntegerSumDesc& desc, int64_t lanes,
        std::unique_ptr<const DenseGenerator> generator)
      : Primitive(std::move(info)),
        desc_(desc),
        lanes_(lanes),
        count_(desc.dst.ElementCount()),
        generator_(std::move(generator)) {}

 private:
  using Pointers = absl::InlinedVector<const std::byte*, 4>;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(count_, kElementsAtOnce), [&](int64_t task) {
      const int64_t begin = task * kElementsAtOnce;
      Pointers srcs;
      for (size_t i = 0; i < desc_.srcs.size(); ++i)
        srcs.push_back(args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i)) + begin);
      RunRange(srcs, args.Get<std::byte>(kArgDst) + begin,
               std::min(kElementsAtOnce, count_ - begin));
    });
  }

  void RunRange(const Pointers& srcs, std::byte* dst, int64_t count) const {
    const int64_t vectors = generator_ == nullptr ? 0 : count / lanes_;
    if (vectors > 0) {
      const KernelArgs args = {srcs.data(), dst, vectors};
      generator_->entry<KernelFunction>()(&args);
    }
    const DataType type = desc_.dst.data_type();
    for (int64_t i = vectors * lanes_; i < count; ++i) {
      float real = 0;
      for (size_t s = 0; s < srcs.size(); ++s) {
        const float term = RealOf(LoadElement(desc_.srcs[s].data_type(), srcs[s], i),
                                  desc_.scales[s], desc_.zero_points[s]);
        real = s == 0 ? term : real + term;
      }
      if (desc_.relu) real = std::max(real, 0.0f);
      StoreElement(type, IntegerOf(real, desc_.dst_scale, desc_.dst_zero_point, type), dst, i);
    }
  }

  const IntegerSumDesc desc_;
  const int64_t lanes_, count_;
  const std::unique_ptr<const DenseGenerator> generator_;
};

absl::Status RequireDense(const MemoryDesc& desc, const MemoryDesc& dst) {
  const absl::StatusOr<MemoryDesc> as_dst = desc.WithDataType(dst.data_type());
  const bool same = as_dst.ok() && *as_dst == dst;
  if (same && desc.IsDense() && !desc.HasPadding() && desc.offset0() == 0) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("takes integers that lie densely in one layout, not ", desc.ToString(), " to ",
                   dst.ToString()));
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
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), request.desc,
                                 VectorUnit::Of(request.facts.isa).lanes(), std::move(generator));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseLoop(const Request<IntegerSumDesc>& request) {
  return std::make_unique<Dense>(InfoOf(request), request.desc, /*lanes=*/1, nullptr);
}

}  // namespace tilewire::integer_sum
