// SPDX-License-Identifier: Apache-2.0
#include "service/models/served_tensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/wire/status_text.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

absl::Status Invalid(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

// The products of the fixed dims before, between and after the open ones: what a reshape keeps.
std::vector<uint64_t> Segments(const Dims& dims) {
  std::vector<uint64_t> products = {1};
  for (int64_t dim : dims) {
    if (dim < 0) {
      products.push_back(1);
    } else {
      products.back() *= static_cast<uint64_t>(dim);
    }
  }
  return products;
}

// `to` with the open dims of `from` as they are in `given`.
Dims Reshaped(const Dims& given, const Dims& from, const Dims& to) {
  Dims dims = to;
  size_t source = 0;
  for (int64_t& dim : dims) {
    if (dim >= 0) continue;
    while (from[source] >= 0) ++source;
    dim = given[source++];
  }
  return dims;
}

// Whether each dim of `declared` is the file's, or fixes one that the file leaves open.
bool Narrows(const Dims& declared, const TensorSpec& file) {
  if (file.any_rank) return true;
  if (declared.size() != file.dims.size()) return false;
  for (size_t d = 0; d < declared.size(); ++d) {
    if (declared[d] != file.dims[d] && (file.dims[d] >= 0 || declared[d] < 0)) return false;
  }
  return true;
}

template <typename Numbers>
Dims WithBatch(const Numbers& numbers, bool batched, int64_t batch) {
  Dims dims(numbers.begin(), numbers.end());
  if (batched) dims.insert(dims.begin(), batch);
  return dims;
}

// A model whose batch is fixed takes that one.
int64_t BatchOf(const TensorSpec& file, int64_t most) {
  const bool fixed = !file.dims.empty() && file.dims[0] >= 0 && file.dims[0] <= most;
  return fixed ? file.dims[0] : -1;
}

template <typename Tensor>
int Find(const Tensor& declared, const std::vector<TensorSpec>& specs) {
  const auto found = std::find_if(specs.begin(), specs.end(), [&declared](const TensorSpec& one) {
    return one.name == declared.name();
  });
  return found == specs.end() ? -1 : static_cast<int>(found - specs.begin());
}

bool IsOptional(const inference::ModelInput& input) { return input.optional(); }
bool IsOptional(const inference::ModelOutput&) { return false; }

constexpr char kReshapedLayout[] =
    "config.pbtxt reshapes it, so that its layout is 'nchw', row-major as its dims are";

}  // namespace

inference::DataType ConfigType(DataType type) {
  inference::DataType found = inference::TYPE_INVALID;
  inference::DataType_Parse(absl::StrCat("TYPE_", DatatypeName(type)), &found);
  return found;
}

std::optional<DataType> TypeNamed(absl::string_view name) {
  for (int value = 0; value <= static_cast<int>(DataType::kU64); ++value) {
    const auto type = static_cast<DataType>(value);
    if (!name.empty() && DatatypeName(type) == name) return type;
  }
  return std::nullopt;
}

template <typename Tensor>
absl::Status ServedTensors::Apply(const Tensor& tensor, int64_t most, TensorSpec* spec,
                                  Declared* declared) {
  const inference::DataType type = ConfigType(spec->type);
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat(why, " (", inference::DataType_Name(type), " ", ShapeText(*spec), ")"));
  };
  if (tensor.data_type() != inference::TYPE_INVALID && tensor.data_type() != type)
    return refuse("its data_type is not the file's");
  if (tensor.dims().empty() && !tensor.has_reshape()) return absl::OkStatus();
  const int64_t batch = BatchOf(*spec, most);
  declared->has_dims = true;
  declared->reshapes = tensor.has_reshape();
  declared->client = WithBatch(tensor.dims(), most > 0, batch);
  declared->file = declared->client;
  if (tensor.has_reshape()) declared->file = WithBatch(tensor.reshape().shape(), most > 0, batch);
  if (!Narrows(declared->file, *spec))
    return refuse("its dims are not the file's, nor narrower ones");
  if (Segments(declared->client) != Segments(declared->file))
    return refuse("its reshape changes the number of elements");
  spec->dims = declared->client;
  spec->any_rank = false;
  return absl::OkStatus();
}

absl::StatusOr<ServedTensors> ServedTensors::Create(const inference::ModelConfig& config,
                                                    const ModelSignature& file) {
  ServedTensors served(file);
  const int64_t most = config.max_batch_size();
  const auto apply = [&](const char* kind, const auto& all, std::vector<TensorSpec>* specs,
                         std::vector<Declared>* declared) -> absl::Status {
    declared->resize(specs->size());
    for (const auto& tensor : all) {
      const int index = Find(tensor, *specs);
      const std::string what = absl::StrCat("config.pbtxt: ", kind, " ", Quoted(tensor.name()));
      if (index < 0 && IsOptional(tensor)) continue;
      if (index < 0) return Invalid(what, "the file has none of this name");
      const absl::Status applied = Apply(tensor, most, &(*specs)[index], &(*declared)[index]);
      if (!applied.ok()) return Invalid(what, applied.message());
    }
    return absl::OkStatus();
  };
  ABSL_RETURN_IF_ERROR(apply("input", config.input(), &served.signature_.inputs, &served.inputs_));
  ABSL_RETURN_IF_ERROR(
      apply("output", config.output(), &served.signature_.outputs, &served.outputs_));
  return served;
}

absl::Status ServedTensors::ToModel(std::vector<InputTensor>* inputs,
                                    const std::vector<OutputRequest>& outputs) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (!inputs_[i].reshapes) continue;
    InputTensor& input = (*inputs)[i];
    if (input.layout != Layout::kNchw)
      return Invalid(absl::StrCat("input ", Quoted(signature_.inputs[i].name)), kReshapedLayout);
    input.dims = Reshaped(input.dims, inputs_[i].client, inputs_[i].file);
  }
  if (outputs_.empty()) return absl::OkStatus();
  for (const OutputRequest& output : outputs) {
    if (!outputs_[output.index].reshapes || output.layout == Layout::kNchw) continue;
    return Invalid(absl::StrCat("output ", Quoted(signature_.outputs[output.index].name)),
                   kReshapedLayout);
  }
  return absl::OkStatus();
}

absl::Status ServedTensors::FromModel(std::vector<OutputTensor>* outputs) const {
  if (outputs_.empty()) return absl::OkStatus();
  for (OutputTensor& output : *outputs) {
    const TensorSpec& spec = signature_.outputs[output.index];
    const Declared& declared = outputs_[output.index];
    if (!declared.has_dims) continue;
    const TensorSpec file{.name = spec.name, .type = spec.type, .dims = declared.file};
    if (!file.Allows(output.dims)) {
      return Invalid(absl::StrCat("output ", Quoted(spec.name)),
                     absl::StrCat("the model computes ", DimsToString(output.dims),
                                  ", config.pbtxt says ", ShapeText(file)));
    }
    output.dims = Reshaped(output.dims, declared.file, declared.client);
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
