// SPDX-License-Identifier: Apache-2.0
//
// f32 weights of a 3x3 convolution in any layout -> Winograd's (winograd_layout.h). Computed in
// double, rounded once: the error of G w G^T would otherwise come on top of the convolution's own.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/winograd_transforms.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/single_source.h"

namespace tilewire::reorder {
namespace {

constexpr int kMaxSide = 6;    // points along a side
constexpr int kMaxLanes = 16;  // of a vector
constexpr int kTaps = 3;

using Lanes = std::array<double, kMaxLanes>;

// Immutable.
template <int kSide>
class WinogradWeights final : public SingleSource<float> {
 public:
  WinogradWeights(PrimitiveInfo info, const ReorderDesc& desc)
      : SingleSource(std::move(info)),
        layout_(desc.dst.winograd()),
        oc_(desc.src.dim(0)),
        ic_(desc.src.dim(1)),
        src_(desc.src) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    team.ParallelFor(layout_.Blocks(oc_), [&](int64_t block) {
      for (int64_t i = 0; i < layout_.PaddedInputs(ic_); ++i) TransformLanes(src, block, i, dst);
    });
  }

  // One input channel of one block of output channels.
  void TransformLanes(const float* src, int64_t block, int64_t i, float* dst) const {
    Lanes taps[kTaps][kTaps];  // [column][row]
    Load(src, block, i, taps);
    Lanes half[kTaps][kSide];  // G w, [column][row]
    for (int x = 0; x < kTaps; ++x) Transform(taps[x][0], taps[x][1], taps[x][2], half[x]);
    const int64_t panel = block / layout_.panel_blocks;
    const int64_t width = layout_.BlocksOfPanel(oc_, panel) * layout_.lanes;
    const int64_t in_matrix = i * width + block % layout_.panel_blocks * layout_.lanes;
    for (int row = 0; row < kSide; ++row) {
      Lanes points[kSide];
      Transform(half[0][row], half[1][row], half[2][row], points);
      for (int x = 0; x < kSide; ++x) {
        float* to = dst + layout_.MatrixOffset(oc_, ic_, panel, row * kSide + x) + in_matrix;
        for (int lane = 0; lane < layout_.lanes; ++lane)
          to[lane] = static_cast<float>(points[x][lane]);
      }
    }
  }

  // Zero where there is no such channel.
  void Load(const float* src, int64_t block, int64_t i, Lanes (*taps)[kTaps]) const {
    for (int y = 0; y < kTaps; ++y) {
      for (int x = 0; x < kTaps; ++x) {
        taps[x][y].fill(0);
        if (i >= ic_) continue;
        const int64_t base = src_.At(1, i) + src_.At(2, y) + src_.At(3, x);
        const int64_t first = block * layout_.lanes;
        const int64_t count = std::min<int64_t>(layout_.lanes, oc_ - first);
        for (int64_t lane = 0; lane < count; ++lane) {
          taps[x][y][lane] = src[base + src_.At(0, first + lane)];
        }
      }
    }
  }

  // G (a, b, c): the rows of opposite points share their even and odd parts.
  static void Transform(const Lanes& a, const Lanes& b, const Lanes& c, Lanes* result) {
    static constexpr auto kG = WinogradWeightsTransform(kSide - 2);
    for (int lane = 0; lane < kMaxLanes; ++lane) result[0][lane] = kG[0][0] * a[lane];
    for (int point = 1; point < kSide - 1; point += 2) {
      for (int lane = 0; lane < kMaxLanes; ++lane) {
        const double even = kG[point][0] * a[lane] + kG[point][2] * c[lane];
        const double odd = kG[point][1] * b[lane];
        result[point][lane] = even + odd;
        result[point + 1][lane] = even - odd;
      }
    }
    result[kSide - 1] = c;
  }

  const WinogradLayout layout_;
  const int64_t oc_, ic_;
  const SeparableOffsets src_;
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveWinogradWeights(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (desc.src.format_kind() != FormatKind::kBlocked ||
      desc.dst.format_kind() != FormatKind::kWinograd) {
    return Unimplemented("writes Winograd's layout only");
  }
  if (desc.dst.winograd().planes > 0) return Unimplemented("writes no planes");
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  if (desc.dst.winograd().lanes > kMaxLanes) return Unimplemented("too many lanes");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateWinogradWeights(
    const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  PrimitiveInfo info = InfoOf(request);
  if (desc.dst.winograd().tile == 2) {
    return std::make_unique<WinogradWeights<4>>(std::move(info), desc);
  }
  return std::make_unique<WinogradWeights<kMaxSide>>(std::move(info), desc);
}

}  // namespace tilewire::reorder
