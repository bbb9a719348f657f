// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/bands/band_plan.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/bands/row_window.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using runtime::RowBands;

constexpr int kRowAxis = 2;  // the dimension that is cut into bands

using Rows = Range;

// The work of one primitive of a chain in a band.
struct BandRows {
  Reach reach;
  Rows dst;
};

int64_t End(const Rows& rows) { return rows.begin + rows.size; }

// The same for all primitives of a chain, where the band computes the rows `last` of its result.
std::vector<BandRows> RowsOfBand(absl::Span<const RowWindow> windows, const Rows& last) {
  std::vector<BandRows> rows(windows.size());
  Rows dst = last;
  for (size_t i = windows.size(); i-- > 0;) {
    rows[i] = {ReachOf(windows[i], dst), dst};
    dst = rows[i].reach.src;
  }
  return rows;
}

// The same for a band after another one, which has left the rows `before`: those that it has not.
// `needed` are all that the next primitive reads.
struct NextRows {
  BandRows computed;
  Rows needed;
};

std::vector<NextRows> RowsAfter(absl::Span<const RowWindow> windows, const Rows& last,
                                absl::Span<const BandRows> before) {
  std::vector<NextRows> rows(windows.size());
  Rows needed = last;
  for (size_t i = windows.size(); i-- > 0;) {
    const bool is_last = i + 1 == windows.size();
    const int64_t begin = is_last ? needed.begin : std::max(needed.begin, End(before[i].dst));
    const Rows dst = {begin, std::max<int64_t>(0, End(needed) - begin)};
    rows[i] = {{{}, dst}, needed};
    if (dst.size > 0) rows[i].computed.reach = ReachOf(windows[i], dst);
    needed = dst.size > 0 ? rows[i].computed.reach.src : Rows{};
  }
  return rows;
}

int64_t BytesOfRow(const MemoryDesc& desc) {
  return desc.PaddedElementCount() * SizeOf(desc.data_type()) / desc.dim(0) / desc.dim(kRowAxis);
}

int64_t WeightsBytes(absl::Span<const PrimitiveRequest> chain) {
  int64_t bytes = 0;
  for (const PrimitiveRequest& request : chain)
    bytes += request.whole->Desc(kArgWeights).SizeBytes();
  return bytes;
}

// Cuts the rows of a chain's result into bands. A band ends where a row of the source of a
// deconvolution does, if all do, so that no row is spread twice.
std::vector<Rows> CutIntoBands(absl::Span<const RowWindow> windows, int64_t count) {
  const int64_t height = windows.back().out;
  int64_t together = 1;
  for (const RowWindow& window : windows) {
    if (window.spreads) together = std::min(together * window.stride, height + 1);
  }
  if (height % together != 0 || height / together < count) return SplitEvenly(height, count);
  std::vector<Rows> bands = SplitEvenly(height / together, count);
  for (Rows& band : bands) band = {band.begin * together, band.size * together};
  return bands;
}

// Whether the bands compute few enough rows twice: where threads take turns, of which there are
// some in an image, a thread computes all rows of its first band.
absl::Status RequireFewRowsTwice(absl::Span<const RowWindow> windows, absl::Span<const Rows> bands,
                                 const BandLimits& limits) {
  constexpr int64_t kTurns = 4;
  std::vector<int64_t> twice(windows.size(), 0);
  std::vector<BandRows> before = RowsOfBand(windows, bands[0]);
  for (const Rows& band : bands.subspan(1)) {
    std::vector<BandRows> rows = RowsOfBand(windows, band);
    const std::vector<NextRows> next = RowsAfter(windows, band, before);
    for (size_t i = 0; i < windows.size(); ++i)
      twice[i] += rows[i].dst.size - next[i].computed.dst.size;
    before = std::move(rows);
  }
  const int64_t turns = std::min<int64_t>(kTurns, bands.size());
  for (size_t i = 0; i < windows.size(); ++i) {
    const double share = static_cast<double>(turns) / static_cast<double>(bands.size());
    if (static_cast<double>(twice[i]) * share >
        (limits.most_rows - 1) * static_cast<double>(windows[i].out))
      return Unimplemented("too many rows would be computed twice");
  }
  return absl::OkStatus();
}

