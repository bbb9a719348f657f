// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {
namespace {

// void(const float* src, float* dst, int64_t rows), rows >= 1. src may be dst.
class RowsGenerator final : public jit::Generator {
 public:
  RowsGenerator(absl::string_view name, const VectorUnit& unit, int64_t size)
      : Generator(name),
        unit_(unit),
        lanes_(unit.lanes()),
        size_(size),
        math_(this, unit, rax, k1),
        tail_(this, unit, {.spare = left_, .opmask = k2, .vector = 15}) {}

 private:
  static constexpr int kUnroll = 4;  // vectors at once, each with its own accumulator
  // Vector registers: 0 to 3 hold values, 4 to 7 accumulators, then come these. 15 may hold the
  // mask of the tail.
  static constexpr int kScratch0 = 8, kScratch1 = 9, kOfRow = 10, kFill = 11;

  // Arguments arrive as System V rdi, rsi, rdx.
  const Xbyak::Reg64 src_ = rdi, dst_ = rsi, rows_ = rdx;
  const Xbyak::Reg64 at_ = rcx;   // bytes into the row
  const Xbyak::Reg64 left_ = r8;  // steps of kUnroll vectors

  const VectorUnit unit_;
  const int lanes_;
  const int64_t size_;
  jit::VectorMath math_;
  jit::TailMask tail_;

  using Vector = jit::VectorMath::Vector;
  Vector Value(int i) const { return unit_.Vector(i); }
  Vector Accumulator(int i) const { return unit_.Vector(kUnroll + i); }
  Vector OfRow() const { return unit_.Vector(kOfRow); }  // the maximum, later the scale
  int VectorBytes() const { return unit_.bytes(); }
  bool HasTail() const { return size_ % lanes_ != 0; }

  void Emit() override {
    Xbyak::Label row;
    math_.LoadTable();
    if (HasTail()) tail_.Set(static_cast<int>(size_ % lanes_));
    L(row);
    EmitMaximum();
    EmitExponentials();
    EmitScaling();
    add(src_, size_ * 4);
    add(dst_, size_ * 4);
    dec(rows_);
    jnz(row, T_NEAR);
    vzeroupper();
    ret();
    math_.EmitTable();
    if (HasTail()) tail_.EmitTable();
  }

  // Calls step(i, whole) for each vector of the row, which begins at at_ + i * VectorBytes().
  void Walk(absl::FunctionRef<void(int, bool)> step) {
    const int64_t vectors = size_ / lanes_;
    xor_(at_, at_);
    if (vectors >= kUnroll) {
      Xbyak::Label loop;
      mov(left_, vectors / kUnroll);
      L(loop);
      for (int i = 0; i < kUnroll; ++i) step(i, true);
      add(at_, kUnroll * VectorBytes());
      dec(left_);
      jnz(loop, T_NEAR);
    }
    const int rest = static_cast<int>(vectors % kUnroll);
    for (int i = 0; i < rest; ++i) step(i, true);
    if (HasTail()) step(rest, false);
  }

  void Load(int i, const Xbyak::Reg64& row, bool whole) {
    tail_.Load(Value(i), ptr[row + at_ + i * VectorBytes()], /*masked=*/!whole);
  }
  void Store(int i, bool whole) {
    tail_.Store(ptr[dst_ + at_ + i * VectorBytes()], Value(i), /*masked=*/!whole);
  }

  // vmaxps gives its second source when either is NaN. So NaN is passed over here, and comes back
  // with its exponential.
  void EmitMaximum() {
    const Vector fill = unit_.Vector(kFill);
    math_.Load(fill, -std::numeric_limits<float>::infinity());
    for (int i = 0; i < kUnroll; ++i) vmovaps(Accumulator(i), fill);
    Walk([&](int i, bool whole) {
      Load(i, src_, whole);
      if (!whole) tail_.ReplaceOthers(Value(i), fill);
      vmaxps(Accumulator(i), Value(i), Accumulator(i));
    });
    Reduce([this](const Vector& a, const Vector& b) { vmaxps(a, b, a); });
    vmovaps(OfRow(), Accumulator(0));
  }

