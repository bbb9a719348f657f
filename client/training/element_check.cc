// SPDX-License-Identifier: Apache-2.0
#include "client/training/element_check.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/amount_text.h"
#include "client/tensor_values.h"
#include "client/training/model_fit.h"

namespace tilewire::client {
namespace {

// As an index is taken: without its fraction.
bool IsWithin(double number, const ElementBounds& bounds) {
  if (bounds.besides && number == static_cast<double>(*bounds.besides)) return true;
  return number > static_cast<double>(bounds.least) - 1 &&
         number < static_cast<double>(bounds.most) + 1;
}

std::string AllowedText(const ElementBounds& bounds) {
  return absl::StrCat("allowed: ", bounds.least, " to ", bounds.most,
                      bounds.besides ? absl::StrCat(", and ", *bounds.besides) : "", " (",
                      ShownText(bounds.reason), ")");
}

// Looks at one example's.
absl::Status CheckTensor(const Tensor& tensor, const ElementBounds& bounds, int64_t example,
                         const std::string& source) {
  const auto numbers = NumbersOf(tensor);
  if (!numbers.ok()) return numbers.status();
  const auto found = std::find_if_not(numbers->begin(), numbers->end(),
                                      [&](double number) { return IsWithin(number, bounds); });
  if (found == numbers->end()) return absl::OkStatus();
  const int64_t at = found - numbers->begin(), size = SizeOfDatatype(tensor.datatype);
  const auto text =
      TextsOf({.datatype = tensor.datatype, .bytes = tensor.bytes.substr(at * size, size)}, 1);
  if (!text.ok()) return text.status();
  return absl::InvalidArgumentError(absl::StrCat(
      source, ": ", text->at(0), " of example ", example,
      numbers->size() == 1 ? "" : absl::StrCat(", element ", at), "; ", AllowedText(bounds)));
}

}  // namespace

absl::Status CheckElements(const Dataset& dataset, absl::Span<const ElementBounds> bounds,
                           const Trainer& trainer, const ExampleSources& sources) {
  if (bounds.empty()) return absl::OkStatus();
  for (int64_t example = 0; example < dataset.count(); ++example) {
    for (const ElementBounds& one : bounds) {
      const TensorSpec& spec =
          one.is_target ? trainer.targets()[one.tensor] : trainer.signature().inputs[one.tensor];
      const BatchTensor given = one.is_target ? dataset.TakeTargets(one.tensor, {&example, 1})
                                              : dataset.TakeInputs({&example, 1});
      const absl::Status status =
          CheckTensor({.datatype = MetadataOf(spec).datatype, .bytes = given.bytes}, one, example,
                      one.is_target ? sources.targets : sources.inputs);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace tilewire::client
