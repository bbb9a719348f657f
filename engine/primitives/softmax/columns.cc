// SPDX-License-Identifier: Apache-2.0
//
// Plain tensors whose axis is not the innermost dimension in memory, nchw among them: a lane of a
// vector is one row of the axis, and the elements of the row lie in as many vectors, a stride
// apart. A row does not depend on its neighbours.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::softmax {
namespace {

constexpr int kMostVectors = 4;  // side by side, in one walk along the axis

// `rows` neighbouring rows, a vector or a part of one after the other; `size` elements in each,
// `stride` elements apart.
class ColumnsWalk final : public jit::Generator {
 public:
  using Function = void (*)(const float* src, float* dst);

  ColumnsWalk(absl::string_view name, const VectorUnit& unit, int64_t rows, int64_t size,
              int64_t stride)
      : Generator(name),
        unit_(unit),
        vectors_(static_cast<int>(DivUp(rows, unit.lanes()))),
        tail_lanes_(static_cast<int>(rows % unit.lanes())),
        size_(size),
        stride_(stride),
        math_(this, unit, rax, k1),
        tail_(this, unit, {.spare = rax, .opmask = k2, .vector = 15}) {}

 private:
  using Vector = jit::VectorMath::Vector;
  static constexpr int kScratch0 = 8, kScratch1 = 9;

  Vector Value(int i) const { return unit_.Vector(i); }
  Vector Maximum(int i) const { return unit_.Vector(kMostVectors + i); }  // later the factor
  Vector Sum(int i) const { return unit_.Vector(10 + i); }
  bool IsMasked(int i) const { return tail_lanes_ != 0 && i == vectors_ - 1; }
  void Load(int i, const Xbyak::Reg64& from) {
    tail_.Load(Value(i), ptr[from + i * unit_.bytes()], IsMasked(i));
  }
  void Store(int i) { tail_.Store(ptr[to_ + i * unit_.bytes()], Value(i), IsMasked(i)); }

  // Calls step(i) for each vector of each element.
  template <typename Step>
  void Walk(Step step) {
    Xbyak::Label loop;
    mov(from_, src_);
    mov(to_, dst_);
    mov(left_, size_);
    L(loop);
    for (int i = 0; i < vectors_; ++i) step(i);
    add(from_, step_);
    add(to_, step_);
    dec(left_);
    jnz(loop, T_NEAR);
  }

  void Emit() override {
    if (tail_lanes_ != 0) tail_.Set(tail_lanes_);
    math_.LoadTable();
    mov(step_, stride_ * static_cast<int64_t>(sizeof(float)));
    EmitMaxima();
    EmitExponentials();
    EmitScaling();
    vzeroupper();
    ret();
    math_.EmitTable();
    if (tail_lanes_ != 0) tail_.EmitTable();
  }

  // vmaxps gives its second source when either is NaN. So NaN is passed over here, and comes back
  // with its exponential.
  void EmitMaxima() {
    for (int i = 0; i < vectors_; ++i)
      math_.Load(Maximum(i), -std::numeric_limits<float>::infinity());
    Walk([this](int i) {
      Load(i, from_);
      vmaxps(Maximum(i), Value(i), Maximum(i));
    });
  }

  void EmitExponentials() {
    for (int i = 0; i < vectors_; ++i) unit_.Zero(this, Sum(i));
    Walk([this](int i) {
      Load(i, from_);
      vsubps(Value(i), Value(i), Maximum(i));
      math_.Exp(Value(i), unit_.Vector(kScratch0), unit_.Vector(kScratch1));
      vaddps(Sum(i), Sum(i), Value(i));
      Store(i);
    });
  }

  void EmitScaling() {
    for (int i = 0; i < vectors_; ++i) {
      math_.Load(Maximum(i), 1.0f);
      vdivps(Maximum(i), Maximum(i), Sum(i));
    }
    Walk([this](int i) {
      Load(i, to_);
      vmulps(Value(i), Value(i), Maximum(i));
      Store(i);
    });
  }