  void EmitExponentials() {
    const Vector scratch0 = unit_.Vector(kScratch0), scratch1 = unit_.Vector(kScratch1);
    for (int i = 0; i < kUnroll; ++i) unit_.Zero(this, Accumulator(i));
    Walk([&](int i, bool whole) {
      Load(i, src_, whole);
      vsubps(Value(i), Value(i), OfRow());
      math_.Exp(Value(i), scratch0, scratch1);
      if (!whole) {
        unit_.Zero(this, scratch0);
        tail_.ReplaceOthers(Value(i), scratch0);
      }
      vaddps(Accumulator(i), Accumulator(i), Value(i));
      Store(i, whole);
    });
    Reduce([this](const Vector& a, const Vector& b) { vaddps(a, a, b); });
  }

  void EmitScaling() {
    math_.Load(OfRow(), 1.0f);
    vdivps(OfRow(), OfRow(), Accumulator(0));
    Walk([&](int i, bool whole) {
      Load(i, dst_, whole);
      vmulps(Value(i), Value(i), OfRow());
      Store(i, whole);
    });
  }

  // Combines all lanes of all accumulators, into every lane of the first.
  void Reduce(absl::FunctionRef<void(const Vector&, const Vector&)> combine) {
    for (int width = kUnroll / 2; width >= 1; width /= 2) {
      for (int i = 0; i < width; ++i) combine(Accumulator(i), Accumulator(i + width));
    }
    const int sum = Accumulator(0).getIdx(), other = kScratch0;
    if (unit_.bytes() == 64) {
      vextractf64x4(Xbyak::Ymm(other), Xbyak::Zmm(sum), 1);
      combine(Xbyak::Ymm(sum), Xbyak::Ymm(other));
    }
    vextractf128(Xbyak::Xmm(other), Xbyak::Ymm(sum), 1);
    combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
    vmovhlps(Xbyak::Xmm(other), Xbyak::Xmm(sum), Xbyak::Xmm(sum));
    combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
    vmovshdup(Xbyak::Xmm(other), Xbyak::Xmm(sum));
    combine(Xbyak::Xmm(sum), Xbyak::Xmm(other));
    vbroadcastss(Accumulator(0), Xbyak::Xmm(sum));
  }
};

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo info, const SoftmaxDesc& desc, std::unique_ptr<const RowsGenerator> generator)
      : Primitive(std::move(info)),
        offset0_(desc.dst.offset0()),
        size_(desc.dst.dim(desc.axis)),
        rows_(size_ == 0 ? 0 : desc.dst.ElementCount() / size_),
        generator_(std::move(generator)) {}

 private:
  using Function = void (*)(const float* src, float* dst, int64_t rows);

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + offset0_;
    float* dst = args.Get<float>(kArgDst) + offset0_;
    const auto function = generator_->entry<Function>();
    const int64_t rows_per_task = std::max<int64_t>(1, 8192 / std::max<int64_t>(1, size_));
    team.ParallelFor(DivUp(rows_, rows_per_task), [&](int64_t task) {
      const int64_t first = task * rows_per_task;
      function(src + first * size_, dst + first * size_, std::min(rows_per_task, rows_ - first));
    });
  }

  const int64_t offset0_, size_, rows_;
  const std::unique_ptr<const RowsGenerator> generator_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const SoftmaxDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts) {
  const int64_t size = desc.dst.dim(desc.axis);
  if (size > 0 && size <= MostNarrow(VectorUnit::Of(facts.isa).lanes()))
    return CreateNarrow(desc, attributes, facts);
  if (size >= int64_t{1} << 28) return absl::UnimplementedError("rows of 1 GiB and more");
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<RowsGenerator>(facts.name, VectorUnit::Of(facts.isa), size));
  return std::make_unique<Rows>(WithCode(InfoOf(desc, attributes, facts), *generator), desc,
                                std::move(generator));
}

}  // namespace tilewire::softmax
