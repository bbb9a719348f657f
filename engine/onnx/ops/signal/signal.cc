// SPDX-License-Identifier: Apache-2.0
//
// Tensors that processing of signals multiplies by: windows, and the matrix from a spectrum to the
// mel scale. They are known when a network is built.
#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// Attribute output_datatype: all floating-point types are held in f32.
absl::Status CheckFloatResult(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t type, node.Int("output_datatype", onnx::TensorProto::FLOAT));
  for (const int64_t known : {onnx::TensorProto::FLOAT, onnx::TensorProto::FLOAT16,
                              onnx::TensorProto::BFLOAT16, onnx::TensorProto::DOUBLE}) {
    if (type == known) return absl::OkStatus();
  }
  return node.Unimplemented("output_datatype ", ElementTypeText(type));
}

// Input i, one integer that is at least `least`.
absl::StatusOr<int64_t> CountOf(const NodeContext& context, int i, int64_t least) {
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr constant, context.Ints(i));
  if (constant->count() != 1 || constant->ints[0] < least)
    return context.node.Invalid("input ", i, " is not one number of at least ", least);
  return constant->ints[0];
}

// a - b cos(2 pi n / N) + c cos(4 pi n / N), where N is the size if the window is periodic, else
// the size less 1; the window of one sample is 1.
absl::Status BuildWindow(NodeContext& context, double a, double b, double c) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckFloatResult(node));
  ABSL_ASSIGN_OR_RETURN(const int64_t periodic, node.Int("periodic", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t size, CountOf(context, 0, 0));
  if (size > kLargestFold) return node.TooLarge("a window of more than ", kLargestFold, " samples");
  std::vector<float> window(size, 1.0f);
  const double period = static_cast<double>(periodic != 0 ? size : size - 1);
  for (int64_t n = 0; n < size && size > 1; ++n) {
    const double angle = 2 * M_PI * static_cast<double>(n) / period;
    window[n] = static_cast<float>(a - b * std::cos(angle) + c * std::cos(2 * angle));
  }
  return context.SetOutput(MakeFloats(context.output_name(), {size}, std::move(window)));
}

absl::Status BuildHannWindow(NodeContext& context) { return BuildWindow(context, 0.5, 0.5, 0); }
absl::Status BuildHammingWindow(NodeContext& context) {
  return BuildWindow(context, 25.0 / 46, 21.0 / 46, 0);
}
absl::Status BuildBlackmanWindow(NodeContext& context) {
  return BuildWindow(context, 0.42, 0.5, 0.08);
}

// The bins of the spectrum where the triangles of the mel scale begin, peak and end: triangle i is
// between edges i and i + 2.
absl::StatusOr<std::vector<int64_t>> MelEdges(const NodeContext& context, int64_t triangles,
                                              int64_t dft_length, int64_t sample_rate) {
  double edges_in_mel[2];
  for (int i = 0; i < 2; ++i) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr hertz, context.Floats(3 + i));
    if (hertz->count() != 1 || !(hertz->floats[0] >= 0) || !std::isfinite(hertz->floats[0]))
      return context.node.Invalid("input ", 3 + i, " is not one frequency");
    edges_in_mel[i] = 2595 * std::log10(1 + hertz->floats[0] / 700.0);
  }
  const double step = (edges_in_mel[1] - edges_in_mel[0]) / static_cast<double>(triangles + 2);
  std::vector<int64_t> edges;
  for (int64_t i = 0; i < triangles + 2; ++i) {
    const double mel = edges_in_mel[0] + static_cast<double>(i) * step;
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    const double bin =
        std::floor(static_cast<double>(dft_length + 1) * hertz / static_cast<double>(sample_rate));
    if (!(bin >= 0) || bin > static_cast<double>(dft_length / 2))
      return context.node.Invalid("an edge lies outside the spectrum");
    edges.push_back(static_cast<int64_t>(bin));
  }
  if (!std::is_sorted(edges.begin(), edges.end()))
    return context.node.Invalid("the upper edge is below the lower one");
  return edges;
}

// [bins, triangles]
absl::Status BuildMelWeightMatrix(NodeContext& context) {
  const Node& node = context.node;
  ABSL_RETURN_IF_ERROR(CheckFloatResult(node));
  ABSL_ASSIGN_OR_RETURN(const int64_t triangles, CountOf(context, 0, 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t dft_length, CountOf(context, 1, 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t sample_rate, CountOf(context, 2, 1));
  const int64_t most = kLargestFold, bins = dft_length / 2 + 1;
  if (triangles > most || bins > most / triangles)
    return node.TooLarge("a matrix of more than ", most, " elements");
  ABSL_ASSIGN_OR_RETURN(const std::vector<int64_t> edges,
                        MelEdges(context, triangles, dft_length, sample_rate));
  std::vector<float> matrix(bins * triangles, 0);
  for (int64_t i = 0; i < triangles; ++i) {
    const int64_t first = edges[i], peak = edges[i + 1], last = edges[i + 2];
    const auto slope = [](int64_t part, int64_t whole) {
      return static_cast<float>(static_cast<double>(part) / static_cast<double>(whole));
    };
    if (first == peak) matrix[peak * triangles + i] = 1;
    for (int64_t j = first; first < peak && j <= peak; ++j)
      matrix[j * triangles + i] = slope(j - first, peak - first);
    for (int64_t j = peak; j < last; ++j) matrix[j * triangles + i] = slope(last - j, last - peak);
  }
  return context.SetOutput(MakeFloats(context.output_name(), {bins, triangles}, std::move(matrix)));
}

ElementType OutputDataType(const TypedNode& node, int) {
  return node.named("output_datatype", DataType::kF32);
}

}  // namespace

TILEWIRE_OPERATORS(Signal) = {
    {"BlackmanWindow", 17, 1, 1, "output_datatype periodic", BuildBlackmanWindow, Folds::kInMemory,
     OutputDataType, Inputs({0})},
    {"HammingWindow", 17, 1, 1, "output_datatype periodic", BuildHammingWindow, Folds::kInMemory,
     OutputDataType, Inputs({0})},
    {"HannWindow", 17, 1, 1, "output_datatype periodic", BuildHannWindow, Folds::kInMemory,
     OutputDataType, Inputs({0})},
    {"MelWeightMatrix", 17, 5, 5, "output_datatype", BuildMelWeightMatrix, Folds::kInMemory,
     OutputDataType, Inputs({0, 1, 2, 3, 4})},
};

}  // namespace tilewire::reader
