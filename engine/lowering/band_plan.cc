// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/band_plan.h"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/row_window.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using runtime::RowBands;

constexpr int kRowAxis = 2;  // the dimension that is cut into bands

using Rows = Range;

// What one primitive of a chain has to do in a band.
struct BandRows {
  Reach reach;
  Rows dst;
};

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

// The fewest bands that keep within the limits: their rows of the chain's result.
absl::StatusOr<std::vector<Rows>> ChooseBands(absl::Span<const PrimitiveRequest> chain,
                                              absl::Span<const RowWindow> windows,
                                              const BandLimits& limits) {
  const int64_t height = windows.back().out, weights_bytes = WeightsBytes(chain);
  for (int64_t count = 2; count <= height; ++count) {
    std::vector<Rows> bands = CutIntoBands(windows, count);
    std::vector<int64_t> computed(chain.size(), 0);
    int64_t most_bytes = 0;
    for (const Rows& band : bands) {
      const std::vector<BandRows> rows = RowsOfBand(windows, band);
      int64_t bytes =
          weights_bytes + rows[0].reach.src.size * BytesOfRow(chain[0].whole->Desc(kArgSrc));
      for (size_t i = 0; i < chain.size(); ++i) {
        if (rows[i].reach.src.size < 1)
          return absl::UnimplementedError("a band reads nothing but padding");
        bytes += rows[i].dst.size * BytesOfRow(chain[i].whole->Desc(kArgDst));
        computed[i] += rows[i].dst.size;
      }
      most_bytes = std::max(most_bytes, bytes);
    }
    for (size_t i = 0; i < chain.size(); ++i) {
      if (static_cast<double>(computed[i]) > limits.most_rows * static_cast<double>(windows[i].out))
        return absl::UnimplementedError("too many rows would be computed twice");
    }
    if (most_bytes <= limits.most_bytes) return bands;
  }
  return absl::UnimplementedError("a single row is too large");
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
      : chain_(chain), create_(create), between_(chain.size(), 0) {
    for (const PrimitiveRequest& request : chain) windows_.push_back(WindowOf(request));
  }

  absl::StatusOr<std::vector<RowBands::Band>> Plan(const BandLimits& limits) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<Rows> heights, ChooseBands(chain_, windows_, limits));
    ABSL_RETURN_IF_ERROR(PlaceTensors(heights));
    std::vector<RowBands::Band> bands;
    for (const Rows& height : heights) {
      ABSL_ASSIGN_OR_RETURN(bands.emplace_back(), BandAt(height));
    }
    return bands;
  }

  int64_t scratchpad_bytes() const { return scratchpad_bytes_; }

 private:
  // One after the other, each as large as its largest band.
  absl::Status PlaceTensors(const std::vector<Rows>& heights) {
    for (size_t i = 0; i + 1 < chain_.size(); ++i) {
      between_[i] = scratchpad_bytes_;
      int64_t most_rows = 0;
      for (const Rows& height : heights)
        most_rows = std::max(most_rows, RowsOfBand(windows_, height)[i].dst.size);
      ABSL_ASSIGN_OR_RETURN(const MemoryDesc largest,
                            DescOfRows(chain_[i].whole->Desc(kArgDst), most_rows, /*dense=*/true));
      scratchpad_bytes_ += RoundUp(largest.SizeBytes(), AlignedBuffer::kAlignment);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<RowBands::Band> BandAt(const Rows& height) {
    const std::vector<BandRows> rows = RowsOfBand(windows_, height);
    RowBands::Band band;
    for (size_t i = 0; i < chain_.size(); ++i) {
      ABSL_ASSIGN_OR_RETURN(band.emplace_back(), PartAt(i, rows[i]));
    }
    return band;
  }

  absl::StatusOr<RowBands::Part> PartAt(size_t i, const BandRows& rows) {
    const Primitive& whole = *chain_[i].whole;
    const bool first = i == 0, last = i + 1 == chain_.size();
    const MemoryDesc &whole_src = whole.Desc(kArgSrc), &whole_dst = whole.Desc(kArgDst);
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc src,
                          DescOfRows(whole_src, rows.reach.src.size, /*dense=*/!first));
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                          DescOfRows(whole_dst, rows.dst.size, /*dense=*/!last));
    RowBands::Part part;
    ABSL_ASSIGN_OR_RETURN(
        part.primitive, create_(DescOfPart(chain_[i], src, dst, rows.reach), chain_[i].attributes));
    if (part.primitive->name() != whole.name())
      return absl::UnimplementedError("a band would take another implementation");
    if (part.primitive->info().scratchpad_bytes > 0)
      return absl::UnimplementedError("a primitive of the chain needs a scratchpad");
    part.src_offset = first ? rows.reach.src.begin * RowBytes(whole_src) : between_[i - 1];
    part.dst_offset = last ? rows.dst.begin * RowBytes(whole_dst) : between_[i];
    return part;
  }

  const absl::Span<const PrimitiveRequest> chain_;
  const RequestPrimitive create_;
  std::vector<RowWindow> windows_;
  std::vector<int64_t> between_;  // where a primitive's result begins in the scratchpad
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

bool MayJoinChain(const PrimitiveRequest& request) {
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
