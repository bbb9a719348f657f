// SPDX-License-Identifier: Apache-2.0
//
// To u8 by a range of run time. Elements that lie in one order on both sides are one run; with
// padding, every row of a channels-last tensor is one, and the zero points around it are filled in
// by the piece of work that its row of dst belongs to.
#include <cstring>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/kernels/elements/quantization_range.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantize/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::quantize {
namespace {

constexpr int64_t kChunk = DenseRunGenerator::kElementsAtOnce;

// The constants of a run are the range.
class RunGenerator final : public DenseRunGenerator {
 public:
  RunGenerator(absl::string_view name, const VectorUnit& unit)
      : DenseRunGenerator(name, {.unit = unit, .srcs = {DataType::kF32}, .dst = DataType::kU8}) {}

 private:
  Xbyak::Xmm Scale() const { return Vector(4); }
  Xbyak::Xmm ZeroPoint() const { return Vector(5); }
  Xbyak::Xmm Lowest() const { return Vector(6); }  // before the zero point is added
  Xbyak::Xmm Highest() const { return Vector(7); }

  void EmitConstants() override {
    vbroadcastss(Scale(), ptr[constants_]);
    vbroadcastss(ZeroPoint(), ptr[constants_ + 4]);
    unit().Zero(this, Lowest());
    vsubps(Lowest(), Lowest(), ZeroPoint());
    Broadcast(Highest(), 255.0f);
    vsubps(Highest(), Highest(), ZeroPoint());
  }

  // NaN becomes the lowest number: the instructions give their second source where the first one
  // is NaN.
  void EmitVectors(int vectors) override {
    constexpr int kNearestEven = 8;  // without an exception
    for (int v = 0; v < vectors; ++v) {
      const Xbyak::Xmm value = Value(v);
      Load(0, v, value);
      vdivps(value, value, Scale());
      vmaxps(value, value, Lowest());
      vminps(value, value, Highest());
      unit().Round(this, value, kNearestEven);
      vaddps(value, value, ZeroPoint());
    }
  }
};

// Immutable.
class Dense final : public Primitive {
 public:
  Dense(PrimitiveInfo info, const QuantizeDesc& desc, std::unique_ptr<const RunGenerator> generator)
      : Primitive(std::move(info)), desc_(desc), generator_(std::move(generator)) {
    const int rank = desc.src.rank();
    if (desc.src.dims() == desc.dst.dims()) return;
    for (int d = 2; d < rank - 1; ++d) rows_ *= desc.dst.dim(d);
    rows_ *= desc.dst.dim(0);
    src_row_ = desc.src.dim(rank - 1) * desc.src.dim(1);
    dst_row_ = desc.dst.dim(rank - 1) * desc.dst.dim(1);
    left_ = desc.padding_left.back() * desc.dst.dim(1);
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* src = First<const float>(args, kArgSrc);
    auto* dst = First<uint8_t>(args, kArgDst);
    const auto* range = First<const float>(args, kArgQuantizationRange);
    if (dst_row_ == 0) {
      const int64_t count = desc_.dst.PaddedElementCount();
      threading::ParallelForRanges(team, count, kChunk, [&](int64_t first, int64_t end) {
        RunElements(src + first, dst + first, end - first, range);
      });
      return;
    }
    threading::ParallelForItems(
        team, rows_, threading::ItemsAtOnce(kChunk, dst_row_),
        [&](int64_t row) { RunRow(src, dst + row * dst_row_, row, range); });
  }

  // The row of dst, with its border, or a row of the border.
  void RunRow(const float* src, uint8_t* dst, int64_t row, const float* range) const {
    const int zero = ZeroPointOf(range);
    const int64_t at = RowOfSrc(row);
    if (at < 0) {
      std::memset(dst, zero, dst_row_);
      return;
    }
    std::memset(dst, zero, left_);
    RunElements(src + at * src_row_, dst + left_, src_row_, range);
    std::memset(dst + left_ + src_row_, zero, dst_row_ - left_ - src_row_);
  }

  // -1 where dst's row lies in the border.
  int64_t RowOfSrc(int64_t row) const {
    const int width = desc_.dst.rank() - 1;
    const int first = desc_.dst.rank() - static_cast<int>(desc_.padding_left.size());
    int64_t of_src = 0, step = 1;
    for (int d = width - 1; d >= 0; --d) {
      if (d == 1) continue;
      const int64_t index =
          row % desc_.dst.dim(d) - (d < first ? 0 : desc_.padding_left[d - first]);
      if (index < 0 || index >= desc_.src.dim(d)) return -1;
      of_src += index * step;
      row /= desc_.dst.dim(d);
      step *= desc_.src.dim(d);
    }
    return of_src;
  }

  void RunElements(const float* src, uint8_t* dst, int64_t count, const float* range) const {
    generator_->Run({reinterpret_cast<const std::byte*>(src)}, reinterpret_cast<std::byte*>(dst),
                    count, range);
  }

  const QuantizeDesc desc_;
  int64_t rows_ = 1, src_row_ = 0, dst_row_ = 0, left_ = 0;  // elements; 0 without padding
  const std::unique_ptr<const RunGenerator> generator_;
};

// Whether width and then channels are innermost, without gaps.
bool HasDenseRows(const MemoryDesc& desc) {
  if (desc.rank() < 3 || !desc.IsPlain() || !desc.IsDense()) return false;
  int64_t stride = 1;
  for (int d : {1, desc.rank() - 1}) {
    if (desc.dim(d) != 1 && desc.stride(d) != stride) return false;
    stride *= desc.dim(d);
  }
  for (int d = desc.rank() - 2; d >= 0; --d) {
    if (d == 1) continue;
    if (desc.dim(d) != 1 && desc.stride(d) != stride) return false;
    stride *= desc.dim(d);
  }
  return true;
}

}  // namespace

absl::StatusOr<QuantizeDesc> ResolveByRange(const Request<QuantizeDesc>& request) {
  const QuantizeDesc& desc = request.desc;
  if (desc.range.IsZero()) return Unimplemented("takes a range of run time");
  ABSL_ASSIGN_OR_RETURN(QuantizeDesc resolved, ResolveReference(request));
  const MemoryDesc &src = resolved.src, &dst = resolved.dst;
  if (src.dims() == dst.dims()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc as_dst, src.WithDataType(DataType::kU8));
    if (as_dst == dst && dst.IsDense() && !dst.HasPadding()) return resolved;
    return Unimplemented("takes src and dst in one order, without gaps");
  }
  if (desc.padding_left.size() + 2 > static_cast<size_t>(src.rank()) || desc.padding_left.empty() ||
      !HasDenseRows(src) || !HasDenseRows(dst)) {
    return Unimplemented("takes padding of channels-last tensors");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateByRange(const Request<QuantizeDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RunGenerator>(
                                            request.facts.name, VectorUnit::Of(request.facts.isa)));
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), request.desc,
                                 std::move(generator));
}

}  // namespace tilewire::quantize
