// SPDX-License-Identifier: Apache-2.0
//
// A model's inputs and outputs as clients see them: the file's, narrowed and reshaped by the
// model's settings. Immutable value.
#ifndef SERVICE_MODELS_SERVED_TENSORS_H_
#define SERVICE_MODELS_SERVED_TENSORS_H_

#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/model.h"
#include "protos/model_config.pb.h"

namespace tilewire::service {

// "FP32" as a config.pbtxt says it.
inference::DataType ConfigType(DataType type);
// The type that servers call "FP32"; nothing if none is called so.
std::optional<DataType> TypeNamed(absl::string_view name);

class ServedTensors {
 public:
  // The file's, as they are.
  ServedTensors() = default;
  explicit ServedTensors(const ModelSignature& file) : signature_(file) {}

  // As the settings declare them.
  //   kInvalidArgument  a tensor that the file does not have, another type, dims that are wider
  //                     than the file's, a reshape that changes the number of elements; the message
  //                     says which
  static absl::StatusOr<ServedTensors> Create(const inference::ModelConfig& config,
                                              const ModelSignature& file);

  // Requests are bound to it, and metadata tells it.
  const ModelSignature& signature() const { return signature_; }

  // A request that is bound to signature() becomes one for the model: reshaped inputs get the
  // file's dims.
  //   kInvalidArgument  a tensor that is reshaped is given or asked for in NHWC
  absl::Status ToModel(std::vector<InputTensor>* inputs,
                       const std::vector<OutputRequest>& outputs) const;
  // The model's answer becomes the client's.
  //   kInvalidArgument  an output has other dims than the settings say
  absl::Status FromModel(std::vector<OutputTensor>* outputs) const;

 private:
  // The dims that the settings declare, on either side; open ones correspond in their order.
  struct Declared {
    bool has_dims = false;
    bool reshapes = false;
    Dims client, file;
  };
  // `most`: the largest batch; 0: the declaration has no dims without the batch.
  template <typename Tensor>
  static absl::Status Apply(const Tensor& tensor, int64_t most, TensorSpec* spec,
                            Declared* declared);

  ModelSignature signature_;
  std::vector<Declared> inputs_, outputs_;  // per tensor of the signature, or none
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_SERVED_TENSORS_H_
