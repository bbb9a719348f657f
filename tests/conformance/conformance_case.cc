// SPDX-License-Identifier: Apache-2.0
#include "tests/conformance/conformance_case.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "absl/strings/str_cat.h"

namespace tilewire::testing {
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

// The bytes of typed contents, which the field holds in a wider type.
template <typename T, typename Field>
std::string Packed(const Field& field) {
  std::string bytes;
  for (const auto element : field) {
    const T packed = static_cast<T>(element);
    bytes.append(reinterpret_cast<const char*>(&packed), sizeof(packed));
  }
  return bytes;
}

// The elements as a request brings them; nullopt for strings and the like.
std::optional<std::string> ElementBytes(const TensorProto& tensor) {
  const bool is_raw = tensor.has_raw_data();
  switch (tensor.data_type()) {
    case TensorProto::FLOAT:
      return is_raw ? tensor.raw_data() : Packed<float>(tensor.float_data());
    case TensorProto::DOUBLE:
      return is_raw ? tensor.raw_data() : Packed<double>(tensor.double_data());
    case TensorProto::INT64:
      return is_raw ? tensor.raw_data() : Packed<int64_t>(tensor.int64_data());
    case TensorProto::UINT64:
      return is_raw ? tensor.raw_data() : Packed<uint64_t>(tensor.uint64_data());
    case TensorProto::UINT32:
      return is_raw ? tensor.raw_data() : Packed<uint32_t>(tensor.uint64_data());
    case TensorProto::INT32:
      return is_raw ? tensor.raw_data() : Packed<int32_t>(tensor.int32_data());
    case TensorProto::INT16:
    case TensorProto::UINT16:
    case TensorProto::FLOAT16:
    case TensorProto::BFLOAT16:
      return is_raw ? tensor.raw_data() : Packed<uint16_t>(tensor.int32_data());
    case TensorProto::INT8:
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return is_raw ? tensor.raw_data() : Packed<uint8_t>(tensor.int32_data());
    default:
      return std::nullopt;
  }
}

template <typename T>
std::vector<double> Widened(const std::string& bytes) {
  std::vector<double> numbers;
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T element;
    std::memcpy(&element, bytes.data() + i, sizeof(T));
    numbers.push_back(static_cast<double>(element));
  }
  return numbers;
}

// Real numbers; nullopt for other types, whose bytes are compared.
std::optional<std::vector<double>> RealNumbers(int type, const std::string& bytes) {
  if (type == TensorProto::FLOAT) return Widened<float>(bytes);
  if (type == TensorProto::DOUBLE) return Widened<double>(bytes);
  if (type == TensorProto::FLOAT16) return Widened<_Float16>(bytes);
  if (type != TensorProto::BFLOAT16) return std::nullopt;
  std::string floats;
  for (size_t i = 0; i + 2 <= bytes.size(); i += 2)
    absl::StrAppend(&floats, std::string(2, '\0'), bytes.substr(i, 2));
  return Widened<float>(floats);
}

bool Close(double got, double want) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return want == got;
  return std::abs(got - want) <= kAbsolute + kRelative * std::abs(want);
}

class Case {
 public:
  explicit Case(const CaseFiles& files) {
    parsed_ = model_.ParseFromString(files.model);
    for (size_t i = 0; i < files.inputs.size(); ++i) {
      TensorProto tensor;
      // Some cases hold halves as integers.
      parsed_ = parsed_ && tensor.ParseFromString(files.inputs[i]) &&
                tensor.data_type() ==
                    model_.graph().input(static_cast<int>(i)).type().tensor_type().elem_type();
      inputs_.push_back(std::move(tensor));
    }
    for (const std::string& output : files.outputs) {
      TensorProto tensor;
      parsed_ = parsed_ && tensor.ParseFromString(output);
      wanted_.push_back(std::move(tensor));
    }
  }

  bool parsed() const { return parsed_ && !wanted_.empty(); }

  ConformanceResult Run(Engine& engine, Given given, const std::string& scratch) const {
    onnx::ModelProto model = model_;
    std::vector<std::string> contents;
    std::vector<Dims> dims;
    SetInputs(given, model.mutable_graph(), &contents, &dims);
    const auto outputs = Answer(engine, model, contents, dims, scratch);
    if (!outputs.ok()) return {Outcome::kRefused, given, std::string(outputs.status().message())};
    return Compare(*outputs, given);
  }

  // Without elements of input `emptied`, because its dimension `d` is 0.
  void RunEmptied(Engine& engine, size_t emptied, size_t d, const std::string& scratch,
                  EmptiedResult* result) const {
    onnx::ModelProto model = model_;
    std::vector<std::string> contents;
    std::vector<Dims> dims;
    SetInputs(Given::kAll, model.mutable_graph(), &contents, &dims);
    if (emptied >= dims.size() || d >= dims[emptied].size()) return;
    dims[emptied][d] = 0;
    contents[emptied].clear();
    model.mutable_graph()
        ->mutable_input(static_cast<int>(emptied))
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(static_cast<int>(d))
        ->clear_dim_value();
    const auto outputs = Answer(engine, model, contents, dims, scratch);
    if (!outputs.ok()) return;
    ++result->answered;
    for (const OutputTensor& output : *outputs) {
      const int64_t count = ElementCount(output.dims).value_or(-1);
      const int64_t bytes = static_cast<int64_t>(output.bytes.size());
      if (count < 0 || (count == 0) != (bytes == 0) || (count > 0 && bytes % count != 0))
        result->wrong = absl::StrCat(bytes, " bytes of dims ", DimsToString(output.dims));
    }
  }

