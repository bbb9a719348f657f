// SPDX-License-Identifier: Apache-2.0
//
// To u8 by a range of run time. Elements that lie in one order on both sides are one run; with
// padding, every row of a channels-last tensor is one, and the zero points around it are filled in
// by the piece of work that its row of dst belongs to.
#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/kernels/elements/quantization_range.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantize/implementations.h"

namespace tilewire::quantize {
namespace {

constexpr int64_t kChunk = 16 * 1024;  // elements: for one thread at a time
constexpr int64_t kMaxLanes = 16;

struct RunArgs {
  const float* src;
  uint8_t* dst;
  int64_t vectors;  // >= 1
  const float* range;
};

class RunGenerator final : public jit::Generator {
 public:
  RunGenerator(absl::string_view name, const VectorUnit& unit)
      : Generator(name),
        unit_(unit),
        conversion_(this, unit, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {9, 10, 11}, .tail = k2, .mask = k3}) {}

 private:
  static constexpr int kUnroll = 4;  // vectors 0 to 3

  const Xbyak::Reg64 args_ = rdi, src_ = rsi, dst_ = rdx, left_ = rcx, range_ = r8;
  Xbyak::Xmm Vector(int i) const { return unit_.Vector(i); }
  Xbyak::Xmm Scale() const { return Vector(4); }
  Xbyak::Xmm ZeroPoint() const { return Vector(5); }
  Xbyak::Xmm Lowest() const { return Vector(6); }  // before the zero point is added
  Xbyak::Xmm Highest() const { return Vector(7); }

  void Emit() override {
    mov(src_, ptr[args_ + offsetof(RunArgs, src)]);
    mov(dst_, ptr[args_ + offsetof(RunArgs, dst)]);
    mov(left_, ptr[args_ + offsetof(RunArgs, vectors)]);
    mov(range_, ptr[args_ + offsetof(RunArgs, range)]);
    vbroadcastss(Scale(), ptr[range_]);
    vbroadcastss(ZeroPoint(), ptr[range_ + 4]);
    unit_.Zero(this, Lowest());
    vsubps(Lowest(), Lowest(), ZeroPoint());
    unit_.Broadcast(this, Highest(), 255.0f, rax);
    vsubps(Highest(), Highest(), ZeroPoint());
    conversion_.BeginStores(DataType::kU8);
    EmitLoop(kUnroll);
    EmitLoop(1);
    vzeroupper();
    ret();
    conversion_.EmitTable();
  }

  // NaN becomes the lowest number: the instructions give their second source where the first one
  // is NaN.
  void EmitLoop(int vectors) {
    EmitWhileLeft(this, left_, vectors, [&] {
      for (int v = 0; v < vectors; ++v) {
        vmovups(Vector(v), ptr[src_ + v * unit_.bytes()]);
        vdivps(Vector(v), Vector(v), Scale());
        vmaxps(Vector(v), Vector(v), Lowest());
        vminps(Vector(v), Vector(v), Highest());
        Round(Vector(v));
        vaddps(Vector(v), Vector(v), ZeroPoint());
      }
      for (int v = 0; v < vectors; ++v)
        conversion_.Store(DataType::kU8, Vector(v), dst_ + v * unit_.lanes(), /*tail=*/false);
      add(src_, vectors * unit_.bytes());
      add(dst_, vectors * unit_.lanes());
    });
  }

  void Round(const Xbyak::Xmm& value) {
    constexpr int kNearestEven = 8;  // without an exception
    unit_.has_masks() ? vrndscaleps(value, value, kNearestEven)
                      : vroundps(value, value, kNearestEven);
  }

  const VectorUnit unit_;
  VectorConversion conversion_;
};

// Immutable.
class Dense final : public Primitive {
 public:
  Dense(PrimitiveInfo info, const QuantizeDesc& desc, int64_t lanes,
        std::unique_ptr<const RunGenerator> generator)
      : Primitive(std::move(info)), desc_(desc), lanes_(lanes), generator_(std::move(generator)) {
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
    const float* src = args.Get<const float>(kArgSrc) + desc_.src.offset0();
    uint8_t* dst = args.Get<uint8_t>(kArgDst) + desc_.dst.offset0();
    const float* range = args.Get<const float>(kArgQuantizationRange) + desc_.range.offset0();
    if (dst_row_ == 0) {
      const int64_t count = desc_.dst.PaddedElementCount();
      team.ParallelFor(DivUp(count, kChunk), [&](int64_t chunk) {
        const int64_t first = chunk * kChunk;
        RunElements(src + first, dst + first, std::min(kChunk, count - first), range);
      });
      return;
    }
    const int64_t rows = std::max<int64_t>(1, kChunk / dst_row_);
    team.ParallelFor(DivUp(rows_, rows), [&](int64_t piece) {
      const int64_t end = std::min(rows_, (piece + 1) * rows);
      for (int64_t row = piece * rows; row < end; ++row)
        RunRow(src, dst + row * dst_row_, row, range);
    });
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
    const auto function = generator_->entry<void (*)(const RunArgs*)>();
    const int64_t vectors = count / lanes_, left = count - vectors * lanes_;
    if (vectors > 0) {
      const RunArgs args = {src, dst, vectors, range};
      function(&args);
    }
    if (left == 0) return;
    alignas(64) float last[kMaxLanes] = {};
    alignas(64) uint8_t bytes[kMaxLanes];
    std::memcpy(last, src + vectors * lanes_, left * sizeof(float));
    const RunArgs args = {last, bytes, 1, range};
    function(&args);
    std::memcpy(dst + vectors * lanes_, bytes, left);
  }

  const QuantizeDesc desc_;
  const int64_t lanes_;
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
  if (desc.range.IsZero()) return absl::UnimplementedError("takes a range of run time");
  ABSL_ASSIGN_OR_RETURN(QuantizeDesc resolved, ResolveReference(request));
  const MemoryDesc &src = resolved.src, &dst = resolved.dst;
  if (src.dims() == dst.dims()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc as_dst, src.WithDataType(DataType::kU8));
    if (as_dst == dst && dst.IsDense() && !dst.HasPadding()) return resolved;
    return absl::UnimplementedError("takes src and dst in one order, without gaps");
  }
  if (desc.padding_left.size() + 2 > static_cast<size_t>(src.rank()) || desc.padding_left.empty() ||
      !HasDenseRows(src) || !HasDenseRows(dst)) {
    return absl::UnimplementedError("takes padding of channels-last tensors");
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateByRange(const Request<QuantizeDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RunGenerator>(
                                            request.facts.name, VectorUnit::Of(request.facts.isa)));
  return std::make_unique<Dense>(WithCode(InfoOf(request), *generator), request.desc,
                                 VectorUnit::Of(request.facts.isa).lanes(), std::move(generator));
}

}  // namespace tilewire::quantize