// The fewest bands that keep within the limits: their rows of the chain's result.
absl::StatusOr<std::vector<Rows>> ChooseBands(absl::Span<const PrimitiveRequest> chain,
                                              absl::Span<const RowWindow> windows,
                                              const BandLimits& limits) {
  const int64_t height = windows.back().out, weights_bytes = WeightsBytes(chain);
  if (weights_bytes > limits.most_weights_bytes)
    return Unimplemented("each band would read many weights");
  for (int64_t count = 2; count <= height; ++count) {
    std::vector<Rows> bands = CutIntoBands(windows, count);
    int64_t most_bytes = 0;
    for (const Rows& band : bands) {
      const std::vector<BandRows> rows = RowsOfBand(windows, band);
      int64_t bytes =
          weights_bytes + rows[0].reach.src.size * BytesOfRow(chain[0].whole->Desc(kArgSrc));
      for (size_t i = 0; i < chain.size(); ++i) {
        if (rows[i].reach.src.size < 1) return Unimplemented("a band reads nothing but padding");
        bytes += rows[i].dst.size * BytesOfRow(chain[i].whole->Desc(kArgDst));
      }
      most_bytes = std::max(most_bytes, bytes);
    }
    if (most_bytes > limits.most_bytes) continue;
    ABSL_RETURN_IF_ERROR(RequireFewRowsTwice(windows, bands, limits));
    return bands;
  }
  return Unimplemented("a single row is too large");
}

// One image of `rows` rows, with the strides of the whole tensor or without gaps.
absl::StatusOr<MemoryDesc> DescOfRows(const MemoryDesc& whole, int64_t rows, bool dense) {
  Dims dims = whole.dims();
  dims[0] = 1;
  dims[kRowAxis] = rows;
  if (dense) return runtime::LayoutLike(whole, dims);
  return whole.SubMemory(dims, Dims(dims.size(), 0));
}

OpDesc DescOfPart(const PrimitiveRequest& request, const MemoryDesc& src, const MemoryDesc& dst,
                  const Reach& reach) {
  return std::visit(
      [&](auto desc) -> OpDesc {
        using Desc = decltype(desc);
        constexpr bool kConvolves = std::is_same_v<Desc, ConvolutionDesc>;
        constexpr bool kWeighted = kConvolves || std::is_same_v<Desc, DeconvolutionDesc>;
        if constexpr (kWeighted || std::is_same_v<Desc, PoolingDesc>) {
          desc.src = src;
          desc.dst = dst;
          desc.padding_left[0] = reach.before;
          desc.padding_right[0] = reach.after;
        }
        if constexpr (kWeighted) {
          desc.weights = request.whole->Desc(kArgWeights);
          desc.bias = request.whole->Desc(kArgBias);
        }
        if constexpr (kConvolves) desc.algorithm = ConvolutionAlgorithm::kDirect;
        return desc;
      },
      request.desc);
}

int64_t RowBytes(const MemoryDesc& whole) {
  return whole.stride(kRowAxis) * SizeOf(whole.data_type());
}

// Creates the primitives of all bands, and gives each intermediate tensor its place in a worker's
// scratchpad.
class BandPlanner {
 public:
  BandPlanner(absl::Span<const PrimitiveRequest> chain, RequestPrimitive create)
      : chain_(chain), create_(create) {
    for (const PrimitiveRequest& request : chain) windows_.push_back(WindowOf(request));
  }

