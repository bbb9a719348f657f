// SPDX-License-Identifier: Apache-2.0
//
// DFT and STFT:
//
//   y[k] = sum over j < L of x[j] e^(-2 pi i j k / L), for the inverse with + and divided by L
//
// where an inverse that is onesided has the first L / 2 + 1 samples alone: the others are their
// conjugates, so that the result is real. It is an inner product with a matrix of sines and
// cosines, of real numbers or pairs of real and imaginary ones. STFT transforms windows that begin
// some samples after each other.
#include <cmath>
#include <complex>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

struct Transform {
  int64_t length = 0;   // L
  int64_t samples = 0;  // that there are; those after them are zeros
  int64_t parts = 1;    // 2: samples are complex
  bool inverse = false, onesided = false;
  bool is_real() const { return inverse && onesided; }  // the result
  int64_t results() const { return onesided && !inverse ? length / 2 + 1 : length; }
  int64_t rows() const { return results() * (is_real() ? 1 : 2); }
};

// The matrix, a row of samples * parts for each real and each imaginary part of a result. It is
// computed when it is packed.
class FourierMatrix final : public network::StoredNumbers {
 public:
  FourierMatrix(const Transform& transform, ConstantPtr window)
      : transform_(transform), window_(std::move(window)) {}

  absl::StatusOr<HeldFloats> Load() const override {
    if (transform_.is_real()) return LoadReal();
    const int64_t columns = transform_.samples * transform_.parts;
    auto matrix = std::make_shared<std::vector<float>>(transform_.rows() * columns);
    for (int64_t k = 0; k < transform_.results(); ++k) {
      for (int64_t j = 0; j < transform_.samples; ++j) {
        const std::complex<double> factor = Factor(k, j);
        float* at = matrix->data() + 2 * k * columns + j * transform_.parts;
        at[0] = static_cast<float>(factor.real());
        at[columns] = static_cast<float>(factor.imag());
        if (transform_.parts == 1) continue;
        at[1] = -at[columns];
        at[columns + 1] = at[0];
      }
    }
    return HeldFloats{*matrix, matrix};
  }

 private:
  // The real part of what a sample and its conjugate give, if it has one.
  HeldFloats LoadReal() const {
    auto matrix = std::make_shared<std::vector<float>>();
    for (int64_t k = 0; k < transform_.results(); ++k) {
      for (int64_t j = 0; j < transform_.samples; ++j) {
        const bool is_alone = j == 0 || 2 * j == transform_.length;
        const std::complex<double> factor = Factor(k, j) * (is_alone ? 1.0 : 2.0);
        matrix->push_back(static_cast<float>(factor.real()));
        if (transform_.parts == 2) matrix->push_back(static_cast<float>(-factor.imag()));
      }
    }
    return HeldFloats{*matrix, matrix};
  }

  // The factor of sample j in result k.
  std::complex<double> Factor(int64_t k, int64_t j) const {
    const double length = static_cast<double>(transform_.length);
    const double turn = static_cast<double>(k * j % transform_.length) / length;
    const double size = (transform_.inverse ? 1 / length : 1) *
                        (window_ == nullptr ? 1 : static_cast<double>(window_->floats[j]));
    return std::polar(1.0, (transform_.inverse ? 2 : -2) * M_PI * turn) * size;
  }

  const Transform transform_;
  const ConstantPtr window_;  // its elements are in memory; null: none
};

absl::StatusOr<network::Weights> MatrixOf(const NodeContext& context, const Transform& transform,
                                          const ConstantPtr& window) {
  const int64_t rows = transform.rows(), columns = transform.samples * transform.parts;
  if (rows > kLargestFold || columns > kLargestFold / rows)
    return context.node.Unimplemented("a transform of ", transform.samples, " samples to ",
                                      transform.results(), "; its matrix may have ", kLargestFold,
                                      " elements");
  network::Weights weights;
  // Everything that the elements depend on, so that equal matrices are packed once.
  weights.key = absl::StrCat("fourier:", transform.length, ":", transform.samples, ":",
                             transform.parts, ":", transform.inverse, ":", transform.onesided);
  if (window != nullptr) absl::StrAppend(&weights.key, ":", window->name);
  weights.dims = {rows, columns};
  weights.stored = std::make_shared<const FourierMatrix>(transform, window);
  return weights;
}

