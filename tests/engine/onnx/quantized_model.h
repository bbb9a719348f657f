// SPDX-License-Identifier: Apache-2.0
//
// Models of quantised numbers, as exporters write them: integers between a QuantizeLinear and
// a DequantizeLinear.
#ifndef TESTS_ENGINE_ONNX_QUANTIZED_MODEL_H_
#define TESTS_ENGINE_ONNX_QUANTIZED_MODEL_H_

#include <string>
#include <vector>

#include "tests/engine/onnx/fixture.h"

namespace tilewire::reader {

// Scales and zero points of the tests: "s" 0.5, "z" 128 and "z0" 0 as u8, "zs" 0 as s8.
inline OnnxBuilder QuantizedModel() {
  OnnxBuilder model;
  model.Floats("s", {}, {0.5f}).Floats("s3", {3}, {0.5f, 0.25f, 2.0f});
  model.Bytes("z", {}, false, {128}).Bytes("z0", {}, false, {0}).Bytes("zs", {}, true, {0});
  model.Bytes("z3", {3}, true, {0, 0, 0});
  return model;
}

// Weights "w" as s8, one scale per output, dequantised to "wr".
inline void AddWeights(OnnxBuilder* model, const std::vector<int64_t>& dims) {
  model->Bytes("w", dims, true).Floats("ws", {dims[0]}, std::vector<float>(dims[0], 0.25f));
  model->Bytes("wz", {dims[0]}, true, std::vector<int>(dims[0], 0));
  model->Node("DequantizeLinear", {"w", "ws", "wz"}, {"wr"}, {Int("axis", 0)});
}

// Integers "<dst>.q" of `src`, and `dst`, the real numbers that they stand for.
inline OnnxBuilder& AddPair(OnnxBuilder* model, const std::string& src, const std::string& dst,
                            const std::string& scale, const std::string& zero) {
  return model->Node("QuantizeLinear", {src, scale, zero}, {dst + ".q"})
      .Node("DequantizeLinear", {dst + ".q", scale, zero}, {dst});
}

}  // namespace tilewire::reader

#endif  // TESTS_ENGINE_ONNX_QUANTIZED_MODEL_H_
