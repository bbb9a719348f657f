// SPDX-License-Identifier: Apache-2.0
//
// Images side by side: each is a matrix of positions by classes, or, for losses of single elements,
// a row of them. Threads take images; the loops over classes are plain ones that the compiler turns
// into vectors. Cross entropy reads a position three times, from cache: its maximum, exponentials,
// which it leaves in the gradient, and the gradient itself.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/loss/formulas.h"
#include "engine/primitives/loss/implementations.h"
#include "engine/primitives/loss/targets.h"
#include "engine/threading/ranges.h"

namespace tilewire::loss {
namespace {

constexpr int64_t kElementsPerPiece = 1 << 14;
constexpr int64_t kLanes = 16;    // a number that compilers know makes vectors
constexpr int64_t kAtOnce = 256;  // exponentials that are not kept

constexpr float kLowest = -87;

// e^x for x from kLowest to 0, within 2 ulp. By 2^n e^r with |r| <= log(2) / 2.
inline float Exponential(float x) {
  constexpr float kRounding = 12582912;  // 1.5 * 2^23: what is added to it becomes an integer
  constexpr float kLog2High = 0.693359375f, kLog2Low = -2.12194440e-4f;
  const float shifted = x * 1.44269504f + kRounding;
  const float n = shifted - kRounding;
  const float r = (x - n * kLog2High) - n * kLog2Low;
  float sum = 1.0f / 5040;
  sum = sum * r + 1.0f / 720;
  sum = sum * r + 1.0f / 120;
  sum = sum * r + 1.0f / 24;
  sum = sum * r + 1.0f / 6;
  sum = sum * r + 0.5f;
  sum = sum * r + 1;
  sum = sum * r + 1;
  const uint32_t power = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kRounding);
  return sum * std::bit_cast<float>((power + 127) << 23);
}

float LargestOf(const float* x, int64_t count) {
  std::array<float, kLanes> lanes;
  lanes.fill(x[0]);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] = x[i + j] > lanes[j] ? x[i + j] : lanes[j];
  }
  float largest = *std::max_element(lanes.begin(), lanes.end());
  for (; i < count; ++i) largest = std::max(largest, x[i]);
  return largest;
}

double SumOf(const float* x, int64_t count) {
  std::array<float, kLanes> lanes = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) lanes[j] += x[i + j];
  }
  double sum = 0;
  for (float lane : lanes) sum += lane;
  for (; i < count; ++i) sum += x[i];
  return sum;
}

// e^(x - most), which is that of kLowest below it. Bounds come in a loop of their own: compilers
// make no vectors where a branch might lead around the rest.
void Exponentials(const float* __restrict x, float most, int64_t count, float* __restrict to) {
  const auto bounded = [most](float element) {
    const float difference = element - most;
    return difference < kLowest ? kLowest : difference;
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    float differences[kLanes];
    for (int64_t j = 0; j < kLanes; ++j) differences[j] = bounded(x[i + j]);
    for (int64_t j = 0; j < kLanes; ++j) to[i + j] = Exponential(differences[j]);
  }
  for (; i < count; ++i) to[i] = Exponential(bounded(x[i]));
}

void Scale(float factor, int64_t count, float* x) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) x[i + j] *= factor;
  }
  for (; i < count; ++i) x[i] *= factor;
}

// The sum of e^(x - most), and these in `kept`, if that is wanted.
double SumOfExponentials(const float* x, float most, int64_t count, float* kept) {
  float buffer[kAtOnce];
  double sum = 0;
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t size = std::min(kAtOnce, count - first);
    float* const to = kept != nullptr ? kept + first : buffer;
    Exponentials(x + first, most, size, to);
    sum += SumOf(to, size);
  }
  return sum;
}

// The loss and gradients at the positions of one tensor. `scale` is factor / D.
class Positions {
 public:
  Positions(const LossDesc& desc, double scale)
      : desc_(desc), classes_(desc.src.dim(1)), scale_(scale) {}

