// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/conformance_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace tilewire {
namespace {

using onnx::TensorProto;
using Outcome = ConformanceResult::Outcome;

// The backend's own bounds, and what rounding of sums of magnitude 1 takes.
constexpr double kRelative = 1e-3, kAbsolute = 2e-6;

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

template <typename T>
void Widen(const std::string& raw, std::vector<double>* values) {
  for (size_t i = 0; i + sizeof(T) <= raw.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, raw.data() + i, sizeof(T));
    values->push_back(static_cast<double>(value));
  }
}

// Widen of a type's numbers; nullptr for types that no number of the engine holds.
void (*WidenOf(int type))(const std::string& raw, std::vector<double>* values) {
  static constexpr struct {
    int type;
    void (*widen)(const std::string& raw, std::vector<double>* values);
  } kTypes[] = {{TensorProto::FLOAT, Widen<float>},     {TensorProto::DOUBLE, Widen<double>},
                {TensorProto::INT64, Widen<int64_t>},   {TensorProto::INT32, Widen<int32_t>},
                {TensorProto::INT16, Widen<int16_t>},   {TensorProto::UINT16, Widen<uint16_t>},
                {TensorProto::UINT32, Widen<uint32_t>}, {TensorProto::UINT64, Widen<uint64_t>},
                {TensorProto::INT8, Widen<int8_t>},     {TensorProto::UINT8, Widen<uint8_t>},
                {TensorProto::BOOL, Widen<uint8_t>}};
  for (const auto& one : kTypes) {
    if (one.type == type) return one.widen;
  }
  return nullptr;
}

// nullopt for types that no number of the engine holds.
std::optional<std::vector<double>> Values(const TensorProto& tensor) {
  std::vector<double> values;
  for (float value : tensor.float_data()) values.push_back(value);
  for (int32_t value : tensor.int32_data()) values.push_back(value);
  for (int64_t value : tensor.int64_data()) values.push_back(static_cast<double>(value));
  for (double value : tensor.double_data()) values.push_back(value);
  for (uint64_t value : tensor.uint64_data()) values.push_back(static_cast<double>(value));
  const auto widen = WidenOf(tensor.data_type());
  if (widen == nullptr) return std::nullopt;
  widen(tensor.raw_data(), &values);
  return values;
}

bool FitFloats(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) {
    return !std::isfinite(value) || std::isfinite(static_cast<float>(value));
  });
}

bool Close(double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::abs(got - want) <= kAbsolute + kRelative * std::abs(want);
}

class Case {
 public:
  explicit Case(const std::string& directory) {
    parsed_ = model_.ParseFromString(ReadBytes(directory + "/model.onnx"));
    for (int i = 0; i < model_.graph().input_size(); ++i) {
      TensorProto tensor;
      const std::string bytes =
          ReadBytes(absl::StrCat(directory, "/test_data_set_0/input_", i, ".pb"));
      if (bytes.empty()) break;
      // Some cases hold halves as integers.
      parsed_ = parsed_ && tensor.ParseFromString(bytes) &&
                tensor.data_type() == model_.graph().input(i).type().tensor_type().elem_type();
      inputs_.push_back(std::move(tensor));
    }
    for (int i = 0; i < model_.graph().output_size(); ++i) {
      TensorProto tensor;
      const std::string bytes =
          ReadBytes(absl::StrCat(directory, "/test_data_set_0/output_", i, ".pb"));
      parsed_ = parsed_ && tensor.ParseFromString(bytes);
      wanted_.push_back(std::move(tensor));
    }
  }

  bool parsed() const { return parsed_ && !wanted_.empty(); }

  ConformanceResult Run(Engine& engine, Given given, const std::string& scratch) const {
    onnx::ModelProto model = model_;
    std::vector<std::vector<float>> images;
    std::vector<Dims> dims;
    SetInputs(given, model.mutable_graph(), &images, &dims);
    CastOutputs(model.mutable_graph());
    std::ofstream(scratch, std::ios::binary) << model.SerializeAsString();
    const auto loaded = engine.LoadModel(scratch);
    if (!loaded.ok()) return {Outcome::kRefused, given, std::string(loaded.status().message())};
    std::vector<InputTensor> tensors;
    for (size_t i = 0; i < images.size(); ++i) {
      const absl::string_view bytes(reinterpret_cast<const char*>(images[i].data()),
                                    images[i].size() * sizeof(float));
      tensors.push_back({dims[i], Layout::kNchw, {bytes}});
    }
    const auto outputs = (*loaded)->Run(tensors, {}, {});
    if (!outputs.ok()) return {Outcome::kRefused, given, std::string(outputs.status().message())};
    return Compare(*outputs, given);
  }

 private:
  static bool RunsThroughCast(int type) {
    return type == TensorProto::BOOL || type == TensorProto::UINT8 || type == TensorProto::INT8 ||
           type == TensorProto::DOUBLE;
  }
  // Types that leave as f32.
  static bool IsCastAtTheEnd(int type) {
    return RunsThroughCast(type) || type == TensorProto::INT16 || type == TensorProto::INT32 ||
           type == TensorProto::INT64 || type == TensorProto::UINT16 ||
           type == TensorProto::UINT32 || type == TensorProto::UINT64;
  }

