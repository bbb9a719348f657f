// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/answers/config_answer.h"

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

}  // namespace

ModelConfig CompletedConfig(const ServedModel& served, int default_max_batch) {
  ModelConfig config = served.config == nullptr ? ModelConfig() : *served.config;
  const ModelSignature& signature = served.model->signature();
  config.set_name(served.name);
  if (config.platform().empty()) config.set_platform("onnxruntime_onnx");
  if (config.backend().empty()) config.set_backend("onnxruntime");
  if (config.default_model_filename().empty()) {
    config.set_default_model_filename(served.default_file);
  }
  if (config.max_batch_size() == 0) config.set_max_batch_size(static_cast<int>(served.max_batch));
  if (config.max_batch_size() == 0 && config.input().empty() && config.output().empty() &&
      IsBatched(signature)) {
    config.set_max_batch_size(default_max_batch);
  }
  const bool batched = config.max_batch_size() > 0;
  CompleteTensors(signature.inputs, batched, config.mutable_input());
  CompleteTensors(signature.outputs, batched, config.mutable_output());
  return config;
}

}  // namespace tilewire::service