  // A label alone: q is 1 there.
  double OfLabel(const float* x, int64_t label, float* dx) const {
    if (IsIgnored(desc_, label)) return Nothing(dx);
    if (desc_.label_smoothing > 0) {
      return OfWeighted(x, dx, [&](int64_t c) {
        const double t = c == label ? 1 - desc_.label_smoothing : 0;
        return ClassWeight(c) * (t + desc_.label_smoothing / static_cast<double>(classes_));
      });
    }
    const double weight = ClassWeight(label);
    const float most = LargestOf(x, classes_);
    const double sum = SumOfExponentials(x, most, classes_, dx);
    if (dx != nullptr) {
      const double at_label = dx[label] / sum - 1;
      Scale(static_cast<float>(scale_ * weight / sum), classes_, dx);
      dx[label] = static_cast<float>(scale_ * weight * at_label);
    }
    return weight * (std::log(sum) + (double{most} - x[label]));
  }

  double OfProbabilities(const float* x, const float* t, float* dx) const {
    return OfWeighted(x, dx, [&](int64_t c) {
      return ClassWeight(c) * ((1 - desc_.label_smoothing) * t[c] +
                               desc_.label_smoothing / static_cast<double>(classes_));
    });
  }

 private:
  double ClassWeight(int64_t c) const {
    return desc_.class_weights.empty() ? 1 : desc_.class_weights[c];
  }

  double Nothing(float* dx) const {
    if (dx != nullptr) std::fill_n(dx, classes_, 0.0f);
    return 0;
  }

  // q(c) is w_c q_c of loss.h.
  template <typename Targets>
  double OfWeighted(const float* x, float* dx, const Targets& q) const {
    const float most = LargestOf(x, classes_);
    const double sum = SumOfExponentials(x, most, classes_, dx);
    double weight = 0, products = 0;
    for (int64_t c = 0; c < classes_; ++c) {
      const double target = q(c);
      weight += target;
      if (target != 0) products += target * (double{x[c]} - most);
    }
    if (weight == 0) return Nothing(dx);
    if (dx != nullptr) {
      for (int64_t c = 0; c < classes_; ++c)
        dx[c] = static_cast<float>(scale_ * (weight / sum * dx[c] - q(c)));
    }
    return weight * std::log(sum) - products;
  }

  const LossDesc& desc_;
  const int64_t classes_;
  const double scale_;
};