  absl::StatusOr<std::vector<RowBands::Band>> Plan(const BandLimits& limits) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<Rows> heights, ChooseBands(chain_, windows_, limits));
    ABSL_RETURN_IF_ERROR(PlaceTensors(heights));
    std::vector<RowBands::Band> bands;
    std::vector<BandRows> before;
    for (const Rows& height : heights) {
      std::vector<BandRows> rows = RowsOfBand(windows_, height);
      RowBands::Band& band = bands.emplace_back();
      for (size_t i = 0; i < chain_.size(); ++i) {
        ABSL_ASSIGN_OR_RETURN(band.alone.emplace_back(), PartAt(i, rows[i], rows));
      }
      if (!before.empty()) ABSL_RETURN_IF_ERROR(PlanNext(height, before, rows, &band));
      before = std::move(rows);
    }
    return bands;
  }

  int64_t scratchpad_bytes() const { return scratchpad_bytes_; }

 private:
  // An intermediate tensor in the scratchpad, as high as its largest band.
  struct Between {
    MemoryDesc desc;
    int64_t offset = 0;  // bytes
  };

  // One after the other.
  absl::Status PlaceTensors(const std::vector<Rows>& heights) {
    for (size_t i = 0; i + 1 < chain_.size(); ++i) {
      int64_t most_rows = 0;
      for (const Rows& height : heights)
        most_rows = std::max(most_rows, RowsOfBand(windows_, height)[i].dst.size);
      Between& between = between_.emplace_back();
      between.offset = scratchpad_bytes_;
      ABSL_ASSIGN_OR_RETURN(between.desc,
                            DescOfRows(chain_[i].whole->Desc(kArgDst), most_rows, /*dense=*/true));
      scratchpad_bytes_ += RoundUp(between.desc.SizeBytes(), AlignedBuffer::kAlignment);
    }
    return absl::OkStatus();
  }

  // The work of the band after the one that has left `before`.
  absl::Status PlanNext(const Rows& height, absl::Span<const BandRows> before,
                        absl::Span<const BandRows> rows, RowBands::Band* band) {
    const std::vector<NextRows> next = RowsAfter(windows_, height, before);
    for (size_t i = 0; i < chain_.size(); ++i) {
      if (next[i].computed.dst.size == 0) {
        band->next.emplace_back();
      } else {
        if (next[i].computed.reach.src.size < 1)
          return Unimplemented("a band reads nothing but padding");
        ABSL_ASSIGN_OR_RETURN(band->next.emplace_back(), PartAt(i, next[i].computed, rows));
      }
      if (i + 1 < chain_.size()) KeepRows(i, next[i], before[i].dst, rows[i].dst, &band->kept);
    }
    return absl::OkStatus();
  }

  // Rows of tensor `i` that begin at those of `before` go to where those of `now` begin.
  void KeepRows(size_t i, const NextRows& next, const Rows& before, const Rows& now,
                std::vector<RowBands::KeptRows>* kept) const {
    const MemoryDesc& desc = between_[i].desc;
    const int64_t rows = std::min(End(next.needed), End(before)) - next.needed.begin;
    if (rows <= 0 || before.begin == now.begin) return;
    const bool has_blocks = desc.stride(1) > desc.stride(kRowAxis);
    const int64_t first = next.needed.begin, row = RowBytes(desc);
    kept->push_back({.from = between_[i].offset + (first - before.begin) * row,
                     .to = between_[i].offset + (first - now.begin) * row,
                     .bytes = rows * row,
                     .step = desc.stride(1) * SizeOf(desc.data_type()),
                     .blocks = has_blocks ? desc.padded_dims()[1] / desc.BlockSize(1) : 1});
  }

  // `band`: the rows of all tensors that are in the scratchpad.
  absl::StatusOr<RowBands::Part> PartAt(size_t i, const BandRows& rows,
                                        absl::Span<const BandRows> band) {
    const Primitive& whole = *chain_[i].whole;
    const bool first = i == 0, last = i + 1 == chain_.size();
    const MemoryDesc& src_tensor = first ? whole.Desc(kArgSrc) : between_[i - 1].desc;
    const MemoryDesc& dst_tensor = last ? whole.Desc(kArgDst) : between_[i].desc;
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc src,
                          DescOfRows(src_tensor, rows.reach.src.size, /*dense=*/false));
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                          DescOfRows(dst_tensor, rows.dst.size, /*dense=*/false));
    RowBands::Part part;
    ABSL_ASSIGN_OR_RETURN(
        part.primitive,
        RequestLike(chain_[i], DescOfPart(chain_[i], src, dst, rows.reach), create_));
    if (part.primitive->info().scratchpad_bytes > 0)
      return Unimplemented("a primitive of the chain needs a scratchpad");
    const int64_t src_row = rows.reach.src.begin - (first ? 0 : band[i - 1].dst.begin);
    const int64_t dst_row = rows.dst.begin - (last ? 0 : band[i].dst.begin);
    part.src_offset = src_row * RowBytes(src_tensor) + (first ? 0 : between_[i - 1].offset);
    part.dst_offset = dst_row * RowBytes(dst_tensor) + (last ? 0 : between_[i].offset);
    return part;
  }

  const absl::Span<const PrimitiveRequest> chain_;
  const RequestPrimitive create_;
  std::vector<RowWindow> windows_;
  std::vector<Between> between_;  // the results of all primitives but the last
  int64_t scratchpad_bytes_ = 0;
};

