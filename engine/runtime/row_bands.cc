// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/row_bands.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/step_rows.h"

namespace tilewire::runtime {
namespace {

constexpr int kHeight = 2;  // the dimension that is cut into bands

using Rows = Range;

// A link along the height: row o of the result reads `span` rows from o * stride - padding on.
struct RowWindow {
  int64_t in = 0, out = 0, span = 1, stride = 1, padding = 0;
};

RowWindow WindowOf(const PrimitiveRequest& link) {
  const Primitive& whole = *link.whole;
  RowWindow window{whole.Desc(kArgSrc).dim(kHeight), whole.Desc(kArgDst).dim(kHeight)};
  if (const auto* pooling = std::get_if<PoolingDesc>(&link.desc)) {
    window.span = pooling->kernel[0];
    window.stride = pooling->strides[0];
    window.padding = pooling->padding_left[0];
    return window;
  }
  const auto& convolution = std::get<ConvolutionDesc>(link.desc);
  const MemoryDesc& weights = whole.Desc(kArgWeights);
  window.span = (weights.dim(weights.rank() - 2) - 1) * (convolution.dilations[0] + 1) + 1;
  window.stride = convolution.strides[0];
  window.padding = convolution.padding_left[0];
  return window;
}

// What rows `dst` of a result read, and how many rows of padding stand before and behind it.
struct Reach {
  Rows src;
  int64_t before = 0, behind = 0;
};

Reach ReachOf(const RowWindow& window, const Rows& dst) {
  const int64_t first = dst.begin * window.stride - window.padding;
  const int64_t end = (dst.begin + dst.size - 1) * window.stride - window.padding + window.span;
  Reach reach;
  reach.src.begin = std::max<int64_t>(first, 0);
  reach.src.size = std::min(end, window.in) - reach.src.begin;
  reach.before = reach.src.begin - first;
  reach.behind = std::max<int64_t>(end - window.in, 0);
  return reach;
}

// For the rows `last` of a chain's result: what each link has to do, the first link first.
struct LinkRows {
  Reach reach;
  Rows dst;
};

std::vector<LinkRows> RowsOfLinks(absl::Span<const RowWindow> windows, const Rows& last) {
  std::vector<LinkRows> rows(windows.size());
  Rows dst = last;
  for (size_t i = windows.size(); i-- > 0;) {
    rows[i] = {ReachOf(windows[i], dst), dst};
    dst = rows[i].reach.src;
  }
  return rows;
}

int64_t BytesOfRow(const MemoryDesc& desc) {
  return desc.PaddedElementCount() * SizeOf(desc.data_type()) / desc.dim(0) / desc.dim(kHeight);
}

// The fewest bands that keep within the limits.
absl::StatusOr<std::vector<Rows>> ChooseBands(absl::Span<const PrimitiveRequest> links,
                                              absl::Span<const RowWindow> windows,
                                              const BandLimits& limits) {
  const int64_t height = windows.back().out;
  int64_t weights_bytes = 0;
  for (const PrimitiveRequest& link : links)
    weights_bytes += link.whole->Desc(kArgWeights).SizeBytes();
  for (int64_t count = 2; count <= height; ++count) {
    std::vector<Rows> bands = SplitEvenly(height, count);
    std::vector<int64_t> computed(links.size(), 0);
    int64_t most_bytes = 0;
    for (const Rows& band : bands) {
      const std::vector<LinkRows> rows = RowsOfLinks(windows, band);
      int64_t bytes =
          weights_bytes + rows[0].reach.src.size * BytesOfRow(links[0].whole->Desc(kArgSrc));
      for (size_t i = 0; i < links.size(); ++i) {
        if (rows[i].reach.src.size < 1) return absl::UnimplementedError("rows of padding alone");
        bytes += rows[i].dst.size * BytesOfRow(links[i].whole->Desc(kArgDst));
        computed[i] += rows[i].dst.size;
      }
      most_bytes = std::max(most_bytes, bytes);
    }
    for (size_t i = 0; i < links.size(); ++i) {
      if (static_cast<double>(computed[i]) > limits.most_rows * static_cast<double>(windows[i].out))
        return absl::UnimplementedError("too many rows would be computed twice");
    }
    if (most_bytes <= limits.most_bytes) return bands;
  }
  return absl::UnimplementedError("a single row is too large");
}

// One image of `rows` rows, with the strides of the whole or without gaps.
absl::StatusOr<MemoryDesc> BandOf(const MemoryDesc& whole, int64_t rows, bool dense) {
  Dims dims = whole.dims();
  dims[0] = 1;
  dims[kHeight] = rows;
  if (dense) return LayoutLike(whole, dims);
  return whole.SubMemory(dims, Dims(dims.size(), 0));
}

OpDesc DescOfBand(const PrimitiveRequest& link, const MemoryDesc& src, const MemoryDesc& dst,
                  const Reach& reach) {
  return std::visit(
      [&](auto desc) -> OpDesc {
        using Desc = decltype(desc);
        if constexpr (std::is_same_v<Desc, ConvolutionDesc> || std::is_same_v<Desc, PoolingDesc>) {
          desc.src = src;
          desc.dst = dst;
          desc.padding_left[0] = reach.before;
          desc.padding_right[0] = reach.behind;
        }
        if constexpr (std::is_same_v<Desc, ConvolutionDesc>) {
          desc.algorithm = ConvolutionAlgorithm::kDirect;
          desc.weights = link.whole->Desc(kArgWeights);
          desc.bias = link.whole->Desc(kArgBias);
        }
        return desc;
      },
      link.desc);
}

// A link in one band.
struct BandStep {
  std::shared_ptr<const Primitive> primitive;
  int64_t src_offset = 0, dst_offset = 0;  // bytes: into the image, or into the scratchpad
};
using Band = std::vector<BandStep>;

int64_t RowBytes(const MemoryDesc& whole) {
  return whole.stride(kHeight) * SizeOf(whole.data_type());
}

// Immutable.
class RowBands final : public Primitive {
 public:
  // More threads share a chain only if they take whole bands from each other.
  static constexpr int64_t kMostWorkers = 32;

