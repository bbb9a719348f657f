// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/corrections/bias_shift.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "engine/base/status_macros.h"

namespace tilewire::tuning {
namespace {

// The sum of the elements of each channel of a tensor, and how many each has.
struct ChannelSums {
  std::vector<double> sums;
  int64_t count = 0;
};

void AddTo(ChannelSums* sums, const OutputTensor& output, int axis) {
  const Dims& dims = output.dims;
  const int64_t channels = dims[axis];
  int64_t inner = 1;
  for (size_t d = axis + 1; d < dims.size(); ++d) inner *= dims[d];
  const int64_t outer =
      static_cast<int64_t>(output.bytes.size() / sizeof(float)) / (channels * inner);
  sums->sums.resize(channels);
  sums->count += outer * inner;
  const auto* element = reinterpret_cast<const float*>(output.bytes.data());
  for (int64_t n = 0; n < outer; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      double sum = 0;
      for (int64_t i = 0; i < inner; ++i) sum += *element++;
      sums->sums[c] += sum;
    }
  }
}

// Where the outputs of a layer are counted in what it gives.
int ChannelAxis(const Layer& layer, const Dims& dims) {
  return layer.op == "Conv" ? 1 : static_cast<int>(dims.size()) - 1;
}

std::vector<float> ShiftOf(const ChannelSums& original, const ChannelSums& twin,
                           const std::vector<float>* factors) {
  std::vector<float> shift;
  const auto count = static_cast<double>(std::max<int64_t>(original.count, 1));
  for (size_t c = 0; c < original.sums.size(); ++c) {
    const double factor = factors == nullptr ? 1 : (*factors)[c];
    shift.push_back(static_cast<float>((twin.sums[c] * factor - original.sums[c]) / count));
  }
  return shift;
}

}  // namespace

absl::StatusOr<std::map<int, std::vector<float>>> MeasureShifts(
    const std::vector<Layer>& layers, const TensorParams& tensors,
    const std::vector<EqualizedTensor>& equalized, const TrialRuns& runs, const ExampleSet& set,
    QdqWriter* writer) {
  ABSL_ASSIGN_OR_RETURN(const TwinFile file, writer->WriteTwins(tensors, equalized));
  ABSL_ASSIGN_OR_RETURN(const auto model, runs.Load(file.bytes));
  absl::flat_hash_map<std::string, int> layer_of;
  for (size_t i = 0; i < layers.size(); ++i) {
    layer_of[file.originals[i]] = static_cast<int>(i);
    layer_of[file.twins[i]] = static_cast<int>(i);
  }
  absl::flat_hash_map<std::string, ChannelSums> sums;
  for (int64_t example : set.chosen) {
    ABSL_RETURN_IF_ERROR(runs.RunAll(*model, example, [&](const OutputTensor& output) {
      const std::string& name = model->signature().outputs[output.index].name;
      const auto layer = layer_of.find(name);
      if (layer != layer_of.end())
        AddTo(&sums[name], output, ChannelAxis(layers[layer->second], output.dims));
      return absl::OkStatus();
    }));
  }
  std::map<int, std::vector<float>> shifts;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].can_shift) continue;
    const std::vector<float>* factors = nullptr;
    for (const EqualizedTensor& tensor : equalized) {
      if (tensor.giver == static_cast<int>(i)) factors = &tensor.factors;
    }
    shifts[static_cast<int>(i)] = ShiftOf(sums[file.originals[i]], sums[file.twins[i]], factors);
  }
  return shifts;
}

}  // namespace tilewire::tuning
