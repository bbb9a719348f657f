// SPDX-License-Identifier: Apache-2.0
//
// The changes that make of a model's file one in which tensors and layers are integers. Parts of
// new names are unlike all that there are. Layers come in the order of the file, so that what two
// share stands before the first. Thread-compatible. Source: ONNX, QuantizeLinear and
// DequantizeLinear.
#ifndef ENGINE_TUNING_QDQ_EDITS_H_
#define ENGINE_TUNING_QDQ_EDITS_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "engine/memory/dims.h"
#include "engine/network/quantization_params.h"
#include "engine/tuning/byte_weights.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/model_source.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::tuning {

// The node that quantizes a tensor in such files.
std::string QuantizeNodeOf(const std::string& tensor);

// The integers of a layer.
struct LayerIntegers {
  Dims dims;  // of the weights
  const ByteWeights* weights = nullptr;
  bool has_own_weights = false;  // unlike those of other layers with the same initializer
  std::vector<float> biases;     // empty: none
  bool has_own_biases = false;   // other numbers than those of the file
  float src_scale = 1;
};

class QdqEdits {
 public:
  explicit QdqEdits(const ModelSource& source);

  // The tensor becomes u8 and real again; nodes that read it read the result.
  void Convert(const std::string& tensor, const network::QuantizationParams& params);
  // The same, and nothing reads it yet; its channels (dimension 1 of 4) are divided by `factors`
  // before, if there are any. Returns the name of the result.
  std::string ConvertBeside(const std::string& tensor, const network::QuantizationParams& params,
                            const std::vector<float>& factors);
  // Nodes shift in the file, and some share a name: the layer's node gets one to be found by.
  void Name(const Layer& layer);
  // The weights of a layer, and its bias where it fits integers, become initializers of integers.
  void Replace(const Layer& layer, const LayerIntegers& integers);
  // Beside the layer, which stays, the same in integers, of a source by ConvertBeside(). Returns
  // the name of what it gives.
  std::string AddTwin(const Layer& layer, const LayerIntegers& integers, const std::string& src);
  // An output of f32 more.
  void AddOutput(const std::string& tensor);

  bool IsEmpty() const { return before_.empty() && rewired_.empty(); }
  // Initializers that nothing reads any longer go. Ends the object's life.
  std::string Finish();

 private:
  bool IsTaken(const char* part) const;
  std::string NameOf(const std::string& tensor, const char* part, const std::string& of = "") const;
  std::string AddFloats(const std::string& name, const std::vector<int64_t>& dims,
                        const std::vector<float>& values);
  onnx::TensorProto* AddTensor(const std::string& name, const std::vector<int64_t>& dims,
                               onnx::TensorProto::DataType type);
  // Return the name of the real numbers, which layers may share.
  std::string AddWeights(const Layer& layer, const LayerIntegers& integers);
  std::string AddBiasIntegers(const Layer& layer, const LayerIntegers& integers,
                              const std::vector<int32_t>& elements);
  // The name of the bias that a node reads; nullopt: the one that it reads already.
  std::optional<std::string> BiasOf(const Layer& layer, const LayerIntegers& integers);
  onnx::NodeProto& Changed(int node);
  void Rewire(int node, const std::string& before, const std::string& now);
  bool IsUnread(const std::string& name) const;

  const ModelSource& source_;
  std::string mark_;
  onnx::GraphProto added_;             // initializers and outputs
  std::map<int, std::string> before_;  // fields of the graph, before a node
  std::map<int, onnx::NodeProto> rewired_;
  absl::flat_hash_set<std::string> weights_;  // that were added, by their real name
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_QDQ_EDITS_H_
