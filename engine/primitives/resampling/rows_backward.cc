// SPDX-License-Identifier: Apache-2.0
//
// Gathered, a row of diff_src at a time: the rows of diff_dst that sample it are added up with the
// weights of depth and height, a few outputs at a time and in double; then each pixel adds up the
// outputs that sample it along the width. Each row has one owner, so that bits do not depend on
// threads.
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/resampling/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::resampling {
namespace {

constexpr int64_t kMostLanes = 16;  // neighbouring channels that are computed together
constexpr int64_t kMostNumbers = 2048;
constexpr int64_t kMostOutputs = kMostNumbers / kMostLanes;  // that sample one input
constexpr int64_t kGatheredAtOnce = 16 * 1024;

// The outputs of a dimension that sample an input, and their weights.
struct Gathered {
  int64_t first = 0;
  std::vector<double> weights;
  int64_t end() const { return first + static_cast<int64_t>(weights.size()); }
};

std::vector<Gathered> GatheredOf(const Samples& samples, int64_t inputs) {
  std::vector<Gathered> gathered(inputs);
  for (int64_t i = 0; i < inputs; ++i) {
    const OutputRange range = OutputsOf(samples, i);
    gathered[i].first = range.first;
    for (int64_t o = range.first; o < range.end; ++o)
      gathered[i].weights.push_back(WeightOf(samples[o], i));
  }
  return gathered;
}

struct GatheredAxis {
  std::vector<Gathered> inputs;
  int64_t src_stride = 0, dst_stride = 0;
  int64_t size() const { return static_cast<int64_t>(inputs.size()); }
};

// `back` counts from W; a dimension that the tensors lack has one input and one output.
GatheredAxis GatheredAxisOf(const ResamplingDesc& desc, int back) {
  const int d = desc.src.rank() - 1 - back;
  if (d < 2) return {GatheredOf(Samples(), 1)};
  return {GatheredOf(Samples(desc, d), desc.src.dim(d)), desc.src.stride(d), desc.dst.stride(d)};
}

struct RowsGradient {
  explicit RowsGradient(const ResamplingDesc& asked)
      : desc(asked),
        depth(GatheredAxisOf(asked, 2)),
        height(GatheredAxisOf(asked, 1)),
        width(GatheredAxisOf(asked, 0)) {}

  void Run(const DrivenRun& run) const {
    if (desc.src.ElementCount() == 0) return;  // of what may be many rows
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    auto* const diff_src = run.First<float>(kArgDiffSrc);
    const int64_t cell = CellOf(desc.src), groups = DivUp(cell, kMostLanes);
    const int64_t cells = desc.src.padded_dims()[1] / cell;
    const int64_t row_elements = width.size() * std::min(cell, kMostLanes);
    threading::ParallelForItems(
        run.team, desc.src.dim(0) * cells * groups * depth.size() * height.size(),
        threading::ItemsAtOnce(kGatheredAtOnce, row_elements), [&](int64_t item) {
          const int64_t h = item % height.size(), d = item / height.size() % depth.size();
          int64_t index = item / height.size() / depth.size();
          const int64_t lane = index % groups * kMostLanes;
          index /= groups;
          const int64_t c = index % cells, n = index / cells;
          RunRow({.diff_dst = diff_dst + n * desc.dst.stride(0) + c * desc.dst.stride(1) + lane,
                  .diff_src = diff_src + n * desc.src.stride(0) + c * desc.src.stride(1) + lane +
                              d * depth.src_stride + h * height.src_stride,
                  .lanes = std::min(kMostLanes, cell - lane),
                  .depth = &depth.inputs[d],
                  .height = &height.inputs[h]});
        });
  }
  size_t code_bytes() const { return 0; }

  struct Row {
    const float* diff_dst;  // at the first pixel
    float* diff_src;        // at the first pixel of the row
    int64_t lanes;
    const Gathered *depth, *height;
  };
  void RunRow(const Row& row) const {
    double sums[kMostNumbers];
    const int64_t most = kMostNumbers / row.lanes;
    for (int64_t first = 0, end = 0; first < width.size(); first = end) {
      const int64_t output = width.inputs[first].first;
      int64_t outputs = 0;
      while (end < width.size() && width.inputs[end].end() - output <= most)
        outputs = std::max(outputs, width.inputs[end++].end() - output);
      AddRows(row, output, outputs, sums);
      for (int64_t i = first; i < end; ++i)
        GatherPixel(width.inputs[i], sums + (width.inputs[i].first - output) * row.lanes, row.lanes,
                    row.diff_src + i * width.src_stride);
    }
  }

  // sums = the rows of diff_dst that sample the row, from an output on.
  void AddRows(const Row& row, int64_t output, int64_t outputs, double* sums) const {
    std::fill_n(sums, outputs * row.lanes, 0.0);
    for (int64_t d = row.depth->first; d < row.depth->end(); ++d) {
      for (int64_t h = row.height->first; h < row.height->end(); ++h) {
        const double weight =
            row.depth->weights[d - row.depth->first] * row.height->weights[h - row.height->first];
        const float* from =
            row.diff_dst + d * depth.dst_stride + h * height.dst_stride + output * width.dst_stride;
        if (width.dst_stride == row.lanes) {
          for (int64_t i = 0; i < outputs * row.lanes; ++i) sums[i] += weight * from[i];
          continue;
        }
        for (int64_t o = 0; o < outputs; ++o, from += width.dst_stride) {
          for (int64_t lane = 0; lane < row.lanes; ++lane)
            sums[o * row.lanes + lane] += weight * from[lane];
        }
      }
    }
  }

  static void GatherPixel(const Gathered& input, const double* sums, int64_t lanes, float* to) {
    double totals[kMostLanes] = {};
    for (double weight : input.weights) {
      for (int64_t lane = 0; lane < lanes; ++lane) totals[lane] += weight * sums[lane];
      sums += lanes;
    }
    for (int64_t lane = 0; lane < lanes; ++lane) to[lane] = static_cast<float>(totals[lane]);
  }

  ResamplingDesc desc;
  GatheredAxis depth, height, width;
};

absl::Status RequireFewOutputs(const ResamplingDesc& desc) {
  for (int d = 2; d < desc.src.rank(); ++d) {
    if (std::max(desc.src.dim(d), desc.dst.dim(d)) > Samples::kMostTabled)
      return Unimplemented("takes sizes of up to ", Samples::kMostTabled);
    // Outputs between its neighbours, and half as many that are clamped beside the first input.
    if (desc.dst.dim(d) * 5 > desc.src.dim(d) * 2 * (kMostOutputs - 2))
      return Unimplemented("takes inputs that up to ", kMostOutputs, " outputs sample");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResamplingDesc> ResolveRowsBackward(const Request<ResamplingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(ResamplingDesc resolved, ResolveReferenceBackward(request));
  const int64_t cell = CellOf(resolved.src);
  if (cell == 0) return Unimplemented("there are no channels");  // it is divided by
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.src, cell));
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.dst, cell));
  ABSL_RETURN_IF_ERROR(RequireFewOutputs(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRowsBackward(
    const Request<ResamplingDesc>& request) {
  return MakeDriven(BackwardInfoOf(request), RowsGradient(request.desc));
}

}  // namespace tilewire::resampling