  // Declares what is given at run time, and makes initializers of the rest. A model without any
  // input gets one that nothing reads.
  void SetInputs(Given given, onnx::GraphProto* graph, std::vector<std::vector<float>>* images,
                 std::vector<Dims>* dims) const {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declared;
    declared.Swap(graph->mutable_input());
    google::protobuf::RepeatedPtrField<onnx::NodeProto> nodes;
    nodes.Swap(graph->mutable_node());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorProto& tensor = inputs_[i];
      const bool cast = RunsThroughCast(tensor.data_type());
      const std::optional<std::vector<double>> values = Values(tensor);
      const bool given_now = (tensor.data_type() == TensorProto::FLOAT || cast) &&
                             tensor.dims_size() > 0 && values && !values->empty() &&
                             FitFloats(*values) &&
                             (given == Given::kAll || (given == Given::kFirst && images->empty()));
      if (!given_now) {
        TensorProto* initializer = graph->add_initializer();
        *initializer = tensor;
        initializer->set_name(declared[static_cast<int>(i)].name());
        continue;
      }
      Declare(declared[static_cast<int>(i)].name(), tensor, cast, graph);
      images->emplace_back(values->begin(), values->end());
      dims->emplace_back(tensor.dims().begin(), tensor.dims().end());
    }
    if (images->empty()) {
      TensorProto one;
      one.add_dims(1);
      Declare("nothing reads this", one, /*cast=*/false, graph);
      images->push_back({0});
      dims->push_back({1});
    }
    graph->mutable_node()->MergeFrom(nodes);
  }

  static void Declare(const std::string& name, const TensorProto& tensor, bool cast,
                      onnx::GraphProto* graph) {
    onnx::ValueInfoProto* info = graph->add_input();
    info->set_name(cast ? name + " as float" : name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(TensorProto::FLOAT);
    for (int64_t dim : tensor.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
    if (cast) AddCast(info->name(), name, tensor.data_type(), graph);
  }

  static void AddCast(const std::string& from, const std::string& to, int type,
                      onnx::GraphProto* graph) {
    onnx::NodeProto* node = graph->add_node();
    node->set_op_type("Cast");
    node->add_input(from);
    node->add_output(to);
    onnx::AttributeProto* attribute = node->add_attribute();
    attribute->set_name("to");
    attribute->set_type(onnx::AttributeProto::INT);
    attribute->set_i(type);
  }

  static void CastOutputs(onnx::GraphProto* graph) {
    for (onnx::ValueInfoProto& output : *graph->mutable_output()) {
      const int type = output.type().tensor_type().elem_type();
      if (!IsCastAtTheEnd(type)) continue;
      const std::string name = output.name();
      output.set_name(name + " as float");
      output.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::FLOAT);
      AddCast(name, output.name(), TensorProto::FLOAT, graph);
    }
  }

  ConformanceResult Compare(const std::vector<OutputTensor>& outputs, Given given) const {
    for (size_t o = 0; o < wanted_.size(); ++o) {
      const std::optional<std::vector<double>> want = Values(wanted_[o]);
      if (!want) return {Outcome::kRefused, given, "an output of a type that is not compared"};
      std::vector<float> got(outputs[o].bytes.size() / sizeof(float));
      std::memcpy(got.data(), outputs[o].bytes.data(), got.size() * sizeof(float));
      Dims dims(wanted_[o].dims().begin(), wanted_[o].dims().end());
      if (dims.empty()) dims = {1};
      if (dims != outputs[o].dims) {
        return {Outcome::kWrong, given,
                absl::StrCat("output ", o, " has dims ", DimsToString(outputs[o].dims),
                             ", expected ", DimsToString(dims))};
      }
      for (size_t i = 0; i < got.size(); ++i) {
        if (Close(got[i], (*want)[i])) continue;
        return {
            Outcome::kWrong, given,
            absl::StrCat("output ", o, ", element ", i, ": ", got[i], ", expected ", (*want)[i])};
      }
    }
    return {Outcome::kPassed, given, ""};
  }

  bool parsed_ = false;
  onnx::ModelProto model_;
  std::vector<TensorProto> inputs_, wanted_;
};

}  // namespace

ConformanceResult RunConformanceCase(Engine& engine, const std::string& directory,
                                     const std::string& scratch) {
  const Case one(directory);
  if (!one.parsed())
    return {Outcome::kRefused, Given::kAll, "inputs or outputs that are not tensors"};
  ConformanceResult refused;
  for (Given given : {Given::kAll, Given::kFirst, Given::kNone}) {
    ConformanceResult result = one.Run(engine, given, scratch);
    if (result.outcome != Outcome::kRefused) return result;
    if (refused.reason.empty()) refused = result;
  }
  return refused;
}

}  // namespace tilewire
