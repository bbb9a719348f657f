// SPDX-License-Identifier: Apache-2.0
//
// The padded tail needs no care: the tail of src is zero, and weighted sums of zeros are.
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/resampling/implementations.h"
#include "engine/primitives/resampling/row_generator.h"

namespace tilewire::resampling {
namespace {

// The elements at one pixel that follow each other: channels, or 1.
int64_t CellOf(const MemoryDesc& md) {
  if (!md.inner_blocks().empty()) return md.BlockSize(1);
  return md.stride(1) == 1 ? md.dim(1) : 1;
}

// One spatial dimension; those that a tensor lacks have one output, which is the input.
struct Axis {
  std::vector<Sample> samples = {{{0, 0}, {1, 0}}};
  int64_t src_stride = 0, dst_stride = 0;
};

// `back` counts from W: 0 is width, 1 height, 2 depth.
Axis AxisOf(const ResamplingDesc& desc, int back) {
  const int d = desc.src.rank() - 1 - back;
  if (d < 2) return {};
  return {SamplesOf(desc, d), desc.src.stride(d), desc.dst.stride(d)};
}

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo primitive_info, const ResamplingDesc& desc, const RowConfig& config,
       std::unique_ptr<const RowGenerator> generator)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        sides_(config.sides),
        cells_(desc.dst.padded_dims()[1] / config.cell),
        depth_(AxisOf(desc, 2)),
        height_(AxisOf(desc, 1)),
        outputs_(desc.dst.dim(desc.dst.rank() - 1)),
        generator_(std::move(generator)) {
    const Axis width = AxisOf(desc, 0);
    const int64_t table = RoundUp(outputs_, 16);
    for (int side = 0; side < 2; ++side) {
      offsets_[side].resize(table);
      weights_[side].resize(table);
      for (int64_t o = 0; o < outputs_; ++o) {
        const Sample& sample = width.samples[o];
        offsets_[side][o] = static_cast<int32_t>(sample.index[side] * width.src_stride * 4);
        weights_[side][o] = sample.weight[side];
      }
    }
  }

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    const float* src = args.Get<const float>(kArgSrc) + desc_.src.offset0();
    float* dst = args.Get<float>(kArgDst) + desc_.dst.offset0();
    const int64_t depths = depth_.samples.size(), heights = height_.samples.size();
    // The stride between cells is that of channels, or of channel blocks.
    team.ParallelFor(desc_.dst.dim(0) * cells_ * depths, [&](int64_t task) {
      const int64_t d = task % depths, cell = task / depths % cells_, n = task / depths / cells_;
      const float* from = src + n * desc_.src.stride(0) + cell * desc_.src.stride(1);
      float* to = dst + n * desc_.dst.stride(0) + cell * desc_.dst.stride(1);
      for (int64_t h = 0; h < heights; ++h) RunRow(from, to, d, h);
    });
  }

  void RunRow(const float* src, float* dst, int64_t d, int64_t h) const {
    const Sample &depth = depth_.samples[d], &height = height_.samples[h];
    RowArgs args = {};
    args.dst = dst + d * depth_.dst_stride + h * height_.dst_stride;
    args.outputs = outputs_;
    int row = 0;
    for (int i = 0; i < DepthSides(); ++i) {
      for (int j = 0; j < HeightSides(); ++j) {
        args.rows[row] =
            src + depth.index[i] * depth_.src_stride + height.index[j] * height_.src_stride;
        args.weights[row++] = depth.weight[i] * height.weight[j];
      }
    }
    for (int side = 0; side < sides_; ++side) {
      args.offsets[side] = offsets_[side].data();
      args.sides[side] = weights_[side].data();
    }
    generator_->entry<RowGenerator::Function>()(&args);
  }

  int DepthSides() const { return sides_ == 2 && desc_.src.rank() > 4 ? 2 : 1; }
  int HeightSides() const { return sides_ == 2 && desc_.src.rank() > 3 ? 2 : 1; }

  const ResamplingDesc desc_;
  const int sides_;
  const int64_t cells_;
  const Axis depth_, height_;
  const int64_t outputs_;
  std::vector<int32_t> offsets_[2];
  std::vector<float> weights_[2];
  const std::unique_ptr<const RowGenerator> generator_;
};

absl::Status RequireCells(const MemoryDesc& md, int64_t cell) {
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim != 1) return absl::UnimplementedError("blocked on another axis than 1");
  }
  const int width = md.rank() - 1;
  if (CellOf(md) != cell || (md.dim(width) > 1 && md.stride(width) != cell)) {
    return absl::UnimplementedError(
        absl::StrCat(md.ToString(), ": pixels of a row do not follow each other"));
  }
  if (md.dim(width) * cell > std::numeric_limits<int32_t>::max() / 8) {
    return absl::UnimplementedError("rows beyond 31 bits");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ResamplingDesc> ResolveRows(const ResamplingDesc& desc, const Attributes& attributes,
                                           const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(ResamplingDesc resolved, ResolveReference(desc, attributes, facts));
  const int64_t cell = CellOf(resolved.dst);
  if (cell == 0) return absl::UnimplementedError("there are no channels");  // it is divided by
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.src, cell));
  ABSL_RETURN_IF_ERROR(RequireCells(resolved.dst, cell));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const ResamplingDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts) {
  RowConfig config{.unit = VectorUnit::Of(facts.isa)};
  config.cell = CellOf(desc.dst);
  if (desc.algorithm == ResamplingAlgorithm::kLinear) {
    config.sides = 2;
    config.rows = 1 << (desc.src.rank() - 3);
  }
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RowGenerator>(facts.name, config));
  return std::make_unique<Rows>(WithCode(InfoOf(desc, attributes, facts), *generator), desc, config,
                                std::move(generator));
}

}  // namespace tilewire::resampling
