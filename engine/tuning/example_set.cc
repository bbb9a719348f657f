// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/example_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"

namespace tilewire::tuning {
namespace {

std::string InputNames(const ModelSignature& signature) {
  return absl::StrJoin(signature.inputs, ", ", [](std::string* text, const TensorSpec& input) {
    absl::StrAppend(text, "'", input.name, "'");
  });
}

// The index of the first f32 that is not finite.
std::optional<int64_t> FirstNotFinite(const InputTensor& tensor) {
  std::string bytes = absl::StrJoin(tensor.pieces, "");
  for (size_t i = 0; i + sizeof(float) <= bytes.size(); i += sizeof(float)) {
    float number;
    memcpy(&number, &bytes[i], sizeof(number));
    if (!std::isfinite(number)) return static_cast<int64_t>(i / sizeof(float));
  }
  return std::nullopt;
}

absl::Status CheckTensor(const TensorSpec& spec, const InputTensor& tensor, int64_t example) {
  if (!spec.Allows(tensor.dims)) {
    return InvalidArgument("example ", example, ": input '", spec.name, "' is of shape ",
                           DimsToString(tensor.dims), "; the model takes ", ShapeText(spec));
  }
  if (spec.type != DataType::kF32) return absl::OkStatus();
  if (const auto at = FirstNotFinite(tensor)) {
    return InvalidArgument("example ", example, ": element ", *at, " of input '", spec.name,
                           "' is not finite; ranges are of finite numbers");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<InputTensor>> Ordered(const ModelSignature& signature,
                                                 const TuningExample& example, int64_t index) {
  std::vector<InputTensor> inputs;
  for (const TensorSpec& spec : signature.inputs) {
    const auto is_named = [&](const NamedTensor& one) { return one.name == spec.name; };
    if (absl::c_count_if(example, is_named) != 1) {
      return InvalidArgument("example ", index, " must have input '", spec.name,
                             "' once; the model has the inputs ", InputNames(signature));
    }
    inputs.push_back(absl::c_find_if(example, is_named)->tensor);
    ABSL_RETURN_IF_ERROR(CheckTensor(spec, inputs.back(), index));
  }
  if (example.size() == inputs.size()) return inputs;
  return InvalidArgument("example ", index, " has ", example.size(),
                         " tensors; the model has the inputs ", InputNames(signature));
}

void KeepEvenly(int64_t count, std::vector<int64_t>* examples) {
  const auto all = static_cast<int64_t>(examples->size());
  for (int64_t i = 0; i < count; ++i) (*examples)[i] = (*examples)[i * all / count];
  examples->resize(count);
}

}  // namespace

void ExampleSet::KeepOnly(int64_t chosen_count, int64_t held_out_count) {
  KeepEvenly(chosen_count, &chosen);
  KeepEvenly(held_out_count, &held_out);
}

absl::StatusOr<ExampleSet> ExampleSet::Create(const ModelSignature& signature,
                                              absl::Span<const TuningExample> examples,
                                              double hold_out, uint64_t seed) {
  const auto count = static_cast<int64_t>(examples.size());
  if (count < 2) {
    return InvalidArgument(count, count == 1 ? " example" : " examples",
                           ": at least 2 are needed, one to choose by and one to check with; a few "
                           "hundred tell something");
  }
  if (!(hold_out > 0 && hold_out < 1))
    return InvalidArgument("a share of ", hold_out, " held out is not between 0 and 1");
  ExampleSet set;
  for (int64_t i = 0; i < count; ++i) {
    ABSL_ASSIGN_OR_RETURN(std::vector<InputTensor> inputs, Ordered(signature, examples[i], i));
    set.inputs.push_back(std::move(inputs));
  }
  std::vector<int64_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  // By the generator's own numbers: those of the standard's distributions differ among libraries.
  for (int64_t i = count - 1; i > 0; --i) std::swap(order[i], order[random() % (i + 1)]);
  const int64_t held = std::clamp(std::llround(hold_out * static_cast<double>(count)), 1LL,
                                  static_cast<long long>(count - 1));
  set.held_out.assign(order.begin(), order.begin() + held);
  set.chosen.assign(order.begin() + held, order.end());
  absl::c_sort(set.held_out);
  absl::c_sort(set.chosen);
  return set;
}

}  // namespace tilewire::tuning