  // Whether the engine answers, holding little memory.
  bool IsAnswered(Engine& engine, const std::string& scratch) const {
    onnx::ModelProto model = model_;
    std::vector<std::string> contents;
    std::vector<Dims> dims;
    SetInputs(Given::kAll, model.mutable_graph(), &contents, &dims);
    RunOptions limits;
    limits.reserve = [](int64_t bytes) {
      constexpr int64_t kMost = 64 << 20;
      return bytes <= kMost ? absl::OkStatus() : absl::ResourceExhaustedError("too many bytes");
    };
    return Answer(engine, model, contents, dims, scratch, limits).ok();
  }

  onnx::ModelProto* mutable_model() { return &model_; }
  std::vector<TensorProto>* mutable_inputs() { return &inputs_; }
  size_t input_count() const { return inputs_.size(); }

 private:
  static absl::StatusOr<std::vector<OutputTensor>> Answer(
      Engine& engine, const onnx::ModelProto& model, const std::vector<std::string>& contents,
      const std::vector<Dims>& dims, const std::string& scratch, const RunOptions& options = {}) {
    std::ofstream(scratch, std::ios::binary) << model.SerializeAsString();
    const auto loaded = engine.LoadModel(scratch);
    if (!loaded.ok()) return loaded.status();
    std::vector<InputTensor> tensors;
    for (size_t i = 0; i < contents.size(); ++i)
      tensors.push_back({dims[i], Layout::kNchw, {contents[i]}});
    return (*loaded)->Run(tensors, {}, options);
  }

  // The types of operands that give shapes, axes and the like, more often than not.
  static bool MayBeShape(int type) {
    return type == TensorProto::INT64 || type == TensorProto::INT32 || type == TensorProto::BOOL;
  }

  static bool IsGiven(Given given, const TensorProto& tensor, size_t given_so_far) {
    switch (given) {
      case Given::kAll:
        return true;
      case Given::kNumbers:
        return !MayBeShape(tensor.data_type());
      case Given::kFirst:
        return given_so_far == 0;
      default:
        return false;
    }
  }

  // Declares what is given at run time, and makes initializers of the rest. A model without any
  // input gets one that nothing reads.
  void SetInputs(Given given, onnx::GraphProto* graph, std::vector<std::string>* contents,
                 std::vector<Dims>* dims) const {
    google::protobuf::RepeatedPtrField<onnx::ValueInfoProto> declared;
    declared.Swap(graph->mutable_input());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const TensorProto& tensor = inputs_[i];
      const std::optional<std::string> bytes = ElementBytes(tensor);
      if (bytes && IsGiven(given, tensor, contents->size())) {
        Declare(declared[static_cast<int>(i)].name(), tensor, graph);
        contents->push_back(*bytes);
        dims->emplace_back(tensor.dims().begin(), tensor.dims().end());
        continue;
      }
      TensorProto* initializer = graph->add_initializer();
      *initializer = tensor;
      initializer->set_name(declared[static_cast<int>(i)].name());
    }
    if (!contents->empty()) return;
    TensorProto one;
    one.add_dims(1);
    one.set_data_type(TensorProto::FLOAT);
    Declare("nothing reads this", one, graph);
    contents->emplace_back(sizeof(float), '\0');
    dims->push_back({1});
  }

  static void Declare(const std::string& name, const TensorProto& tensor, onnx::GraphProto* graph) {
    onnx::ValueInfoProto* info = graph->add_input();
    info->set_name(name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(tensor.data_type());
    type->mutable_shape();
    for (int64_t dim : tensor.dims()) type->mutable_shape()->add_dim()->set_dim_value(dim);
  }

  ConformanceResult Compare(const std::vector<OutputTensor>& outputs, Given given) const {
    for (size_t o = 0; o < wanted_.size(); ++o) {
      const std::string which = absl::StrCat("output ", o);
      const std::optional<std::string> want = ElementBytes(wanted_[o]);
      if (!want) return {Outcome::kRefused, given, "an output of a type that is not compared"};
      const Dims dims(wanted_[o].dims().begin(), wanted_[o].dims().end());
      if (dims != outputs[o].dims) {
        return {Outcome::kWrong, given,
                absl::StrCat(which, " has dims ", DimsToString(outputs[o].dims), ", expected ",
                             DimsToString(dims))};
      }
      const std::string got(reinterpret_cast<const char*>(outputs[o].bytes.data()),
                            outputs[o].bytes.size());
      const std::string difference = Difference(wanted_[o].data_type(), got, *want);
      if (!difference.empty()) return {Outcome::kWrong, given, absl::StrCat(which, difference)};
    }
    return {Outcome::kPassed, given, ""};
  }

  // Nothing where all elements agree: real numbers within the bounds, all others exactly.
  static std::string Difference(int type, const std::string& got, const std::string& want) {
    if (got.size() != want.size())
      return absl::StrCat(": ", got.size(), " bytes, expected ", want.size());
    const auto got_numbers = RealNumbers(type, got), want_numbers = RealNumbers(type, want);
    if (!got_numbers) return got == want ? "" : " has other bytes";
    for (size_t i = 0; i < got_numbers->size(); ++i) {
      const double number = (*got_numbers)[i], wanted = (*want_numbers)[i];
      if (!Close(number, wanted))
        return absl::StrCat(", element ", i, ": ", number, ", expected ", wanted);
    }
    return "";
  }

  bool parsed_ = false;
  onnx::ModelProto model_;
  std::vector<TensorProto> inputs_, wanted_;
};

}  // namespace

