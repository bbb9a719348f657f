// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/integer_sum_step.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/graph/quantization_params.h"
#include "engine/jit/generator.h"
#include "engine/kernels/accumulator_epilogue.h"
#include "engine/kernels/element_conversion.h"
#include "engine/kernels/vector_conversion.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

using graph::IntegerSum;
using graph::QuantizationParams;

constexpr int64_t kSumAtOnce = 32 * 1024;  // elements: a piece of work for one thread

struct IntegerSumTypes {
  std::vector<DataType> srcs;
  DataType dst = DataType::kU8;
};

struct IntegerSumArgs {
  const std::byte* const* srcs;
  std::byte* dst;
  int64_t vectors;
};
using IntegerSumFunction = void (*)(const IntegerSumArgs*);

class IntegerSumGenerator final : public jit::Generator {
 public:
  IntegerSumGenerator(absl::string_view name, const IntegerSum& sum, const IntegerSumTypes& types,
                      int lanes)
      : Generator(name),
        sum_(sum),
        types_(types),
        lanes_(lanes),
        conversion_(this, lanes, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {9, 10, 11}, .tail = k1, .mask = k2}) {}

 private:
  static constexpr int kUnroll = 4;
  static constexpr int kToNearestEven = 8;  // and no exception

  // Arguments arrive in rdi.
  const Xbyak::Reg64 srcs_ = rsi, src_ = r9, dst_ = rdx;
  const Xbyak::Reg64 left_ = rcx;       // vectors not yet written
  const Xbyak::Reg64 offset_ = r8;      // bytes from the start
  const Xbyak::Reg64 constants_ = r10;  // scale and zero point of each source, and of dst
  Xbyak::Xmm Total(int v) const { return VectorRegister(lanes_, v); }
  Xbyak::Xmm Term(int v) const { return VectorRegister(lanes_, kUnroll + v); }
  Xbyak::Xmm Scale() const { return VectorRegister(lanes_, 2 * kUnroll); }
  Xbyak::Xmm Zero() const { return VectorRegister(lanes_, 12); }

  void Emit() override {
    mov(srcs_, ptr[rdi + offsetof(IntegerSumArgs, srcs)]);
    mov(dst_, ptr[rdi + offsetof(IntegerSumArgs, dst)]);
    mov(left_, ptr[rdi + offsetof(IntegerSumArgs, vectors)]);
    xor_(offset_.cvt32(), offset_.cvt32());
    lea(constants_, ptr[rip + table_]);
    conversion_.BeginStores(types_.dst);
    EmitLoop(kUnroll);
    EmitLoop(1);
    vzeroupper();
    ret();
    conversion_.EmitTable();
    L(table_);
    for (const QuantizationParams& params : sum_.src_quantization) EmitParams(params);
    EmitParams(sum_.dst_quantization);
  }

  void EmitParams(const QuantizationParams& params) {
    dd(std::bit_cast<uint32_t>(params.scale));
    dd(std::bit_cast<uint32_t>(static_cast<float>(params.zero_point)));
  }

  // Of source i, or of dst behind the last.
  void LoadParams(size_t i) {
    const int at = static_cast<int>(i * 2 * sizeof(float));
    vbroadcastss(Scale(), ptr[constants_ + at]);
    vbroadcastss(Zero(), ptr[constants_ + at + static_cast<int>(sizeof(float))]);
  }

  // Takes `vectors` a step while as many are left.
  void EmitLoop(int vectors) {
    Xbyak::Label step, done;
    L(step);
    cmp(left_, vectors);
    jl(done, T_NEAR);
    for (size_t i = 0; i < sum_.src_quantization.size(); ++i) AddTerms(i, vectors);
    LoadParams(sum_.src_quantization.size());
    for (int v = 0; v < vectors; ++v) StoreTotal(v);
    add(offset_, vectors * lanes_);
    sub(left_, vectors);
    jmp(step, T_NEAR);
    L(done);
  }

  void AddTerms(size_t i, int vectors) {
    mov(src_, ptr[srcs_ + static_cast<int>(i * sizeof(void*))]);
    LoadParams(i);
    for (int v = 0; v < vectors; ++v) {
      const Xbyak::Xmm term = i == 0 ? Total(v) : Term(v);
      conversion_.Load(types_.srcs[i], term, src_ + offset_ + v * lanes_, /*tail=*/false);
      vsubps(term, term, Zero());
      vmulps(term, term, Scale());
      if (i > 0) vaddps(Total(v), Total(v), term);
    }
  }

  void StoreTotal(int v) {
    const Xbyak::Xmm total = Total(v), none = Term(v);
    if (sum_.relu) {
      lanes_ == 16 ? vpxord(none, none, none) : vxorps(none, none, none);
      vmaxps(total, total, none);
    }
    vdivps(total, total, Scale());
    lanes_ == 16 ? vrndscaleps(total, total, kToNearestEven)
                 : vroundps(Xbyak::Ymm(total.getIdx()), Xbyak::Ymm(total.getIdx()), kToNearestEven);
    vaddps(total, total, Zero());
    conversion_.Store(types_.dst, total, dst_ + offset_ + v * lanes_, /*tail=*/false);
  }

  const IntegerSum sum_;
  const IntegerSumTypes types_;
  const int lanes_;
  VectorConversion conversion_;
  Xbyak::Label table_;
};

