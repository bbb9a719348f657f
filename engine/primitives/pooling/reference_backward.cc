// SPDX-License-Identifier: Apache-2.0
//
// The executable specification of backward: any layouts. One element of diff_src after the other,
// which gathers from the windows that hold it; sums in double.
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::pooling {
namespace {

// The windows along spatial dimension `d` that hold element `i` of src.
struct Windows {
  int64_t first, count;
};

Windows WindowsOf(const PoolingDesc& desc, int d, int64_t i) {
  const int64_t reach = i + desc.padding_left[d], stride = desc.strides[d];
  const int64_t first = reach < desc.kernel[d] ? 0 : (reach - desc.kernel[d]) / stride + 1;
  const int64_t end = std::min(reach / stride + 1, desc.dst.dim(d + 2));
  return {first, std::max<int64_t>(end - first, 0)};
}

// The taps of window `o` along spatial dimension `d` that lie in src.
int64_t TapsInside(const PoolingDesc& desc, int d, int64_t o) {
  const int64_t start = o * desc.strides[d] - desc.padding_left[d];
  return std::min(start + desc.kernel[d], desc.src.dim(d + 2)) - std::max<int64_t>(start, 0);
}

// Immutable.
class Gradient {
 public:
  explicit Gradient(const PoolingDesc& desc)
      : desc_(desc),
        spatial_(static_cast<int>(desc.kernel.size())),
        is_max_(desc.algorithm == PoolingAlgorithm::kMax),
        place_type_(PlaceType(desc)),
        src_(desc.src),
        dst_(desc.dst) {}

  void RunElement(const ReferencePiece& piece, const Dims& index) const {
    const auto* dy = piece.Get<const float>(kArgDiffDst);
    const void* places = is_max_ ? piece.Find(kArgWorkspace) : nullptr;
    Dims window = index, first, count;
    for (int d = 0; d < spatial_; ++d) {
      const Windows windows = WindowsOf(desc_, d, index[d + 2]);
      first.push_back(windows.first);
      count.push_back(windows.count);
    }
    double sum = 0;
    ForEachOperation(count, [&](const Dims& step) {
      for (int d = 0; d < spatial_; ++d) window[d + 2] = first[d] + step[d];
      const int64_t at = dst_.Offset(window);
      if (!is_max_) {
        sum += dy[at] / Divisor(window);
      } else if (PlaceAt(places, at) == PlaceIn(window, index)) {
        sum += dy[at];
      }
    });
    piece.Get<float>(kArgDiffSrc)[src_.Offset(index)] = static_cast<float>(sum);
  }

 private:
  // The number of the element `index` of src among the taps of a window.
  int64_t PlaceIn(const Dims& window, const Dims& index) const {
    int64_t place = 0;
    for (int d = 0; d < spatial_; ++d) {
      const int64_t start = window[d + 2] * desc_.strides[d] - desc_.padding_left[d];
      place = place * desc_.kernel[d] + index[d + 2] - start;
    }
    return place;
  }

  int64_t PlaceAt(const void* places, int64_t at) const {
    if (place_type_ == DataType::kU8) return static_cast<const uint8_t*>(places)[at];
    return static_cast<const int32_t*>(places)[at];
  }

  double Divisor(const Dims& window) const {
    double divisor = 1;
    for (int d = 0; d < spatial_; ++d) {
      divisor *= static_cast<double>(desc_.algorithm == PoolingAlgorithm::kAvgIncludePadding
                                         ? desc_.kernel[d]
                                         : TapsInside(desc_, d, window[d + 2]));
    }
    return divisor;
  }

  const PoolingDesc desc_;
  const int spatial_;
  const bool is_max_;
  const DataType place_type_;
  const SeparableOffsets src_, dst_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveReferenceBackward(const Request<PoolingDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireF32(request.desc.src, request.desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithGradientLayouts(request.desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReferenceBackward(
    const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  const auto compute = [gradient = Gradient(desc)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) { gradient.RunElement(piece, index); });
  };
  Dims windows;  // about as many hold an element
  for (size_t d = 0; d < desc.kernel.size(); ++d)
    windows.push_back(DivUp(desc.kernel[d], desc.strides[d]));
  return CreateReferencePrimitive(BackwardInfoOf(request), {desc.src.dims(), windows}, compute);
}

}  // namespace tilewire::pooling
