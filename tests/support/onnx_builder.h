// SPDX-License-Identifier: Apache-2.0
//
// Small ONNX models made in a test:
//
//   OnnxBuilder model(13);
//   model.Input("x", {-1, 3, 8, 8}).Floats("w", {4, 3, 3, 3});
//   model.Node("Conv", {"x", "w"}, {"y"}, {Ints("pads", {1, 1, 1, 1})}).Output("y");
//   std::string bytes = model.Serialize();
#ifndef TESTS_SUPPORT_ONNX_BUILDER_H_
#define TESTS_SUPPORT_ONNX_BUILDER_H_

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "protos/onnx_subset.pb.h"

namespace tilewire::testing {

inline onnx::AttributeProto Attribute(const std::string& name,
                                      onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto attribute;
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}
inline onnx::AttributeProto Ints(const std::string& name, const std::vector<int64_t>& values) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::INTS);
  for (int64_t value : values) attribute.add_ints(value);
  return attribute;
}
inline onnx::AttributeProto Int(const std::string& name, int64_t value) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::INT);
  attribute.set_i(value);
  return attribute;
}
inline onnx::AttributeProto Float(const std::string& name, float value) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::FLOAT);
  attribute.set_f(value);
  return attribute;
}
inline onnx::AttributeProto String(const std::string& name, const std::string& value) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::STRING);
  attribute.set_s(value);
  return attribute;
}
inline onnx::AttributeProto Floats(const std::string& name, const std::vector<float>& values) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::FLOATS);
  for (float value : values) attribute.add_floats(value);
  return attribute;
}
inline onnx::AttributeProto Strings(const std::string& name,
                                    const std::vector<std::string>& values) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::STRINGS);
  for (const std::string& value : values) attribute.add_strings(value);
  return attribute;
}

class OnnxBuilder {
 public:
  explicit OnnxBuilder(int64_t opset = 13) {
    model_.set_ir_version(8);
    model_.add_opset_import()->set_version(opset);
  }

  onnx::ModelProto& proto() { return model_; }
  onnx::GraphProto& graph() { return *model_.mutable_graph(); }

  // -1: an open dimension; no dims: a scalar.
  OnnxBuilder& Input(const std::string& name, const std::vector<int64_t>& dims,
                     onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    onnx::ValueInfoProto* input = graph().add_input();
    Declare(input, name, dims, type);
    input->mutable_type()->mutable_tensor_type()->mutable_shape();
    return *this;
  }
  // Without a shape.
  OnnxBuilder& Output(const std::string& name,
                      onnx::TensorProto::DataType type = onnx::TensorProto::FLOAT) {
    return Declare(graph().add_output(), name, {}, type);
  }

  // An initializer as raw data; without values, deterministic ones in [-1, 1) that depend on the
  // name.
  OnnxBuilder& Floats(const std::string& name, const std::vector<int64_t>& dims,
                      std::vector<float> values = {}) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    uint32_t state = 2166136261u;
    for (char c : name) state = (state ^ static_cast<uint8_t>(c)) * 16777619u;
    while (static_cast<int64_t>(values.size()) < count) {
      state = state * 1664525u + 1013904223u;
      values.push_back(static_cast<float>(state >> 8) / 8388608.0f - 1.0f);
    }
    onnx::TensorProto* tensor = Tensor(name, dims, onnx::TensorProto::FLOAT);
    tensor->set_raw_data(values.data(), values.size() * sizeof(float));
    return *this;
  }
  OnnxBuilder& Integers(const std::string& name, const std::vector<int64_t>& values) {
    onnx::TensorProto* tensor =
        Tensor(name, {static_cast<int64_t>(values.size())}, onnx::TensorProto::INT64);
    tensor->set_raw_data(values.data(), values.size() * sizeof(int64_t));
    return *this;
  }
  // Integers of 8 bits; without values, deterministic ones.
  OnnxBuilder& Bytes(const std::string& name, const std::vector<int64_t>& dims, bool is_signed,
                     std::vector<int> values = {}) {
    int64_t count = 1;
    for (int64_t dim : dims) count *= dim;
    while (static_cast<int64_t>(values.size()) < count)
      values.push_back(static_cast<int>(values.size() * 37 + name.size()) % 255 - 127);
    const std::string bytes(values.begin(), values.end());
    Tensor(name, dims, is_signed ? onnx::TensorProto::INT8 : onnx::TensorProto::UINT8)
        ->set_raw_data(bytes);
    return *this;
  }
  onnx::TensorProto* Tensor(const std::string& name, const std::vector<int64_t>& dims,
                            onnx::TensorProto::DataType type) {
    onnx::TensorProto* tensor = graph().add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(type);
    for (int64_t dim : dims) tensor->add_dims(dim);
    return tensor;
  }

  OnnxBuilder& Node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs,
                    const std::vector<onnx::AttributeProto>& attributes = {}) {
    onnx::NodeProto* node = graph().add_node();
    node->set_op_type(op);
    node->set_name("node_" + (outputs.empty() ? op : outputs[0]));
    for (const std::string& input : inputs) node->add_input(input);
    for (const std::string& output : outputs) node->add_output(output);
    for (const onnx::AttributeProto& attribute : attributes) *node->add_attribute() = attribute;
    return *this;
  }

  std::string Serialize() const { return model_.SerializeAsString(); }

 private:
  OnnxBuilder& Declare(onnx::ValueInfoProto* info, const std::string& name,
                       const std::vector<int64_t>& dims, onnx::TensorProto::DataType elements) {
    info->set_name(name);
    onnx::TypeProto::Tensor* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(elements);
    for (int64_t dim : dims) {
      onnx::TensorShapeProto::Dimension* declared = type->mutable_shape()->add_dim();
      if (dim < 0) {
        declared->set_dim_param("open");
      } else {
        declared->set_dim_value(dim);
      }
    }
    return *this;
  }

  onnx::ModelProto model_;
};

inline void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ONNX_BUILDER_H_