class RowsPrimitive final : public Primitive {
 public:
  RowsPrimitive(PrimitiveInfo info, const LossDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        images_(desc.src.dim(0)),
        elements_(images_ == 0 ? 0 : desc.src.ElementCount() / images_) {}

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team&) const override {
    return CheckTargets(desc_, args.Find(kArgSrc1));
  }

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    auto* const parts = reinterpret_cast<float*>(scratchpad);
    const double divisor = DivisorOf(desc_, args.Find(kArgSrc1));
    const double scale = desc_.factor / divisor;
    threading::ParallelForItems(
        team, images_, threading::ItemsAtOnce(kElementsPerPiece, elements_),
        [&](int64_t n) { parts[n] = static_cast<float>(ImageLoss(args, n, scale)); });
    double sum = 0;
    for (int64_t n = 0; n < images_; ++n) sum += parts[n];
    *args.Get<float>(kArgDst) = static_cast<float>(desc_.factor * sum / divisor);
  }

  double ImageLoss(const ExecuteArgs& args, int64_t n, double scale) const {
    const float* const x = args.Get<const float>(kArgSrc) + n * elements_;
    float* const all = desc_.diff_src.IsZero() ? nullptr : args.Get<float>(kArgDiffSrc);
    float* const dx = all == nullptr ? nullptr : all + n * elements_;
    const void* const targets = args.Find(kArgSrc1);
    if (desc_.algorithm == LossFunction::kSoftmaxCrossEntropy)
      return CrossEntropy(x, targets, n, scale, dx);
    const float* const t = static_cast<const float*>(targets) + n * elements_;
    const std::vector<float>& weights = desc_.class_weights;
    if (weights.empty()) return ElementLosses(x, t, scale, dx, [](int64_t) { return 1.0; });
    const auto classes = static_cast<int64_t>(weights.size()), positions = elements_ / classes;
    if (desc_.src.stride(1) == 1)
      return ElementLosses(x, t, scale, dx, [&](int64_t i) { return weights[i % classes]; });
    return ElementLosses(x, t, scale, dx, [&](int64_t i) { return weights[i / positions]; });
  }

  // One image; weight(i) is that of its element i.
  template <typename Weight>
  double ElementLosses(const float* x, const float* t, double scale, float* dx,
                       const Weight& weight) const {
    double loss = 0;
    VisitTerm<float>(desc_, [&](const auto& term) {
      for (int64_t i = 0; i < elements_; ++i) {
        const Term<float> one = term(x[i], t[i]);
        loss += weight(i) * double{one.loss};
        if (dx != nullptr) dx[i] = static_cast<float>(weight(i) * (scale * one.gradient));
      }
    });
    return loss;
  }

  double CrossEntropy(const float* x, const void* targets, int64_t n, double scale,
                      float* dx) const {
    const int64_t classes = desc_.src.dim(1), positions = elements_ / classes;
    const Positions at(desc_, scale);
    double loss = 0;
    for (int64_t p = 0; p < positions; ++p) {
      const float* const row = x + p * classes;
      float* const gradient = dx == nullptr ? nullptr : dx + p * classes;
      const int64_t place = n * positions + p;
      if (TakesLabels(desc_)) {
        loss += at.OfLabel(row, LabelAt(desc_.targets.data_type(), targets, place), gradient);
      } else {
        loss +=
            at.OfProbabilities(row, static_cast<const float*>(targets) + place * classes, gradient);
      }
    }
    return loss;
  }

  const LossDesc desc_;
  const int64_t images_, elements_;  // of an image
};

// "acdb" for rank 4.
std::string ChannelsLastPattern(int rank) {
  std::string pattern(PlainPattern(rank));
  if (rank > 2) std::rotate(pattern.begin() + 1, pattern.begin() + 2, pattern.end());
  return pattern;
}

absl::StatusOr<bool> IsInOrder(const MemoryDesc& desc, absl::string_view pattern) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc ordered,
                        MemoryDesc::CreatePattern(desc.dims(), desc.data_type(), pattern));
  return desc == ordered;
}

}  // namespace

absl::StatusOr<LossDesc> ResolveRows(const Request<LossDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(const LossDesc desc, ResolveReference(request));
  ABSL_ASSIGN_OR_RETURN(const bool is_plain, IsInOrder(desc.src, PlainPattern(desc.src.rank())));
  ABSL_ASSIGN_OR_RETURN(const bool is_last,
                        IsInOrder(desc.src, ChannelsLastPattern(desc.src.rank())));
  const bool needs_last = desc.algorithm == LossFunction::kSoftmaxCrossEntropy;
  if (!is_last && (needs_last || !is_plain))
    return Unimplemented("src is not in the order of images, positions and classes");
  MemoryDesc targets = desc.src;
  if (TakesLabels(desc)) {
    ABSL_ASSIGN_OR_RETURN(targets,
                          MemoryDesc::CreatePattern(desc.targets.dims(), desc.targets.data_type(),
                                                    PlainPattern(desc.targets.rank())));
  }
  if (desc.targets != targets) return Unimplemented("the targets are not ", targets.ToString());
  if (!desc.diff_src.IsZero() && desc.diff_src != desc.src)
    return Unimplemented("diff_src is not ", desc.src.ToString());
  if (desc.dst.offset0() != 0) return Unimplemented("dst does not begin its buffer");
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const Request<LossDesc>& resolved) {
  PrimitiveInfo info = InfoOf(resolved);
  info.scratchpad_bytes = resolved.desc.src.dim(0) * static_cast<int64_t>(sizeof(float));
  return std::make_unique<RowsPrimitive>(std::move(info), resolved.desc);
}

}  // namespace tilewire::loss
