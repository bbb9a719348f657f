// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/sum/implementations.h"

namespace tilewire::sum {
namespace {

constexpr int64_t kChunk = 16 * 1024;  // elements: for one thread at a time

struct SumArgs {
  const std::byte* const* srcs;
  std::byte* dst;  // may be srcs[0]
  int64_t vectors;
};

class DenseGenerator final : public jit::Generator {
 public:
  DenseGenerator(absl::string_view name, const std::vector<float>& scales, DataType type,
                 const VectorUnit& unit)
      : Generator(name),
        scales_(scales),
        type_(type),
        unit_(unit),
        conversion_(this, unit, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {9, 10, 11}, .tail = k1, .mask = k2}) {}

 private:
  static constexpr int kUnroll = 4;

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 srcs_ = rsi;
  const Xbyak::Reg64 src_ = r9;
  const Xbyak::Reg64 dst_ = rdx;
  const Xbyak::Reg64 left_ = rcx;   // vectors not yet written
  const Xbyak::Reg64 offset_ = r8;  // bytes from the start
  const Xbyak::Reg64 scale_ = r10;  // address of the scales
  Xbyak::Xmm Total(int v) const { return unit_.Vector(v); }
  Xbyak::Xmm Term(int v) const { return unit_.Vector(kUnroll + v); }
  Xbyak::Xmm Scale() const { return unit_.Vector(2 * kUnroll); }

  void Emit() override {
    mov(srcs_, ptr[rdi + offsetof(SumArgs, srcs)]);
    mov(dst_, ptr[rdi + offsetof(SumArgs, dst)]);
    mov(left_, ptr[rdi + offsetof(SumArgs, vectors)]);
    xor_(offset_.cvt32(), offset_.cvt32());
    lea(scale_, ptr[rip + scale_table_]);
    conversion_.BeginStores(type_);
    EmitLoop(kUnroll);
    EmitLoop(1);
    vzeroupper();
    ret();
    conversion_.EmitTable();
    L(scale_table_);
    for (float scale : scales_) dd(std::bit_cast<uint32_t>(scale));
  }

  // Takes `vectors` per step while as many are left.
  void EmitLoop(int vectors) {
    const int vector_bytes = unit_.lanes() * static_cast<int>(SizeOf(type_));
    EmitWhileLeft(this, left_, vectors, [&] {
      for (int i = 0; i < static_cast<int>(scales_.size()); ++i) {
        mov(src_, ptr[srcs_ + i * static_cast<int>(sizeof(void*))]);
        vbroadcastss(Scale(), ptr[scale_ + i * static_cast<int>(sizeof(float))]);
        for (int v = 0; v < vectors; ++v) {
          const Xbyak::Xmm term = i == 0 ? Total(v) : Term(v);
          conversion_.Load(type_, term, src_ + offset_ + v * vector_bytes, /*tail=*/false);
          vmulps(term, term, Scale());
          if (i > 0) vaddps(Total(v), Total(v), term);
        }
      }
      for (int v = 0; v < vectors; ++v) {
        conversion_.Store(type_, Total(v), dst_ + offset_ + v * vector_bytes, /*tail=*/false);
      }
      add(offset_, vectors * vector_bytes);
    });
  }

  const std::vector<float> scales_;
  const DataType type_;
  const VectorUnit unit_;
  VectorConversion conversion_;
  Xbyak::Label scale_table_;
};

// Immutable.
class Dense final : public Primitive {
 public:
  Dense(PrimitiveInfo info, const SumDesc& desc, int64_t lanes,
        std::unique_ptr<const DenseGenerator> generator)
      : Primitive(std::move(info)),
        lanes_(lanes),
        sources_(static_cast<int>(desc.srcs.size())),
        dst_(desc.dst),
        element_bytes_(SizeOf(desc.dst.data_type())),
        count_(desc.dst.PaddedElementCount()),
        generator_(std::move(generator)) {}

 private:
  using Pointers = absl::InlinedVector<const std::byte*, 8>;
  using Vector = std::array<std::byte, 16 * sizeof(float)>;

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(count_, kChunk), [&](int64_t chunk) {
      const int64_t begin = (dst_.offset0() + chunk * kChunk) * element_bytes_;
      Pointers srcs;
      for (int i = 0; i < sources_; ++i) {
        srcs.push_back(args.Get<const std::byte>(kArgMultipleSrc + i) + begin);
      }
      RunRange(srcs, args.Get<std::byte>(kArgDst) + begin,
               std::min(kChunk, count_ - chunk * kChunk));
    });
    if (dst_.HasPadding()) ZeroPadding(dst_, args.Find(kArgDst));
  }

  void RunRange(const Pointers& srcs, std::byte* dst, int64_t count) const {
    const auto function = generator_->entry<void (*)(const SumArgs*)>();
    const SumArgs whole = {srcs.data(), dst, count / lanes_};
    if (whole.vectors > 0) function(&whole);
    const int64_t left_bytes = count % lanes_ * element_bytes_;
    if (left_bytes == 0) return;
    const int64_t done = whole.vectors * lanes_ * element_bytes_;
    absl::InlinedVector<Vector, 8> last(sources_);
    Pointers last_srcs;
    for (int i = 0; i < sources_; ++i) {
      std::memcpy(last[i].data(), srcs[i] + done, left_bytes);
      last_srcs.push_back(last[i].data());
    }
    const SumArgs rest = {last_srcs.data(), last[0].data(), 1};
    function(&rest);
    std::memcpy(dst + done, last[0].data(), left_bytes);
  }

  const int64_t lanes_;
  const int sources_;
  const MemoryDesc dst_;
  const int64_t element_bytes_;
  const int64_t count_;
  const std::unique_ptr<const DenseGenerator> generator_;
};

}  // namespace

absl::StatusOr<SumDesc> ResolveDense(const Request<SumDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(SumDesc resolved, ResolveReference(request));
  if (!resolved.dst.IsDense()) return absl::UnimplementedError("dst is not dense");
  for (const MemoryDesc& src : resolved.srcs) {
    if (src != resolved.dst) return absl::UnimplementedError("layouts differ");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<SumDesc>& request) {
  const SumDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(
      auto generator,
      jit::Compile<DenseGenerator>(request.facts.name, desc.scales, desc.dst.data_type(), unit));
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), desc, unit.lanes(),
                                 std::move(generator));
}

}  // namespace tilewire::sum
