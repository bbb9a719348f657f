// SPDX-License-Identifier: Apache-2.0
//
// Rows of a few elements would leave most lanes of a vector idle, and spend their time on the sums
// over lanes. So the rows of a group are transposed on the stack: a vector holds one element of
// each, a lane one row, which does not depend on its neighbours. The last group is filled up with
// zeros.
#include <algorithm>
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_math.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
namespace {

constexpr int kMaxLanes = 16;
constexpr int64_t kRowsOfTask = 2048;

// void(float* columns): vector i holds element i of each row; the result takes its place.
class ColumnsGenerator final : public jit::Generator {
 public:
  ColumnsGenerator(absl::string_view name, const VectorUnit& unit, int size)
      : Generator(name), unit_(unit), size_(size), math_(this, unit, rax, k1) {}

 private:
  using Vector = jit::VectorMath::Vector;
  static constexpr int kScratch0 = 8, kScratch1 = 9, kOfRow = 10, kSum = 11;  // 0 to 7: elements

  const VectorUnit unit_;
  const int size_;
  jit::VectorMath math_;

  Vector Element(int i) const { return unit_.Vector(i); }
  Xbyak::Address Column(int i) const { return ptr[rdi + i * unit_.bytes()]; }

  // vmaxps gives its second source when either is NaN. So NaN is passed over, and comes back with
  // its exponential.
  void Emit() override {
    const Vector of_row = unit_.Vector(kOfRow), sum = unit_.Vector(kSum);
    math_.LoadTable();
    math_.Load(of_row, -std::numeric_limits<float>::infinity());
    for (int i = 0; i < size_; ++i) {
      vmovups(Element(i), Column(i));
      vmaxps(of_row, Element(i), of_row);
    }
    unit_.Zero(this, sum);
    for (int i = 0; i < size_; ++i) {
      vsubps(Element(i), Element(i), of_row);
      math_.Exp(Element(i), unit_.Vector(kScratch0), unit_.Vector(kScratch1));
      vaddps(sum, sum, Element(i));
    }
    math_.Load(of_row, 1.0f);
    vdivps(of_row, of_row, sum);
    for (int i = 0; i < size_; ++i) {
      vmulps(Element(i), Element(i), of_row);
      vmovups(Column(i), Element(i));
    }
    vzeroupper();
    ret();
    math_.EmitTable();
  }
};

struct NarrowDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const float>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    threading::ParallelForRanges(run.team, rows, kRowsOfTask, [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; row += lanes)
        RunGroup(src + row * size, dst + row * size, std::min(lanes, end - row));
    });
  }
  size_t code_bytes() const { return generator->code_bytes(); }

  void RunGroup(const float* src, float* dst, int64_t count) const {
    alignas(64) float columns[MostNarrow(kMaxLanes) * kMaxLanes] = {};
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = 0; i < size; ++i) columns[i * lanes + row] = src[row * size + i];
    generator->entry<void (*)(float*)>()(columns);
    for (int64_t row = 0; row < count; ++row)
      for (int64_t i = 0; i < size; ++i) dst[row * size + i] = columns[i * lanes + row];
  }

  int64_t size, lanes, rows;
  std::unique_ptr<const ColumnsGenerator> generator;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Primitive>> CreateNarrow(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const int64_t size = desc.dst.dim(desc.axis);
  ABSL_ASSIGN_OR_RETURN(auto columns, jit::Compile<ColumnsGenerator>(request.facts.name, unit,
                                                                     static_cast<int>(size)));
  return MakeDriven(
      InfoOf(request),
      NarrowDriver{size, unit.lanes(), desc.dst.ElementCount() / size, std::move(columns)});
}

}  // namespace tilewire::softmax
