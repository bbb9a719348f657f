// SPDX-License-Identifier: Apache-2.0
//
// A model's file again, with more nodes and initializers in its graph; all that is not changed
// stays byte for byte. Thread-compatible. Source: ONNX, QuantizeLinear and DequantizeLinear.
#ifndef ENGINE_TUNING_QDQ_FILE_H_
#define ENGINE_TUNING_QDQ_FILE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "engine/network/quantization_params.h"
#include "engine/tuning/byte_weights.h"
#include "engine/tuning/corrections/corrections.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "engine/tuning/qdq_edits.h"

namespace tilewire::tuning {

// The file with further outputs: tensors of f32 that it computes, and that are not outputs yet.
std::string WithOutputs(const ModelSource& source, const std::vector<std::string>& tensors);

using TensorParams = std::map<std::string, network::QuantizationParams>;

// A file in which a twin in integers stands beside each layer, which stays exact.
struct TwinFile {
  std::string bytes;
  std::vector<std::string> originals, twins;  // of each layer: the outputs to compare
};

// Keeps the integers of weights from file to file, where it writes several. Refers to `source` and
// `layers`.
class QdqWriter {
 public:
  QdqWriter(const ModelSource& source, const std::vector<Layer>& layers, bool writes_several = true)
      : source_(source), layers_(layers), writes_several_(writes_several) {}

  // `tensors` become u8 and real again before all nodes that read them; weights and biases of the
  // layers that are int8 become initializers of integers. Initializers that nothing reads any
  // longer go. Nodes of layers that are not exact get their layer's name. Where all are exact, or
  // bf16 with names of their own, these are the bytes of the source. `corrections` are of int8
  // layers, and the parameters of tensors that they name are of what comes of them.
  //   kInvalidArgument  weights that are not finite
  //   kInternal         an int8 layer whose input is none of `tensors`
  absl::StatusOr<std::string> Write(const Precisions& precisions, const TensorParams& tensors,
                                    const Corrections& corrections = {});
  // `tensors` are what all layers read. Errors: those of Write().
  absl::StatusOr<TwinFile> WriteTwins(const TensorParams& tensors,
                                      const std::vector<EqualizedTensor>& equalized);

 private:
  absl::StatusOr<std::vector<float>> LoadWeights(const Layer& layer) const;
  absl::StatusOr<const ByteWeights*> BytesOf(const Layer& layer);
  // The result may refer to `own_weights`.
  absl::StatusOr<LayerIntegers> IntegersOf(int layer, const TensorParams& tensors,
                                           const Corrections& corrections,
                                           ByteWeights* own_weights);

  const ModelSource& source_;
  const std::vector<Layer>& layers_;
  const bool writes_several_;
  absl::flat_hash_map<std::string, ByteWeights> bytes_;  // by the weights' name and axis
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_QDQ_FILE_H_
