// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/answers/config_answer.h"

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "service/models/served_tensors.h"
#include "service/wire/shape_error.h"

namespace tilewire::service {
namespace {

using inference::ModelConfig;

bool IsBatched(const ModelSignature& signature) {
  const auto is_batched = [](const TensorSpec& spec) { return LeavesBatchOpen(spec.dims); };
  return !signature.inputs.empty() && absl::c_all_of(signature.inputs, is_batched) &&
         absl::c_all_of(signature.outputs, is_batched);
}

// The declared tensor of each name, completed, in the order of the file.
template <typename Tensor>
void CompleteTensors(const std::vector<TensorSpec>& specs, bool batched,
                     google::protobuf::RepeatedPtrField<Tensor>* tensors) {
  google::protobuf::RepeatedPtrField<Tensor> all;
  for (const TensorSpec& spec : specs) {
    Tensor* tensor = all.Add();
    const auto declared =
        absl::c_find_if(*tensors, [&spec](const Tensor& one) { return one.name() == spec.name; });
    if (declared != tensors->end()) *tensor = *declared;
    tensor->set_name(spec.name);
    tensor->set_data_type(ConfigType(spec.type));
    if (!tensor->dims().empty()) continue;
    for (size_t i = batched ? 1 : 0; i < spec.dims.size(); ++i) tensor->add_dims(spec.dims[i]);
    if (spec.any_rank) tensor->add_dims(-1);
  }
  tensors->Swap(&all);
}

void SetPolicy(uint32_t latest, inference::ModelVersionPolicy* policy) {
  if (latest == 0) {
    policy->mutable_all();
  } else {
    policy->mutable_latest()->set_num_versions(latest);
  }
}

}  // namespace

// The name that Triton has for ONNX files, which its clients compare.
std::string PlatformOf(const ServedModel& served) {
  const bool is_set = served.config != nullptr && !served.config->platform().empty();
  return is_set ? served.config->platform() : "onnxruntime_onnx";
}

ModelConfig CompletedConfig(const ServedModel& served, const ConfigDefaults& defaults) {
  ModelConfig config = served.config == nullptr ? ModelConfig() : *served.config;
  const ModelSignature& signature = served.model->signature();
  config.set_name(served.name);
  config.set_platform(PlatformOf(served));
  if (config.backend().empty()) config.set_backend("onnxruntime");
  if (config.default_model_filename().empty()) {
    config.set_default_model_filename(served.default_file);
  }
  if (config.max_batch_size() == 0) config.set_max_batch_size(static_cast<int>(served.max_batch));
  if (config.max_batch_size() == 0 && config.input().empty() && config.output().empty() &&
      IsBatched(signature)) {
    config.set_max_batch_size(defaults.max_batch);
  }
  if (config.version_policy().policy_choice_case() ==
      inference::ModelVersionPolicy::POLICY_CHOICE_NOT_SET)
    SetPolicy(defaults.latest, config.mutable_version_policy());
  const bool batched = config.max_batch_size() > 0;
  CompleteTensors(signature.inputs, batched, config.mutable_input());
  CompleteTensors(signature.outputs, batched, config.mutable_output());
  return config;
}

}  // namespace tilewire::service
