// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, in double, one position after the other.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/loss/formulas.h"
#include "engine/primitives/loss/implementations.h"
#include "engine/primitives/loss/targets.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::loss {
namespace {

// The parts of images, rounded and added.
class ImageSum {
 public:
  void Add(int64_t image, double loss) {
    if (image != image_) Round();
    image_ = image;
    part_ += loss;
  }
  double Total() {
    Round();
    return total_;
  }

 private:
  void Round() {
    total_ += static_cast<float>(part_);
    part_ = 0;
  }
  int64_t image_ = 0;
  double part_ = 0, total_ = 0;
};

// One run: tensors by their logical indices.
class Run {
 public:
  Run(const LossDesc& desc, const ReferencePiece& piece)
      : desc_(desc),
        src_(desc.src),
        targets_(desc.targets),
        gradient_(desc.diff_src.IsZero() ? desc.src : desc.diff_src),
        x_(piece.Get<const float>(kArgSrc)),
        t_(piece.Get<const void>(kArgSrc1)),
        dx_(desc.diff_src.IsZero() ? nullptr : piece.Get<float>(kArgDiffSrc)),
        divisor_(DivisorOf(desc, t_)) {}

  double Loss() {
    ImageSum sum;
    if (desc_.algorithm == LossFunction::kSoftmaxCrossEntropy) {
      Dims positions = desc_.src.dims();
      positions[1] = 1;
      ForEachOperation(positions, [&](const Dims& at) { sum.Add(at[0], CrossEntropy(at)); });
    } else {
      VisitTerm<double>(desc_, [&](const auto& term) {
        ForEachOperation(desc_.src.dims(), [&](const Dims& at) {
          const auto [loss, gradient] = term(X(at), TargetAt(at));
          const double weight = desc_.class_weights.empty() ? 1 : desc_.class_weights[at[1]];
          SetGradient(at, weight * gradient);
          sum.Add(at[0], weight * loss);
        });
      });
    }
    return desc_.factor * sum.Total() / divisor_;
  }

 private:
  double X(const Dims& at) const { return x_[src_.Offset(at)]; }
  double TargetAt(const Dims& at) const {
    return static_cast<const float*>(t_)[targets_.Offset(at)];
  }
  void SetGradient(const Dims& at, double gradient) const {
    if (dx_ == nullptr) return;
    dx_[gradient_.Offset(at)] =
        static_cast<float>(gradient == 0 ? 0 : desc_.factor * gradient / divisor_);
  }

  // w_c q_c of a position, for all c.
  std::vector<double> WeightedTargets(Dims at) const {
    const int64_t classes = desc_.src.dim(1);
    std::vector<double> q(classes);
    int64_t label = -1;
    if (TakesLabels(desc_)) {
      Dims place = at;
      place.erase(place.begin() + 1);
      label = LabelAt(desc_.targets.data_type(), t_, targets_.Offset(place));
      if (IsIgnored(desc_, label)) return q;
    }
    for (int64_t c = 0; c < classes; ++c) {
      at[1] = c;
      const double t = TakesLabels(desc_) ? (c == label ? 1 : 0) : TargetAt(at);
      const double weight = desc_.class_weights.empty() ? 1 : desc_.class_weights[c];
      q[c] = weight * ((1 - desc_.label_smoothing) * t +
                       desc_.label_smoothing / static_cast<double>(classes));
    }
    return q;
  }

  double CrossEntropy(Dims at) const {
    const std::vector<double> q = WeightedTargets(at);
    std::vector<double> x(q.size());
    for (size_t c = 0; c < x.size(); ++c) at[1] = static_cast<int64_t>(c), x[c] = X(at);
    const double most = *std::max_element(x.begin(), x.end());
    double exponentials = 0, weight = 0;
    for (size_t c = 0; c < x.size(); ++c) exponentials += std::exp(x[c] - most), weight += q[c];
    double loss = weight == 0 ? 0 : weight * std::log(exponentials);
    for (size_t c = 0; c < x.size(); ++c) {
      if (q[c] != 0) loss -= q[c] * (x[c] - most);
      at[1] = static_cast<int64_t>(c);
      SetGradient(at, weight == 0 ? 0 : weight * std::exp(x[c] - most) / exponentials - q[c]);
    }
    return loss;
  }

  const LossDesc& desc_;
  const SeparableOffsets src_, targets_, gradient_;
  const float* const x_;
  const void* const t_;
  float* const dx_;
  const double divisor_;
};

}  // namespace

absl::StatusOr<LossDesc> ResolveReference(const Request<LossDesc>& request) {
  LossDesc desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst, desc.diff_src));
  const DataType type = desc.targets.data_type();
  const bool are_labels = TakesLabels(desc) && (type == DataType::kS32 || type == DataType::kS64);
  if (!are_labels) ABSL_RETURN_IF_ERROR(RequireF32(desc.targets));
  ABSL_ASSIGN_OR_RETURN(desc.dst, OrPlain(desc.dst));
  if (!desc.diff_src.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(desc.diff_src, OrLayoutOf(desc.diff_src, desc.src));
  }
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<LossDesc>& request) {
  const LossDesc& desc = request.desc;
  const auto check = [desc](const ExecuteArgs& args, const threading::Team&) {
    return CheckTargets(desc, args.Find(kArgSrc1));
  };
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims&) {
      piece.Get<float>(kArgDst)[desc.dst.offset0()] = static_cast<float>(Run(desc, piece).Loss());
    });
  };
  return CreateReferencePrimitive(
      InfoOf(request), {.results = {1}, .operations = desc.src.dims(), .check = check}, compute);
}

}  // namespace tilewire::loss