// The transform of [..., samples, parts] along the dimension before the last.
absl::StatusOr<Operand> Transformed(NodeContext& context, const Operand& src,
                                    const Transform& transform, const ConstantPtr& window,
                                    absl::string_view suffix) {
  Dims dims = src.dims;
  const size_t rank = dims.size();
  int64_t rows = 1;
  for (size_t d = 0; d + 2 < rank; ++d) rows *= dims[d];
  network::InnerProduct product;
  ABSL_ASSIGN_OR_RETURN(product.weights, MatrixOf(context, transform, window));
  const Dims flat = product.weights.dims;
  ABSL_ASSIGN_OR_RETURN(const Operand lines, ReshapeOf(context, src, {rows, flat[1]}, "/lines"));
  ABSL_ASSIGN_OR_RETURN(const ValueId given, context.AsValue(lines));
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(std::move(product), {given}, {rows, flat[0]}, "/transformed"));
  dims[rank - 2] = transform.results();
  dims[rank - 1] = transform.is_real() ? 1 : 2;
  return ReshapeOf(context, Operand{nullptr, result, {rows, flat[0]}}, std::move(dims), suffix);
}

absl::Status CheckParts(const Node& node, const Operand& signal, bool onesided) {
  const int64_t parts = signal.dims.empty() ? 0 : signal.dims.back();
  if (parts != 1 && parts != 2)
    return node.Invalid("the signal ", DimsToString(signal.dims),
                        " is neither of real nor of complex numbers");
  if (onesided && parts == 2) return node.Invalid("onesided of complex numbers");
  return absl::OkStatus();
}

// Input i, one positive integer, or `absent` where there is none.
absl::StatusOr<int64_t> LengthOf(const NodeContext& context, int i, int64_t absent) {
  if (!context.Has(i)) return absent;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr length, context.Ints(i));
  if (length->count() != 1 || length->ints[0] < 1 || length->ints[0] > kLargestFold)
    return context.node.Invalid("input ", i, " is not one positive number");
  return length->ints[0];
}

// An attribute before opset 20.
absl::StatusOr<int> AxisOf(const NodeContext& context, size_t rank) {
  int64_t axis = -2;
  if (context.node.opset() < 20) {
    ABSL_ASSIGN_OR_RETURN(axis, context.node.Int("axis", 1));
  } else if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr given, context.Ints(2));
    if (given->count() != 1) return context.node.Invalid("the axis is not one number");
    axis = given->ints[0];
  }
  ABSL_ASSIGN_OR_RETURN(const int normal, NormalizeAxis(context.node, axis, rank));
  if (normal == static_cast<int>(rank) - 1)
    return context.node.Invalid("the axis is that of real and imaginary parts");
  return normal;
}

absl::Status BuildDft(NodeContext& context) {
  const Node& node = context.node;
  Transform transform;
  ABSL_ASSIGN_OR_RETURN(const int64_t inverse, node.Int("inverse", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 0));
  transform.inverse = inverse != 0;
  transform.onesided = onesided != 0;
  if (transform.is_real() && node.opset() < 20)
    return node.Invalid("inverse with onesided exists from opset 20 on");
  Operand src = context.input(0);
  ABSL_RETURN_IF_ERROR(CheckParts(node, src, transform.onesided && !transform.inverse));
  ABSL_ASSIGN_OR_RETURN(const int axis, AxisOf(context, src.dims.size()));
  const int64_t given = src.dims[axis], whole = transform.is_real() ? 2 * (given - 1) : given;
  ABSL_ASSIGN_OR_RETURN(transform.length, LengthOf(context, 1, whole));
  transform.parts = src.dims.back();
  transform.samples =
      std::min(transform.is_real() ? transform.length / 2 + 1 : transform.length, given);
  if (transform.samples < 1 || transform.length < 1)
    return node.Invalid("a signal without samples");
  ABSL_ASSIGN_OR_RETURN(src,
                        SelectAlong(context, src, axis, {{0, 1, transform.samples}}, "/samples"));
  const int last = static_cast<int>(src.dims.size()) - 1;
  if (axis == last - 1) return context.SetOutput(Transformed(context, src, transform, nullptr, ""));
  std::vector<int> swapped(src.dims.size());
  std::iota(swapped.begin(), swapped.end(), 0);
  std::swap(swapped[axis], swapped[last - 1]);
  ABSL_ASSIGN_OR_RETURN(src, TurnedOf(context, src, swapped, "/turned"));
  ABSL_ASSIGN_OR_RETURN(const Operand dst,
                        Transformed(context, src, transform, nullptr, "/swapped"));
  return context.SetOutput(TurnedOf(context, dst, swapped, ""));
}