CaseFiles ReadCase(const std::string& directory) {
  CaseFiles files;
  files.model = ReadBytes(directory + "/model.onnx");
  onnx::ModelProto model;
  if (!model.ParseFromString(files.model)) return files;
  const auto tensor = [&directory](absl::string_view role, int i) {
    return ReadBytes(absl::StrCat(directory, "/test_data_set_0/", role, "_", i, ".pb"));
  };
  for (int i = 0; i < model.graph().input_size(); ++i) {
    std::string bytes = tensor("input", i);
    if (bytes.empty()) break;
    files.inputs.push_back(std::move(bytes));
  }
  for (int i = 0; i < model.graph().output_size(); ++i)
    files.outputs.push_back(tensor("output", i));
  return files;
}

EmptiedResult RunEmptiedCase(Engine& engine, const CaseFiles& files, const std::string& scratch) {
  EmptiedResult result;
  const Case one(files);
  for (size_t i = 0; one.parsed() && i < one.input_count(); ++i) {
    for (size_t d = 0; d < 2; ++d) one.RunEmptied(engine, i, d, scratch, &result);
  }
  return result;
}

namespace {

constexpr int64_t kSpoiltIntegers[] = {
    -1, 0, 3, int64_t{1} << 31, int64_t{1} << 62, std::numeric_limits<int64_t>::min()};

int RunWithoutInputs(Engine& engine, const Case& whole, const std::string& scratch) {
  int answered = 0;
  for (int i = 0;; ++i) {
    Case spoilt = whole;
    onnx::NodeProto* node = spoilt.mutable_model()->mutable_graph()->mutable_node(0);
    if (i >= node->input_size()) return answered;
    node->mutable_input(i)->clear();
    answered += spoilt.IsAnswered(engine, scratch);
  }
}

int RunWithAttributes(Engine& engine, const Case& whole, const std::string& scratch) {
  int answered = 0;
  for (int i = 0;; ++i) {
    for (int64_t value : kSpoiltIntegers) {
      Case spoilt = whole;
      onnx::NodeProto* node = spoilt.mutable_model()->mutable_graph()->mutable_node(0);
      if (i >= node->attribute_size()) return answered;
      onnx::AttributeProto* attribute = node->mutable_attribute(i);
      if (attribute->has_i()) attribute->set_i(value);
      if (attribute->ints_size() > 0) attribute->set_ints(0, value);
      answered += spoilt.IsAnswered(engine, scratch);
    }
  }
}

// Integers of inputs come in raw bytes.
int RunWithElements(Engine& engine, const Case& whole, const std::string& scratch) {
  int answered = 0;
  for (size_t i = 0; i < whole.input_count(); ++i) {
    for (int64_t value : kSpoiltIntegers) {
      Case spoilt = whole;
      TensorProto& tensor = (*spoilt.mutable_inputs())[i];
      if (tensor.data_type() != TensorProto::INT64 || tensor.raw_data().empty()) break;
      std::memcpy(tensor.mutable_raw_data()->data(), &value, sizeof(value));
      answered += spoilt.IsAnswered(engine, scratch);
    }
  }
  return answered;
}

}  // namespace

int RunSpoiltCase(Engine& engine, const CaseFiles& files, const std::string& scratch) {
  Case whole(files);
  if (!whole.parsed() || whole.mutable_model()->graph().node().empty()) return 0;
  return RunWithoutInputs(engine, whole, scratch) + RunWithAttributes(engine, whole, scratch) +
         RunWithElements(engine, whole, scratch);
}

ConformanceResult RunConformanceCase(Engine& engine, const CaseFiles& files,
                                     const std::string& scratch) {
  const Case one(files);
  if (!one.parsed())
    return {Outcome::kRefused, Given::kAll, "inputs or outputs that are not tensors"};
  ConformanceResult refused;
  for (Given given : {Given::kAll, Given::kNumbers, Given::kFirst, Given::kNone}) {
    ConformanceResult result = one.Run(engine, given, scratch);
    if (result.outcome != Outcome::kRefused) return result;
    if (refused.reason.empty()) refused = result;
  }
  return refused;
}

}  // namespace tilewire::testing