// Immutable.
class IntegerSumStep final : public Primitive {
 public:
  // `generator`: for `lanes` elements at once; null: all by the loop.
  IntegerSumStep(PrimitiveInfo info, const IntegerSum& sum, IntegerSumTypes types, int64_t lanes,
                 std::unique_ptr<const IntegerSumGenerator> generator)
      : Primitive(std::move(info)),
        sum_(sum),
        types_(std::move(types)),
        lanes_(lanes),
        count_(Desc(kArgDst).ElementCount()),
        generator_(std::move(generator)) {}

 private:
  using Pointers = absl::InlinedVector<const std::byte*, 4>;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(count_, kSumAtOnce), [&](int64_t task) {
      const int64_t begin = task * kSumAtOnce;
      Pointers srcs;
      for (size_t i = 0; i < types_.srcs.size(); ++i)
        srcs.push_back(args.Get<const std::byte>(kArgMultipleSrc + static_cast<int>(i)) + begin);
      RunRange(srcs, args.Get<std::byte>(kArgDst) + begin, std::min(kSumAtOnce, count_ - begin));
    });
  }

  void RunRange(const Pointers& srcs, std::byte* dst, int64_t count) const {
    const int64_t vectors = generator_ == nullptr ? 0 : count / lanes_;
    if (vectors > 0) {
      const IntegerSumArgs args = {srcs.data(), dst, vectors};
      generator_->entry<IntegerSumFunction>()(&args);
    }
    for (int64_t i = vectors * lanes_; i < count; ++i) {
      float real = 0;
      for (size_t s = 0; s < srcs.size(); ++s) {
        const float term = graph::DequantizeElement(LoadElement(types_.srcs[s], srcs[s], i),
                                                    sum_.src_quantization[s]);
        real = s == 0 ? term : real + term;
      }
      if (sum_.relu) real = std::max(real, 0.0f);
      StoreElement(types_.dst, graph::QuantizeElement(real, sum_.dst_quantization, types_.dst), dst,
                   i);
    }
  }

  const IntegerSum sum_;
  const IntegerSumTypes types_;
  const int64_t lanes_, count_;
  const std::unique_ptr<const IntegerSumGenerator> generator_;
};

absl::Status CheckTensor(const MemoryDesc& desc, const MemoryDesc& dst) {
  const absl::StatusOr<MemoryDesc> as_dst = desc.WithDataType(dst.data_type());
  const bool same = IsByte(desc.data_type()) && as_dst.ok() && *as_dst == dst;
  if (same && desc.IsDense() && !desc.HasPadding() && desc.offset0() == 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("adds integers that lie densely in one layout, not ",
                                               desc.ToString(), " to ", dst.ToString()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Primitive>> CreateIntegerSumStep(
    const IntegerSum& sum, const std::vector<MemoryDesc>& srcs, const MemoryDesc& dst,
    cpu::Isa max_isa) {
  IntegerSumTypes types{{}, dst.data_type()};
  std::vector<ArgDesc> args;
  for (const MemoryDesc& src : srcs) {
    ABSL_RETURN_IF_ERROR(CheckTensor(src, dst));
    types.srcs.push_back(src.data_type());
    args.push_back({kArgMultipleSrc + static_cast<int>(args.size()), src});
  }
  ABSL_RETURN_IF_ERROR(CheckTensor(dst, dst));
  args.push_back({kArgDst, dst});
  PrimitiveInfo info = StepInfo("runtime/integer_sum", std::move(args));
  std::unique_ptr<const IntegerSumGenerator> generator;
  int lanes = 1;
  for (const cpu::Isa isa : {cpu::Isa::kAvx512, cpu::Isa::kAvx2}) {
    if (!max_isa.Includes(isa) || !cpu::Supports(isa)) continue;
    lanes = isa == cpu::Isa::kAvx512 ? 16 : 8;
    ABSL_ASSIGN_OR_RETURN(generator,
                          jit::Compile<IntegerSumGenerator>(info.name, sum, types, lanes));
    info.code_bytes = static_cast<int64_t>(generator->code_bytes());
    break;
  }
  return std::make_shared<IntegerSumStep>(std::move(info), sum, std::move(types), lanes,
                                          std::move(generator));
}

}  // namespace tilewire::runtime
