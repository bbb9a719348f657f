// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/calibration.h"

#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/tuning/qdq_file.h"

namespace tilewire::tuning {
namespace {

absl::Status AddTo(RangeHistogram* histogram, absl::Span<const float> numbers,
                   const std::string& tensor, int64_t example) {
  for (float number : numbers) {
    if (std::isfinite(number)) continue;
    return InvalidArgument("tensor '", tensor, "' of the exact model is ", number, " for example ",
                           example, "; ranges are of finite numbers");
  }
  histogram->Add(numbers);
  return absl::OkStatus();
}

// The floats of an input of the model.
std::vector<float> FloatsOf(const InputTensor& input) {
  const std::string bytes = absl::StrJoin(input.pieces, "");
  std::vector<float> floats(bytes.size() / sizeof(float));
  memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

// Numbers tensors by the group that ties them together.
absl::flat_hash_map<std::string, int> GroupsOf(const Conversions& all, int* count) {
  absl::flat_hash_map<std::string, int> index;
  for (const std::string& tensor : all.tensors)
    index.emplace(tensor, static_cast<int>(index.size()));
  std::vector<int> leader(index.size());
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](int i) {
    while (leader[i] != i) i = leader[i] = leader[leader[i]];
    return i;
  };
  for (const auto& [a, b] : all.ties) leader[find(index.at(a))] = find(index.at(b));
  std::vector<int> group(index.size(), -1);
  *count = 0;
  absl::flat_hash_map<std::string, int> groups;
  for (const std::string& tensor : all.tensors) {
    int& of_leader = group[find(index.at(tensor))];
    if (of_leader < 0) of_leader = (*count)++;
    groups[tensor] = of_leader;
  }
  return groups;
}

class Observer {
 public:
  Observer(const ModelSource& source, const Conversions& all, const ModelSignature& signature)
      : source_(source), tensors_(all.tensors), histograms_(all.tensors.size()) {
    for (const std::string& tensor : tensors_) {
      if (!source.IsOutput(tensor) && !source.IsInput(tensor)) added_.push_back(tensor);
    }
    for (const TensorSpec& input : signature.inputs) inputs_.push_back(input.name);
  }

  absl::Status Run(const TrialRuns& runs, const ExampleSet& set,
                   const std::function<void(int64_t)>& seen) {
    ABSL_ASSIGN_OR_RETURN(const auto probe, runs.Load(WithOutputs(source_, added_)));
    for (int64_t example : set.chosen) {
      for (size_t i = 0; i < inputs_.size(); ++i) {
        if (RangeHistogram* histogram = Find(inputs_[i]); histogram != nullptr) {
          ABSL_RETURN_IF_ERROR(
              AddTo(histogram, FloatsOf(set.inputs[example][i]), inputs_[i], example));
        }
      }
      ABSL_RETURN_IF_ERROR(runs.RunAll(*probe, example, [&](const OutputTensor& output) {
        const std::string& name = probe->signature().outputs[output.index].name;
        RangeHistogram* histogram = Find(name);
        if (histogram == nullptr) return absl::OkStatus();
        const auto* numbers = reinterpret_cast<const float*>(output.bytes.data());
        return AddTo(histogram, {numbers, output.bytes.size() / sizeof(float)}, name, example);
      }));
      seen(example);
    }
    return absl::OkStatus();
  }

  const RangeHistogram& histogram(size_t tensor) const { return histograms_[tensor]; }

 private:
  RangeHistogram* Find(const std::string& name) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (tensors_[i] == name) return &histograms_[i];
    }
    return nullptr;
  }

  const ModelSource& source_;
  const std::vector<std::string>& tensors_;
  std::vector<RangeHistogram> histograms_;
  std::vector<std::string> added_, inputs_;
};

}  // namespace

absl::StatusOr<Calibration> Calibration::Observe(const ModelSource& source, const Conversions& all,
                                                 const TrialRuns& runs, const ExampleSet& set,
                                                 const ModelSignature& signature,
                                                 const std::function<void(int64_t)>& seen) {
  Observer observer(source, all, signature);
  ABSL_RETURN_IF_ERROR(observer.Run(runs, set, seen));
  Calibration calibration;
  int count = 0;
  calibration.groups_ = GroupsOf(all, &count);
  calibration.ranges_.resize(count);
  for (size_t i = 0; i < all.tensors.size(); ++i) {
    auto& ranges = calibration.ranges_[calibration.GroupOf(all.tensors[i])];
    for (size_t m = 0; m < kRangeMethods.size(); ++m)
      ranges[m] = Union(ranges[m], observer.histogram(i).Find(kRangeMethods[m]));
  }
  return calibration;
}

}  // namespace tilewire::tuning
