// SPDX-License-Identifier: Apache-2.0
#include "client/tables/models_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/amount_text.h"
#include "client/tensor.h"
#include "client/text_width.h"

namespace tilewire::client {
namespace {

constexpr int kNameWidth = 20, kVersionWidth = 4;

std::string TensorsText(const std::vector<TensorMetadata>& tensors) {
  return absl::StrJoin(tensors, ", ", [](std::string* out, const TensorMetadata& tensor) {
    absl::StrAppend(out, ShownText(tensor.name), " ", ShownText(tensor.datatype), " ",
                    ShapeText(tensor.shape));
  });
}

absl::string_view StateText(const ModelEntry& model, bool is_ready) {
  if (is_ready) return " ready";
  return model.state == "LOADING" ? " loading" : " not ready";
}

}  // namespace

std::string ModelText(const ModelEntry& model, bool is_ready,
                      const std::optional<ModelMetadata>& metadata) {
  const std::string version =
      !model.version.empty() || !metadata ? model.version : absl::StrJoin(metadata->versions, ",");
  std::string text =
      absl::StrCat(PaddedAfter(ShownText(model.name), kNameWidth), " version ",
                   PaddedAfter(ShownText(version), kVersionWidth), StateText(model, is_ready),
                   model.reason.empty() ? "" : "  ", ShownText(model.reason), "\n");
  if (!metadata) return text;
  absl::StrAppend(&text, "  inputs   ", TensorsText(metadata->inputs), "\n  outputs  ",
                  TensorsText(metadata->outputs), "\n");
  const auto property = [&](const char* name) {
    const auto found = metadata->properties.find(name);
    return found == metadata->properties.end() ? "" : ShownText(found->second);
  };
  if (const std::string precision = property("precision"); !precision.empty()) {
    absl::StrAppend(&text, "  precision ", precision);
    if (const std::string budget = property("tuned_budget"); !budget.empty()) {
      absl::StrAppend(&text, " to ", budget, ": ", property("tuned_layers"),
                      "; measured: ", property("tuned_error"));
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace tilewire::client