  RowBands(PrimitiveInfo info, std::vector<Band> bands, int64_t scratchpad_bytes)
      : Primitive(std::move(info)),
        bands_(std::move(bands)),
        images_(Desc(kArgSrc).dim(0)),
        src_image_(Desc(kArgSrc).stride(0) * SizeOf(Desc(kArgSrc).data_type())),
        dst_image_(Desc(kArgDst).stride(0) * SizeOf(Desc(kArgDst).data_type())),
        worker_bytes_(scratchpad_bytes) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const int64_t bands = static_cast<int64_t>(bands_.size()), all = images_ * bands;
    const int64_t workers = std::min({int64_t{team.threads()}, all, kMostWorkers});
    std::atomic<int64_t> next = 0;
    team.ParallelFor(workers, [&](int64_t worker) {
      std::byte* const scratch = scratchpad + worker * worker_bytes_;
      for (int64_t i = next++; i < all; i = next++)
        RunBand(args, bands_[i % bands], i / bands, scratch);
    });
  }

  void RunBand(const ExecuteArgs& args, const Band& band, int64_t image, std::byte* scratch) const {
    const std::byte* src = args.Get<const std::byte>(kArgSrc) + image * src_image_;
    for (size_t i = 0; i < band.size(); ++i) {
      const BandStep& step = band[i];
      const bool last = i + 1 == band.size();
      std::byte* const dst = last ? args.Get<std::byte>(kArgDst) + image * dst_image_ : scratch;
      ExecuteArgs link;
      link.Set(kArgSrc, src + step.src_offset).Set(kArgDst, dst + step.dst_offset);
      const int index = static_cast<int>(i);
      for (auto [arg, from] : {std::pair<int, int>(kArgWeights, WeightsOfLink(index)),
                               std::pair<int, int>(kArgBias, BiasOfLink(index))}) {
        if (const void* constant = args.Find(from); constant != nullptr) link.Set(arg, constant);
      }
      // Nothing is missing that could make it fail.
      step.primitive->Execute(link, threading::Team::Serial()).IgnoreError();
      src = scratch;
    }
  }

  const std::vector<Band> bands_;
  const int64_t images_, src_image_, dst_image_;  // bytes
  const int64_t worker_bytes_;
};

// Creates the links' primitives for bands, and gives each tensor between them its place.
class BandPlanner {
 public:
  BandPlanner(absl::Span<const PrimitiveRequest> links, RequestPrimitive create)
      : links_(links), create_(create), between_(links.size(), 0) {
    for (const PrimitiveRequest& link : links) windows_.push_back(WindowOf(link));
  }