  // Arguments arrive as System V rdi, rsi.
  const Xbyak::Reg64 src_ = rdi, dst_ = rsi;
  const Xbyak::Reg64 from_ = rdx, to_ = rcx, left_ = r8, step_ = r9;

  const VectorUnit unit_;
  const int vectors_, tail_lanes_;
  const int64_t size_, stride_;
  jit::VectorMath math_;
  jit::TailMask tail_;
};

// Immutable. A task is a group of neighbouring rows.
class Columns final : public Primitive {
 public:
  struct Shape {
    int64_t size, inner;  // elements along the axis, and of the dimensions inside it
    int64_t group;        // rows
  };

  Columns(PrimitiveInfo info, const MemoryDesc& desc, const Shape& shape,
          std::unique_ptr<const ColumnsWalk> whole, std::unique_ptr<const ColumnsWalk> last)
      : Primitive(std::move(info)),
        offset0_(desc.offset0()),
        shape_(shape),
        outer_(desc.ElementCount() / (shape.size * shape.inner)),
        whole_(std::move(whole)),
        last_(std::move(last)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + offset0_;
    float* dst = args.Get<float>(kArgDst) + offset0_;
    const int64_t groups = DivUp(shape_.inner, shape_.group);
    const int64_t tasks = outer_ * groups;
    const int64_t at_once = std::max<int64_t>(1, 8192 / (shape_.size * shape_.group));
    team.ParallelFor(DivUp(tasks, at_once), [&](int64_t piece) {
      const int64_t end = std::min(tasks, (piece + 1) * at_once);
      for (int64_t i = piece * at_once; i < end; ++i) {
        const int64_t column = i % groups * shape_.group;
        const int64_t offset = i / groups * shape_.size * shape_.inner + column;
        const bool is_whole = column + shape_.group <= shape_.inner;
        (is_whole ? whole_ : last_)->entry<ColumnsWalk::Function>()(src + offset, dst + offset);
      }
    });
  }

  const int64_t offset0_;
  const Shape shape_;
  const int64_t outer_;
  const std::unique_ptr<const ColumnsWalk> whole_, last_;  // last_: a last group that is smaller
};

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveColumns(const SoftmaxDesc& desc, const Attributes& attributes,
                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(SoftmaxDesc resolved, ResolveReference(desc, attributes, facts));
  const MemoryDesc& md = resolved.src;
  if (resolved.dst != md) return absl::UnimplementedError("layouts of src and dst differ");
  if (!md.IsPlain() || !md.IsDense()) return absl::UnimplementedError("not plain and dense");
  if (md.ElementCount() == 0) return absl::UnimplementedError("nothing to compute");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateColumns(const SoftmaxDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  Columns::Shape shape{.size = desc.src.dim(desc.axis)};
  shape.inner = shape.size == 1 ? 1 : desc.src.stride(desc.axis);  // any stride fits one element
  shape.group = std::min<int64_t>(shape.inner, kMostVectors * unit.lanes());
  const int64_t last = shape.inner % shape.group;
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  ABSL_ASSIGN_OR_RETURN(auto whole, jit::Compile<ColumnsWalk>(facts.name, unit, shape.group,
                                                              shape.size, shape.inner));
  info = WithCode(std::move(info), *whole);
  std::unique_ptr<const ColumnsWalk> rest;
  if (last != 0) {
    ABSL_ASSIGN_OR_RETURN(
        rest, jit::Compile<ColumnsWalk>(facts.name, unit, last, shape.size, shape.inner));
    info.code_bytes += static_cast<int64_t>(rest->code_bytes());
  }
  return std::make_unique<Columns>(std::move(info), desc.src, shape, std::move(whole),
                                   std::move(rest));
}

}  // namespace tilewire::softmax
