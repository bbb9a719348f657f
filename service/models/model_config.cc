// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_config.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "service/models/text_file.h"
#include "service/wire/status_text.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

using inference::ModelConfig;

absl::Status Refused(absl::string_view setting, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("config.pbtxt: ", setting, ": ", why));
}

// The first error and the line in which it lies.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat("config.pbtxt, line ", line + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// A name in a folder, not a path out of it.
bool IsFileName(const std::string& name) {
  return !absl::StrContains(name, '/') && name != "." && name != "..";
}

absl::Status CheckOneOf(const char* setting, const std::string& value,
                        const std::set<std::string>& allowed) {
  if (value.empty() || allowed.count(value) != 0) return absl::OkStatus();
  return Refused(setting,
                 absl::StrCat(Quoted(value), " is not '", absl::StrJoin(allowed, "' or '"), "'"));
}

constexpr char kPrecision[] = "precision";

absl::Status CheckParameters(const ModelConfig& config) {
  for (const auto& [name, parameter] : config.parameters()) {
    if (name != kPrecision) {
      return Refused(absl::StrCat("parameters ", Quoted(name)), "this server knows 'precision'");
    }
    const absl::Status status = ParsePrecision(parameter.string_value()).status();
    if (!status.ok()) return Refused("parameters 'precision'", status.message());
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const ModelConfig& config, const std::string& model) {
  ABSL_RETURN_IF_ERROR(CheckOneOf("name", config.name(), {model}));
  ABSL_RETURN_IF_ERROR(CheckOneOf("platform", config.platform(), {"onnx", "onnxruntime_onnx"}));
  ABSL_RETURN_IF_ERROR(CheckOneOf("backend", config.backend(), {"onnxruntime", "tilewire"}));
  if (config.max_batch_size() < 0) return Refused("max_batch_size", "it is below 0");
  if (!IsFileName(config.default_model_filename())) {
    return Refused("default_model_filename", "it is not a file in the version's folder");
  }
  for (const inference::ModelInput& input : config.input()) {
    if (input.format() != inference::ModelInput::FORMAT_NHWC) continue;
    return Refused("input format FORMAT_NHWC",
                   "requests say so, by the parameter 'layout' of an input");
  }
  ABSL_RETURN_IF_ERROR(CheckParameters(config));
  std::string labels;
  for (const inference::ModelOutput& output : config.output()) {
    if (output.label_filename().empty()) continue;
    if (!IsFileName(output.label_filename())) {
      return Refused("label_filename", "it is not a file in the model's folder");
    }
    if (!labels.empty()) return Refused("label_filename", "only one output may have labels");
    labels = output.label_filename();
  }
  return absl::OkStatus();
}

inference::DataType TypeOf(DataType type) {
  inference::DataType found = inference::TYPE_INVALID;
  inference::DataType_Parse(absl::StrCat("TYPE_", DatatypeName(type)), &found);
  return found;
}

// `declared` is the tensor of a config, `spec` the model's. With a bound of the batch, Triton's
// dims leave the batch out.
template <typename Declared>
bool Agrees(const Declared& declared, bool batched, const TensorSpec& spec) {
  const inference::DataType type = declared.data_type();
  if (type != inference::TYPE_INVALID && type != TypeOf(spec.type)) return false;
  if (declared.dims().empty()) return true;
  Dims dims(declared.dims().begin(), declared.dims().end());
  if (batched) dims.insert(dims.begin(), -1);
  return dims == spec.dims;
}

template <typename AllDeclared>
absl::Status CheckTensors(const char* kind, const AllDeclared& all, bool batched,
                          const std::vector<TensorSpec>& specs) {
  for (const auto& declared : all) {
    const auto spec = std::find_if(specs.begin(), specs.end(), [&declared](const TensorSpec& one) {
      return one.name == declared.name();
    });
    const std::string what = absl::StrCat(kind, " ", Quoted(declared.name()));
    if (spec == specs.end()) return Refused(what, "the model has none of this name");
    if (!Agrees(declared, batched, *spec)) {
      return Refused(what, absl::StrCat("its data_type or dims are not the model's, ",
                                        inference::DataType_Name(TypeOf(spec->type)), " ",
                                        DimsToString(spec->dims)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ReadModelConfig(const std::string& path, const std::string& model) {
  ModelConfig config;
  const absl::StatusOr<std::string> text = TextOf(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("config.pbtxt: ", text.status().message()));
  }
  FirstError first;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&first);
  if (!parser.ParseFromString(*text, &config)) {
    return absl::InvalidArgumentError(
        absl::StrCat(first.text(), " (only settings that this server understands are accepted)"));
  }
  ABSL_RETURN_IF_ERROR(CheckValues(config, model));
  return config;
}

std::vector<int64_t> WantedVersions(const ModelConfig& config,
                                    const std::vector<int64_t>& on_disk) {
  const inference::ModelVersionPolicy& policy = config.version_policy();
  std::vector<int64_t> wanted = on_disk;
  if (policy.has_latest()) {
    const size_t most = std::max<uint32_t>(policy.latest().num_versions(), 1);
    if (wanted.size() > most) wanted.erase(wanted.begin(), wanted.end() - most);
  } else if (policy.has_specific()) {
    const auto& named = policy.specific().versions();
    std::erase_if(wanted, [&named](int64_t version) {
      return std::find(named.begin(), named.end(), version) == named.end();
    });
  }
  return wanted;
}

absl::Status CheckSignature(const ModelConfig& config, const ModelSignature& signature) {
  const bool batched = config.max_batch_size() > 0;
  ABSL_RETURN_IF_ERROR(CheckTensors("input", config.input(), batched, signature.inputs));
  return CheckTensors("output", config.output(), batched, signature.outputs);
}

std::optional<Precision> PrecisionOf(const ModelConfig& config) {
  const auto found = config.parameters().find(kPrecision);
  if (found == config.parameters().end()) return std::nullopt;
  return ParsePrecision(found->second.string_value()).value();
}

std::string ModelFile(const ModelConfig& config, const std::string& unnamed) {
  return config.default_model_filename().empty() ? unnamed : config.default_model_filename();
}

std::string LabelsFile(const ModelConfig& config) {
  for (const inference::ModelOutput& output : config.output()) {
    if (!output.label_filename().empty()) return output.label_filename();
  }
  return "labels.txt";
}

}  // namespace tilewire::service
