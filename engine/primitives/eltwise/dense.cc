// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "engine/base/status_macros.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/generator.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/implementations.h"

namespace tilewire::eltwise {
namespace {

constexpr int64_t kChunk = 16 * 1024;  // elements: for one thread at a time

// void(const void* src, void* dst, int64_t vectors): dst = f(src), vectors >= 1. src may be dst.
class DenseGenerator final : public jit::Generator {
 public:
  DenseGenerator(absl::string_view name, const EltwiseOp& op, DataType type, const VectorUnit& unit)
      : Generator(name),
        unit_(unit),
        type_(type),
        emitter_(this, unit, op, {.table = rax, .scratch = {4, 5, 6, 7, 8}, .mask = k1}),
        conversion_(this, unit, /*tail_lanes=*/0,
                    {.spare = rcx, .scratch = {9, 10, 11}, .tail = k2, .mask = k3}) {}

 private:
  static constexpr int kUnroll = 4;

  // Registers. Arguments arrive as System V rdi, rsi, rdx.
  const Xbyak::Reg64 src_ = rdi;
  const Xbyak::Reg64 dst_ = rsi;
  const Xbyak::Reg64 left_ = rdx;  // vectors not yet written

  void Emit() override {
    emitter_.LoadTable();
    conversion_.BeginStores(type_);
    EmitLoop(kUnroll);
    EmitLoop(1);
    vzeroupper();
    ret();
    emitter_.EmitTable();
    conversion_.EmitTable();
  }

  // Takes `vectors` per step while as many are left.
  void EmitLoop(int vectors) {
    const int vector_bytes = unit_.lanes() * static_cast<int>(SizeOf(type_));
    EmitWhileLeft(this, left_, vectors, [&] {
      std::vector<int> registers;
      for (int v = 0; v < vectors; ++v) {
        conversion_.Load(type_, Vector(v), src_ + v * vector_bytes, /*tail=*/false);
        registers.push_back(v);
      }
      emitter_.Apply(registers);
      for (int v = 0; v < vectors; ++v) {
        conversion_.Store(type_, Vector(v), dst_ + v * vector_bytes, /*tail=*/false);
      }
      add(src_, vectors * vector_bytes);
      add(dst_, vectors * vector_bytes);
    });
  }

  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }

  const VectorUnit unit_;
  const DataType type_;
  jit::EltwiseEmitter emitter_;
  VectorConversion conversion_;
};

// Immutable.
class Dense final : public Primitive {
 public:
  Dense(PrimitiveInfo primitive_info, const EltwiseDesc& desc, int64_t lanes,
        std::unique_ptr<const DenseGenerator> generator)
      : Primitive(std::move(primitive_info)),
        lanes_(lanes),
        element_bytes_(SizeOf(desc.dst.data_type())),
        count_(desc.dst.PaddedElementCount()),
        dst_(desc.dst),
        zero_tail_(!functions::PreservesZero(desc.op) && desc.dst.HasPadding()),
        generator_(std::move(generator)) {}

 private:
  using Function = void (*)(const void* src, void* dst, int64_t vectors);

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = args.Get<const std::byte>(kArgSrc);
    auto* dst = args.Get<std::byte>(kArgDst);
    team.ParallelFor(DivUp(count_, kChunk), [&](int64_t chunk) {
      const int64_t begin = (dst_.offset0() + chunk * kChunk) * element_bytes_;
      RunRange(src + begin, dst + begin, std::min(kChunk, count_ - chunk * kChunk));
    });
    if (zero_tail_) ZeroPadding(dst_, args.Find(kArgDst));
  }

  void RunRange(const std::byte* src, std::byte* dst, int64_t count) const {
    const Function function = generator_->entry<Function>();
    const int64_t vectors = count / lanes_;
    if (vectors > 0) function(src, dst, vectors);
    const int64_t left = count - vectors * lanes_;
    if (left == 0) return;
    alignas(64) std::byte last[16 * sizeof(float)] = {};
    const int64_t done = vectors * lanes_ * element_bytes_;
    std::memcpy(last, src + done, left * element_bytes_);
    function(last, last, 1);
    std::memcpy(dst + done, last, left * element_bytes_);
  }

  const int64_t lanes_, element_bytes_;
  const int64_t count_;
  const MemoryDesc dst_;
  const bool zero_tail_;
  const std::unique_ptr<const DenseGenerator> generator_;
};

}  // namespace

absl::StatusOr<EltwiseDesc> ResolveDense(const Request<EltwiseDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(EltwiseDesc resolved, ResolveReference(request));
  if (resolved.src != resolved.dst) {
    return absl::UnimplementedError("layouts of src and dst differ");
  }
  if (!resolved.dst.IsDense()) return absl::UnimplementedError("not dense");
  if (!functions::HasCode(resolved.op.function))
    return absl::UnimplementedError(functions::RowOf(resolved.op.function).no_code);
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<DenseGenerator>(request.facts.name, desc.op,
                                                                     desc.dst.data_type(), unit));
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), desc, unit.lanes(),
                                 std::move(generator));
}

}  // namespace tilewire::eltwise
