// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/tuning_examples.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/amount_text.h"
#include "client/load/random_input.h"
#include "client/tensor_values.h"

namespace tilewire::client {

OwnedTensor OwnedOf(Tensor tensor) {
  return {std::move(tensor.name),
          {Dims(tensor.shape.begin(), tensor.shape.end()), ::tilewire::Layout::kNchw,
           std::move(tensor.bytes)}};
}

absl::StatusOr<std::vector<int64_t>> LabelsOf(const std::string& source, const NpyArray& array,
                                              int64_t examples) {
  const int64_t size = SizeOfDatatype(array.datatype);
  if (size == 0 || IsFloatingPoint(array.datatype) || array.datatype == "BOOL") {
    return absl::InvalidArgumentError(
        absl::StrCat(source, " holds ", array.datatype, "; labels are whole numbers"));
  }
  const auto count = static_cast<int64_t>(array.bytes.size()) / size;
  if (count != examples) {
    return absl::InvalidArgumentError(absl::StrCat(source, " has ", CountText(count, "label"),
                                                   " for ", CountText(examples, "example")));
  }
  const auto numbers = NumbersOf({.datatype = array.datatype, .bytes = array.bytes});
  if (!numbers.ok()) return numbers.status();
  return std::vector<int64_t>(numbers->begin(), numbers->end());
}

absl::Status AddArray(const TensorSpec& input, InputArray array,
                      std::vector<OwnedExample>* examples) {
  const std::string source = array.source;
  const int64_t rows = array.array.shape.empty() ? 0 : array.array.shape[0];
  if (examples->empty()) examples->resize(rows);
  if (rows != static_cast<int64_t>(examples->size())) {
    return absl::InvalidArgumentError(absl::StrCat(source, " has ", CountText(rows, "example"),
                                                   "; other inputs have ", examples->size()));
  }
  auto fitted = FitInputs(input, std::move(array));
  if (!fitted.ok()) return fitted.status();
  const Dataset dataset(std::move(fitted->tensors), std::move(fitted->values), {});
  for (int64_t i = 0; i < rows; ++i)
    (*examples)[i].push_back({input.name, dataset.TakeInputs({i})});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OwnedExample>> MakeUpExamples(const ModelSignature& signature,
                                                         int64_t count, int64_t free_size,
                                                         uint64_t seed) {
  std::vector<OwnedExample> examples(count);
  for (int64_t i = 0; i < count; ++i) {
    for (const TensorSpec& input : signature.inputs) {
      auto tensor = RandomInput(MetadataOf(input), 1, free_size, Layout::kNchw,
                                seed + static_cast<uint64_t>(i));
      if (!tensor.ok()) return tensor.status();
      examples[i].push_back(OwnedOf(*std::move(tensor)));
    }
  }
  return examples;
}

std::vector<TuningExample> ViewsOf(const std::vector<OwnedExample>& examples) {
  std::vector<TuningExample> views;
  for (const OwnedExample& example : examples) {
    TuningExample& view = views.emplace_back();
    for (const OwnedTensor& one : example) view.push_back({one.name, one.tensor.View()});
  }
  return views;
}

}  // namespace tilewire::client