// The samples of all frames: [batch, samples, parts] as [batch, frames, length, parts].
absl::StatusOr<Operand> FramesOf(NodeContext& context, const Operand& signal, int64_t step,
                                 int64_t length) {
  const int64_t frames = (signal.dims[1] - length) / step + 1;
  constexpr int64_t kMostFrames = int64_t{1} << 20;  // each is listed
  if (frames > kMostFrames) return context.node.Unimplemented(frames, " frames");
  Select select = WholeOf(3);
  for (int64_t frame = 0; frame < frames; ++frame)
    select.from[1].push_back({frame * step, 1, length});
  ABSL_ASSIGN_OR_RETURN(const Operand framed,
                        SelectOf(context, signal, std::move(select), "/samples"));
  return ReshapeOf(context, framed, {signal.dims[0], frames, length, signal.dims[2]}, "/frames");
}

absl::Status BuildStft(NodeContext& context) {
  const Node& node = context.node;
  Operand signal = context.input(0);
  Transform transform;
  ABSL_ASSIGN_OR_RETURN(const int64_t onesided, node.Int("onesided", 1));
  transform.onesided = onesided != 0;
  if (signal.dims.size() == 2) {  // as PyTorch's exporter has it: without the parts of a number
    ABSL_ASSIGN_OR_RETURN(
        signal, ReshapeOf(context, signal, {signal.dims[0], signal.dims[1], 1}, "/parts"));
  }
  if (signal.dims.size() != 3)
    return node.Invalid("a signal of rank ", signal.dims.size(),
                        ", expected [batch, length, parts]");
  ABSL_RETURN_IF_ERROR(CheckParts(node, signal, transform.onesided));
  ABSL_ASSIGN_OR_RETURN(const int64_t step, LengthOf(context, 1, 1));
  const int64_t of_window =
      context.Has(2) && context.input(2).dims.size() == 1 ? context.input(2).dims[0] : -1;
  ABSL_ASSIGN_OR_RETURN(transform.length, LengthOf(context, 3, of_window));
  if (transform.length < 1 || transform.length > signal.dims[1] ||
      (context.Has(2) && of_window != transform.length))
    return node.Invalid("frames of ", transform.length, " of ", signal.dims[1],
                        " samples, with a window of ", of_window);
  transform.samples = transform.length;
  transform.parts = signal.dims[2];
  ABSL_ASSIGN_OR_RETURN(Operand frames, FramesOf(context, signal, step, transform.length));
  ConstantPtr window;
  if (context.Has(2) && context.input(2).constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(window, context.Floats(2));
  } else if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(const Operand column,
                          ReshapeOf(context, context.input(2), {transform.length, 1}, "/window"));
    ABSL_ASSIGN_OR_RETURN(frames,
                          ElementwiseOf(context, {Function::kMul}, {frames, column}, "/windowed"));
  }
  return context.SetOutput(Transformed(context, frames, transform, window, ""));
}

}  // namespace

TILEWIRE_OPERATORS(Fourier) = {
    {"DFT", 17, 1, 3, "axis inverse onesided", BuildDft, Folds::kNever, LikeFirstInput,
     Inputs({1, 2})},
    {"STFT", 17, 2, 4, "onesided", BuildStft, Folds::kNever, LikeFirstInput, Inputs({1, 3})},
};

}  // namespace tilewire::reader