std::vector<ArgDesc> ArgsOfChain(absl::Span<const PrimitiveRequest> chain) {
  std::vector<ArgDesc> args = {{kArgSrc, chain.front().whole->Desc(kArgSrc)}};
  for (size_t i = 0; i < chain.size(); ++i) {
    const MemoryDesc& weights = chain[i].whole->Desc(kArgWeights);
    const MemoryDesc& bias = chain[i].whole->Desc(kArgBias);
    const int index = static_cast<int>(i);
    if (!weights.IsZero()) args.push_back({runtime::WeightsOfChain(index), weights});
    if (!bias.IsZero()) args.push_back({runtime::BiasOfChain(index), bias});
  }
  args.push_back({kArgDst, chain.back().whole->Desc(kArgDst)});
  return args;
}

}  // namespace

BandLimits BandLimits::For(const cpu::Machine& machine) {
  constexpr int64_t kMost = 1 << 20;  // where cores share a larger cache, each has a part of it
  BandLimits limits;
  limits.most_bytes = std::clamp(machine.cache_bytes[1] / 2, limits.most_bytes, kMost);
  return limits;
}

bool MayJoinChain(const PrimitiveRequest& request) {
  // Neither what runs backward nor what saves something for it.
  const PropKind kind = std::visit([](const auto& desc) { return PropKindOf(desc); }, request.desc);
  if (kind != PropKind::kForwardInference) return false;
  const ImplementationTraits& traits = request.whole->info().traits;
  const MemoryDesc &src = request.whole->Desc(kArgSrc), &dst = request.whole->Desc(kArgDst);
  const auto is_real = [](const MemoryDesc& tensor) {
    return tensor.data_type() == DataType::kF32 || tensor.data_type() == DataType::kBf16;
  };
  return src.rank() == 4 && HasRowWindow(request) && is_real(src) && is_real(dst) &&
         dst.ElementCount() > 0 && src.BlockSize(kRowAxis) == 1 && dst.BlockSize(kRowAxis) == 1 &&
         !traits.is_reference && !traits.bits_depend_on_position;
}

bool KeepsWithinLimits(absl::Span<const PrimitiveRequest> chain, const BandLimits& limits) {
  std::vector<RowWindow> windows;
  for (const PrimitiveRequest& request : chain) windows.push_back(WindowOf(request));
  return ChooseBands(chain, windows, limits).ok();
}

absl::StatusOr<std::shared_ptr<const RowBands>> PlanBands(absl::Span<const PrimitiveRequest> chain,
                                                          const BandLimits& limits,
                                                          RequestPrimitive create) {
  BandPlanner planner(chain, create);
  ABSL_ASSIGN_OR_RETURN(std::vector<RowBands::Band> bands, planner.Plan(limits));
  return std::make_shared<const RowBands>(ArgsOfChain(chain), std::move(bands),
                                          planner.scratchpad_bytes());
}

}  // namespace tilewire::lowering
