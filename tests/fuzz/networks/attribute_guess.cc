// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <map>

#include "absl/strings/str_split.h"
#include "tests/fuzz/networks/node_guess.h"
#include "tests/fuzz/networks/patterns.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

// For what a value is guessed.
struct Case {
  Random& random;
  const Made& x;

  int64_t spatial() const { return std::max(0, x.rank() - 2); }
  int64_t Whole(int64_t low, int64_t high) const { return random.Integer(low, high); }
  std::vector<int64_t> List(int64_t count, int64_t low, int64_t high) const {
    std::vector<int64_t> list;
    for (int64_t i = 0; i < count; ++i) list.push_back(Whole(low, high));
    return list;
  }
  int64_t Axis() const { return Whole(-x.rank(), std::max(0, x.rank() - 1)); }
};

using Value = std::function<onnx::AttributeProto(const std::string& name, const Case& c)>;

Value WholeFrom(int64_t low, int64_t high) {
  return [=](const std::string& name, const Case& c) { return Int(name, c.Whole(low, high)); };
}
Value RealFrom(float low, float high) {
  return [=](const std::string& name, const Case& c) {
    return Float(name, c.random.Uniform(low, high));
  };
}
Value PerSpatial(int64_t times, int64_t low, int64_t high) {
  return [=](const std::string& name, const Case& c) {
    return Ints(name, c.List(times * c.spatial(), low, high));
  };
}
Value OneOf(std::vector<std::string> words) {
  return
      [=](const std::string& name, const Case& c) { return String(name, PickOf(c.random, words)); };
}
Value TypeOf(std::vector<int64_t> types) {
  return [=](const std::string& name, const Case& c) { return Int(name, PickOf(c.random, types)); };
}

onnx::AttributeProto SomeAxes(const std::string& name, const Case& c) {
  std::vector<int64_t> axes;
  for (int64_t d = 0; d < c.x.rank(); ++d) {
    if (Chance(c.random, 40)) axes.push_back(Chance(c.random, 30) ? d - c.x.rank() : d);
  }
  return Ints(name, axes);
}

onnx::AttributeProto ZeroTensor(const std::string& name, const Case& c) {
  onnx::AttributeProto attribute = Attribute(name, onnx::AttributeProto::TENSOR);
  attribute.mutable_t()->add_dims(1);
  attribute.mutable_t()->set_data_type(TensorProto::FLOAT);
  attribute.mutable_t()->add_float_data(c.random.Uniform(-1, 1));
  return attribute;
}

const std::map<std::string, Value>& Values() {
  static const auto* const values = new std::map<std::string, Value>{
      {"axis", [](const std::string& name, const Case& c) { return Int(name, c.Axis()); }},
      {"axes", SomeAxes},
      {"perm", [](const std::string& name,
                  const Case& c) { return Ints(name, RandomOrder(c.random, c.x.rank())); }},
      {"kernel_shape", PerSpatial(1, 1, 3)},
      {"strides", PerSpatial(1, 1, 2)},
      {"dilations", PerSpatial(1, 1, 2)},
      {"pads", PerSpatial(2, 0, 1)},
      {"output_padding", PerSpatial(1, 0, 1)},
      {"auto_pad", OneOf({"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"})},
      {"mode", OneOf({"constant", "reflect", "edge", "wrap", "nearest", "linear", "cubic",
                      "bilinear", "DCR", "CRD", "avg"})},
      {"padding_mode", OneOf({"zeros", "border", "reflection"})},
      {"coordinate_transformation_mode", OneOf({"half_pixel", "asymmetric", "align_corners",
                                                "pytorch_half_pixel", "output_half_pixel"})},
      {"nearest_mode", OneOf({"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"})},
      {"approximate", OneOf({"none", "tanh"})},
      {"direction", OneOf({"forward", "reverse", "bidirectional", "LEFT", "RIGHT"})},
      {"reduction", OneOf({"none", "add", "mul", "max", "min"})},
      {"to", TypeOf({1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 16})},
      {"dtype", TypeOf({1, 6, 7})},
      {"output_datatype", TypeOf({1, 10, 11})},
      {"output_dtype", TypeOf({1, 2, 3})},
      {"value", ZeroTensor},
      {"blocksize", WholeFrom(1, 3)},
      {"size", WholeFrom(1, 5)},
      {"group", WholeFrom(1, 3)},
      {"num_groups", WholeFrom(1, 4)},
      {"num_heads", WholeFrom(1, 3)},
      {"q_num_heads", WholeFrom(1, 3)},
      {"kv_num_heads", WholeFrom(1, 3)},
      {"hidden_size", WholeFrom(1, 4)},
      {"num_outputs", WholeFrom(1, 3)},
      {"p", WholeFrom(1, 3)},
      {"k", WholeFrom(-2, 3)},
      {"start", WholeFrom(-3, 3)},
      {"end", WholeFrom(-3, 3)},
      {"batch_dims", WholeFrom(0, 2)},
      {"output_height", WholeFrom(1, 3)},
      {"output_width", WholeFrom(1, 3)},
      {"sampling_ratio", WholeFrom(0, 2)},
      {"alpha", RealFrom(0.25f, 2)},
      {"beta", RealFrom(0.25f, 1)},
      {"gamma", RealFrom(0.5f, 1.5f)},
      {"bias", RealFrom(0.5f, 2)},
      {"lambd", RealFrom(0.25f, 1)},
      {"epsilon", RealFrom(0.125f, 0.5f)},
      {"scale", RealFrom(0.25f, 1)},
      {"spatial_scale", RealFrom(0.5f, 1)},
      {"softcap", RealFrom(0.5f, 2)},
      {"clip", RealFrom(0.5f, 2)},
      {"cubic_coeff_a", RealFrom(-0.75f, -0.5f)},
      {"ratio", RealFrom(0.125f, 0.5f)}};
  return *values;
}

// Without them a node means little.
bool IsNeeded(absl::string_view name) {
  return name == "kernel_shape" || name == "to" || name == "blocksize" || name == "equation" ||
         name == "num_heads" || name == "hidden_size" || name == "num_groups" || name == "size";
}

}  // namespace

Attributes GuessAttributes(NetworkMaker& maker, const reader::OpRow& row, const Made& x) {
  Attributes attributes;
  const Case c = {maker.random(), x};
  for (absl::string_view word : absl::StrSplit(row.attributes, ' ', absl::SkipEmpty())) {
    if (!Chance(maker.random(), IsNeeded(word) ? 95 : 25)) continue;
    const std::string name(word);
    const auto value = Values().find(name);
    // Most of the others are flags.
    attributes.push_back(value != Values().end() ? value->second(name, c)
                                                 : Int(name, c.Whole(0, 1)));
  }
  return attributes;
}

}  // namespace tilewire::testing