  absl::StatusOr<std::vector<Band>> Plan(const BandLimits& limits) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<Rows> heights, ChooseBands(links_, windows_, limits));
    ABSL_RETURN_IF_ERROR(PlaceTensors(heights));
    std::vector<Band> bands;
    for (const Rows& height : heights) {
      ABSL_ASSIGN_OR_RETURN(bands.emplace_back(), BandAt(height));
    }
    return bands;
  }

  int64_t scratchpad_bytes() const { return scratchpad_bytes_; }

 private:
  // The largest band of each decides; they follow each other.
  absl::Status PlaceTensors(const std::vector<Rows>& heights) {
    for (size_t i = 0; i + 1 < links_.size(); ++i) {
      between_[i] = scratchpad_bytes_;
      int64_t most_rows = 0;
      for (const Rows& height : heights)
        most_rows = std::max(most_rows, RowsOfLinks(windows_, height)[i].dst.size);
      ABSL_ASSIGN_OR_RETURN(const MemoryDesc largest,
                            BandOf(links_[i].whole->Desc(kArgDst), most_rows, /*dense=*/true));
      scratchpad_bytes_ += RoundUp(largest.SizeBytes(), AlignedBuffer::kAlignment);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<Band> BandAt(const Rows& height) {
    const std::vector<LinkRows> rows = RowsOfLinks(windows_, height);
    Band band;
    for (size_t i = 0; i < links_.size(); ++i) {
      const Primitive& whole = *links_[i].whole;
      const bool first = i == 0, last = i + 1 == links_.size();
      const MemoryDesc &whole_src = whole.Desc(kArgSrc), &whole_dst = whole.Desc(kArgDst);
      ABSL_ASSIGN_OR_RETURN(const MemoryDesc src,
                            BandOf(whole_src, rows[i].reach.src.size, /*dense=*/!first));
      ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                            BandOf(whole_dst, rows[i].dst.size, /*dense=*/!last));
      BandStep step;
      ABSL_ASSIGN_OR_RETURN(step.primitive, create_(DescOfBand(links_[i], src, dst, rows[i].reach),
                                                    links_[i].attributes));
      if (step.primitive->name() != whole.name())
        return absl::UnimplementedError("a band would take another implementation");
      step.src_offset = first ? rows[i].reach.src.begin * RowBytes(whole_src) : between_[i - 1];
      step.dst_offset = last ? rows[i].dst.begin * RowBytes(whole_dst) : between_[i];
      if (step.primitive->info().scratchpad_bytes > 0)
        return absl::UnimplementedError("a link needs a scratchpad");
      band.push_back(std::move(step));
    }
    return band;
  }

  const absl::Span<const PrimitiveRequest> links_;
  const RequestPrimitive create_;
  std::vector<RowWindow> windows_;
  std::vector<int64_t> between_;  // where the result of a link begins in the scratchpad
  int64_t scratchpad_bytes_ = 0;
};

PrimitiveInfo InfoOfChain(absl::Span<const PrimitiveRequest> links) {
  std::vector<ArgDesc> args = {{kArgSrc, links.front().whole->Desc(kArgSrc)}};
  for (size_t i = 0; i < links.size(); ++i) {
    const Primitive& whole = *links[i].whole;
    const int index = static_cast<int>(i);
    if (!whole.Desc(kArgWeights).IsZero())
      args.push_back({WeightsOfLink(index), whole.Desc(kArgWeights)});
    if (!whole.Desc(kArgBias).IsZero()) args.push_back({BiasOfLink(index), whole.Desc(kArgBias)});
  }
  args.push_back({kArgDst, links.back().whole->Desc(kArgDst)});
  return StepInfo("runtime/row_bands", std::move(args));
}

}  // namespace

bool MayBeLink(const PrimitiveRequest& link) {
  const absl::string_view name = link.whole->name();
  const MemoryDesc &src = link.whole->Desc(kArgSrc), &dst = link.whole->Desc(kArgDst);
  const bool known = std::holds_alternative<ConvolutionDesc>(link.desc) ||
                     std::holds_alternative<PoolingDesc>(link.desc);
  // Winograd's tiles, and with them the bits, depend on where a tensor begins.
  return known && src.rank() == 4 && src.data_type() == DataType::kF32 &&
         dst.data_type() == DataType::kF32 && dst.ElementCount() > 0 &&
         src.BlockSize(kHeight) == 1 && dst.BlockSize(kHeight) == 1 &&
         !absl::EndsWith(name, "/reference") && !absl::StrContains(name, "winograd");
}

bool KeepsWithinLimits(absl::Span<const PrimitiveRequest> links, const BandLimits& limits) {
  std::vector<RowWindow> windows;
  for (const PrimitiveRequest& link : links) windows.push_back(WindowOf(link));
  return ChooseBands(links, windows, limits).ok();
}

absl::StatusOr<std::shared_ptr<const Primitive>> CreateRowBands(
    absl::Span<const PrimitiveRequest> links, const BandLimits& limits, RequestPrimitive create) {
  BandPlanner planner(links, create);
  ABSL_ASSIGN_OR_RETURN(std::vector<Band> bands, planner.Plan(limits));
  PrimitiveInfo info = InfoOfChain(links);
  const int64_t all =
      links.front().whole->Desc(kArgSrc).dim(0) * static_cast<int64_t>(bands.size());
  info.scratchpad_bytes = planner.scratchpad_bytes() * std::min(all, RowBands::kMostWorkers);
  return std::make_shared<RowBands>(std::move(info), std::move(bands), planner.scratchpad_bytes());
}

}  // namespace tilewire::runtime
