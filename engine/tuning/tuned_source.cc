// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/tuned_source.h"

#include <cmath>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/tuner.h"
#include "engine/tuning/corrections/corrections.h"
#include "engine/tuning/corrections/equalization.h"
#include "engine/tuning/file_hash.h"
#include "engine/tuning/layers.h"
#include "engine/tuning/qdq_file.h"
#include "engine/tuning/range_histogram.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace tilewire::tuning {
namespace {

constexpr int64_t kMostTuningBytes = int64_t{16} << 20;

class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (text_.empty()) text_ = absl::StrCat("line ", line + 1, ":", column + 1, ": ", message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// "line 12: ", "" where it is not known.
std::string LineText(int line) { return line > 0 ? absl::StrCat("line ", line, ": ") : ""; }
std::string LineText(const std::vector<int>& lines, int index) {
  return LineText(index < static_cast<int>(lines.size()) ? lines[index] : 0);
}

absl::Status CheckFile(const tuned::ModelTuning& tuning, const ModelSource& source,
                       const TuningLines& lines) {
  const auto size = static_cast<int64_t>(source.bytes().size());
  const uint64_t hash = FileHash(source.bytes());
  if (tuning.size_bytes() == size && tuning.hash() == hash) return absl::OkStatus();
  return InvalidArgument(
      LineText(lines.file), "it is of another file: of '", tuning.file(), "' with ",
      tuning.size_bytes(),
      absl::StrFormat(" bytes and the hash %016x, not of this one with ", tuning.hash()), size,
      absl::StrFormat(" bytes and the hash %016x; tune the model again, or remove the tuning",
                      hash));
}

absl::StatusOr<TunedPrecision> PrecisionOf(const tuned::TunedLayer& layer) {
  switch (layer.precision()) {
    case tuned::EXACT:
      return TunedPrecision::kExact;
    case tuned::BF16:
      return TunedPrecision::kBf16;
    case tuned::INT8:
      return TunedPrecision::kInt8;
    default:
      return InvalidArgument("layer '", layer.node(),
                             "' has no precision of this version: EXACT, BF16 or INT8");
  }
}

// By layer's name, as LoadOptions::node_rows. A layer that the tuned file does not rename has to
// have a name by which lowering finds it.
absl::StatusOr<std::map<std::string, std::string>> RowsOf(const tuned::ModelTuning& tuning,
                                                          const ModelSource& source,
                                                          const TuningLines& lines) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<Layer> layers, FindLayers(source));
  std::map<std::string, bool> has_own_name;
  for (const Layer& layer : layers) has_own_name[layer.name] = layer.name == layer.step;
  std::map<std::string, std::string> rows;
  for (int i = 0; i < tuning.layer_size(); ++i) {
    const tuned::TunedLayer& layer = tuning.layer(i);
    if (layer.row().empty()) continue;
    if (layer.precision() == tuned::EXACT && !has_own_name[layer.node()]) {
      return InvalidArgument(LineText(lines.layers, i), "layer '", layer.node(), "' has the row '",
                             layer.row(), "', and its node has no name of its own to find it by");
    }
    rows[layer.node()] = layer.row();
  }
  return rows;
}

// By layer of the file.
absl::StatusOr<std::vector<TunedPrecision>> PrecisionsOf(const tuned::ModelTuning& tuning,
                                                         const std::vector<Layer>& layers,
                                                         const TuningLines& lines) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < layers.size(); ++i) places[layers[i].name] = i;
  std::vector<TunedPrecision> precisions(layers.size(), TunedPrecision::kExact);
  std::set<std::string> seen;
  for (int i = 0; i < tuning.layer_size(); ++i) {
    const tuned::TunedLayer& layer = tuning.layer(i);
    const std::string line = LineText(lines.layers, i);
    const auto place = places.find(layer.node());
    if (place == places.end()) {
      return InvalidArgument(line, "layer '", layer.node(),
                             "': the model has no layer with known weights of this name");
    }
    if (!seen.insert(layer.node()).second)
      return InvalidArgument(line, "layer '", layer.node(), "' is there twice");
    const auto precision = PrecisionOf(layer);
    if (!precision.ok()) return InvalidArgument(line, precision.status().message());
    precisions[place->second] = *precision;
  }
  return precisions;
}

absl::Status AddLargestWeights(const tuned::ModelTuning& tuning, const TuningLines& lines,
                               std::vector<Layer>* layers) {
  std::map<std::string, Layer*> named;
  for (Layer& layer : *layers) named[layer.name] = &layer;
  for (int i = 0; i < tuning.layer_size(); ++i) {
    const tuned::TunedLayer& layer = tuning.layer(i);
    const int largest = layer.largest_weight();
    if (largest < 0 || largest > kLargestWeight) {
      return InvalidArgument(LineText(lines.layers, i), "layer '", layer.node(),
                             "': its largest_weight is ", largest, "; allowed are 1 to ",
                             kLargestWeight);
    }
    if (largest != 0) named.at(layer.node())->largest_weight = largest;
  }
  return absl::OkStatus();
}

absl::Status CheckTensor(const tuned::TunedTensor& tensor, const ModelSource& source) {
  const std::string& name = tensor.name();
  const bool is_known = source.IsInput(name) || source.ProducerOf(name) >= 0;
  if (!is_known || source.ReadersOf(name).empty())
    return InvalidArgument("tensor '", name, "': no node of the model reads one of this name");
  if (!std::isfinite(tensor.low()) || !std::isfinite(tensor.high())) {
    return InvalidArgument("tensor '", name, "': the range from ", tensor.low(), " to ",
                           tensor.high(), " is not finite");
  }
  if (tensor.low() <= 0 && tensor.high() >= 0) return absl::OkStatus();
  return InvalidArgument("tensor '", name, "': the range from ", tensor.low(), " to ",
                         tensor.high(), " does not hold 0");
}

absl::StatusOr<std::map<std::string, network::QuantizationParams>> RangesOf(
    const tuned::ModelTuning& tuning, const ModelSource& source, const TuningLines& lines) {
  std::map<std::string, network::QuantizationParams> params;
  for (int i = 0; i < tuning.tensor_size(); ++i) {
    const tuned::TunedTensor& tensor = tuning.tensor(i);
    const std::string line = LineText(lines.tensors, i);
    if (const absl::Status status = CheckTensor(tensor, source); !status.ok())
      return InvalidArgument(line, status.message());
    if (!params.emplace(tensor.name(), ByteParams(Range{tensor.low(), tensor.high()})).second)
      return InvalidArgument(line, "tensor '", tensor.name(), "' is there twice");
  }
  return params;
}

bool AreFinite(const google::protobuf::RepeatedField<float>& numbers) {
  return absl::c_all_of(numbers, [](float number) { return std::isfinite(number); });
}

absl::Status AddShifts(const tuned::ModelTuning& tuning, const std::vector<Layer>& layers,
                       const ModelSource& source, const TuningLines& lines,
                       Corrections* corrections) {
  std::map<std::string, int> places;
  for (size_t i = 0; i < layers.size(); ++i) places[layers[i].name] = static_cast<int>(i);
  for (int i = 0; i < tuning.layer_size(); ++i) {
    const tuned::TunedLayer& layer = tuning.layer(i);
    const auto& shift = layer.bias_shift();
    if (shift.empty()) continue;
    const int index = places.at(layer.node());
    const Layer& shifted = layers[index];
    if (layer.precision() != tuned::INT8) continue;  // it is of integers
    if (!shifted.can_shift) {
      return InvalidArgument(LineText(lines.layers, i), "layer '", layer.node(),
                             "' has a bias_shift, and no room for a bias");
    }
    const int64_t outputs = source.Initializer(shifted.weights)->dims[shifted.axis];
    if (shift.size() != outputs || !AreFinite(shift)) {
      return InvalidArgument(LineText(lines.layers, i), "layer '", layer.node(),
                             "': its bias_shift must be ", outputs, " finite numbers");
    }
    corrections->shifts[index].assign(shift.begin(), shift.end());
  }
  return absl::OkStatus();
}

absl::Status AddFactors(const tuned::ModelTuning& tuning,
                        const std::vector<TunedPrecision>& precisions,
                        const std::vector<Layer>& layers, const ModelSource& source,
                        const TuningLines& lines, Corrections* corrections) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<Equalizable> known, FindEqualizable(source, layers));
  for (int i = 0; i < tuning.tensor_size(); ++i) {
    const tuned::TunedTensor& tensor = tuning.tensor(i);
    const auto& factors = tensor.factor();
    if (factors.empty()) continue;
    const auto place =
        absl::c_find_if(known, [&](const Equalizable& one) { return one.name == tensor.name(); });
    if (place == known.end() || precisions[place->giver] != TunedPrecision::kInt8 ||
        precisions[place->reader] != TunedPrecision::kInt8) {
      return InvalidArgument(LineText(lines.tensors, i), "tensor '", tensor.name(),
                             "' has factors, which are of tensors between two convolutions of "
                             "int8");
    }
    const int64_t channels = source.Initializer(layers[place->giver].weights)->dims[0];
    const auto is_positive = [](float factor) { return factor > 0; };
    if (factors.size() != channels || !AreFinite(factors) ||
        !absl::c_all_of(factors, is_positive)) {
      return InvalidArgument(LineText(lines.tensors, i), "tensor '", tensor.name(),
                             "': its factors must be ", channels, " positive numbers");
    }
    corrections->tensors.push_back(
        {tensor.name(), place->giver, place->reader, {factors.begin(), factors.end()}});
  }
  return absl::OkStatus();
}

absl::StatusOr<tuned::ModelTuning> ReadTuning(const std::string& path, TuningLines* lines) {
  ABSL_ASSIGN_OR_RETURN(const auto file, reader::OpenFile(path));
  if (file->size() > kMostTuningBytes)
    return InvalidArgument("it has more than ", kMostTuningBytes, " bytes");
  std::string text(file->size(), '\0');
  ABSL_RETURN_IF_ERROR(file->Read(0, file->size(), text.data()));
  return ParseTuning(text, lines);
}

TuningFacts FactsOf(const tuned::ModelTuning& tuning, size_t layers) {
  TuningFacts facts{.budget = tuning.budget(), .held_out_error = tuning.held_out_error()};
  facts.cpu_features.assign(tuning.cpu_features().begin(), tuning.cpu_features().end());
  for (const tuned::TunedLayer& layer : tuning.layer()) {
    if (layer.precision() == tuned::INT8) ++facts.int8_layers;
    if (layer.precision() == tuned::BF16) ++facts.bf16_layers;
    if (!layer.row().empty()) ++facts.rows;
  }
  facts.exact_layers = static_cast<int64_t>(layers) - facts.int8_layers - facts.bf16_layers;
  return facts;
}

// The bytes of the tuned file; nullopt: they are those of the file itself, which is read and
// forgotten again here.
absl::StatusOr<std::optional<std::string>> TunedBytes(const std::string& path,
                                                      const tuned::ModelTuning& tuning,
                                                      const TuningLines& lines,
                                                      std::map<std::string, Precision>* precisions,
                                                      std::map<std::string, std::string>* rows) {
  ABSL_ASSIGN_OR_RETURN(const ModelSource source, ModelSource::Read(path));
  ABSL_ASSIGN_OR_RETURN(std::string bytes, ApplyTuning(tuning, source, precisions, lines));
  ABSL_ASSIGN_OR_RETURN(*rows, RowsOf(tuning, source, lines));
  if (bytes == source.bytes()) return std::nullopt;
  return bytes;
}

absl::StatusOr<TunedSource> Open(const std::string& path, const tuned::ModelTuning& tuning,
                                 const TuningLines& lines) {
  TunedSource opened;
  ABSL_ASSIGN_OR_RETURN(std::optional<std::string> bytes,
                        TunedBytes(path, tuning, lines, &opened.precisions, &opened.rows));
  opened.facts = FactsOf(tuning, opened.precisions.size());
  if (!bytes) {
    ABSL_ASSIGN_OR_RETURN(opened.model, reader::OnnxModel::Open(path));
    return opened;
  }
  opened.held_bytes = static_cast<int64_t>(bytes->size());
  ABSL_ASSIGN_OR_RETURN(opened.model, reader::OnnxModel::OpenBytes(*std::move(bytes)));
  return opened;
}

TuningLines LinesOf(const tuned::ModelTuning& tuning,
                    const google::protobuf::TextFormat::ParseInfoTree& tree) {
  const auto* fields = tuned::ModelTuning::descriptor();
  const auto line = [&](int number, int index) {
    return tree.GetLocation(fields->FindFieldByNumber(number), index).line + 1;
  };
  // The hash, which tells the file, is the line to look at.
  TuningLines lines{.file = line(tuned::ModelTuning::kHashFieldNumber, -1)};
  for (int i = 0; i < tuning.layer_size(); ++i)
    lines.layers.push_back(line(tuned::ModelTuning::kLayerFieldNumber, i));
  for (int i = 0; i < tuning.tensor_size(); ++i)
    lines.tensors.push_back(line(tuned::ModelTuning::kTensorFieldNumber, i));
  return lines;
}

}  // namespace

absl::StatusOr<tuned::ModelTuning> ParseTuning(const std::string& text, TuningLines* lines) {
  FirstError error;
  google::protobuf::TextFormat::Parser parser;
  google::protobuf::TextFormat::ParseInfoTree tree;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  tuned::ModelTuning tuning;
  if (!parser.ParseFromString(text, &tuning)) return InvalidArgument(error.text());
  if (lines != nullptr) *lines = LinesOf(tuning, tree);
  return tuning;
}

std::string TextOf(const tuned::ModelTuning& tuning) {
  std::string text;
  google::protobuf::TextFormat::Printer printer;
  printer.SetUseShortRepeatedPrimitives(true);
  printer.PrintToString(tuning, &text);
  return text;
}

absl::StatusOr<std::string> ApplyTuning(const tuned::ModelTuning& tuning, const ModelSource& source,
                                        std::map<std::string, Precision>* precisions,
                                        const TuningLines& lines) {
  ABSL_RETURN_IF_ERROR(CheckFile(tuning, source, lines));
  ABSL_ASSIGN_OR_RETURN(std::vector<Layer> layers, FindLayers(source));
  ABSL_ASSIGN_OR_RETURN(const std::vector<TunedPrecision> tuned,
                        PrecisionsOf(tuning, layers, lines));
  ABSL_RETURN_IF_ERROR(AddLargestWeights(tuning, lines, &layers));
  ABSL_ASSIGN_OR_RETURN(const auto ranges, RangesOf(tuning, source, lines));
  std::map<std::string, int> places;  // in the tuning
  for (int i = 0; i < tuning.layer_size(); ++i) places[tuning.layer(i).node()] = i;
  for (size_t i = 0; i < layers.size(); ++i) {
    if (tuned[i] != TunedPrecision::kInt8 || ranges.contains(layers[i].input)) continue;
    return InvalidArgument(LineText(lines.layers, places[layers[i].name]), "layer '",
                           layers[i].name, "' is int8, and its input '", layers[i].input,
                           "' has no range");
  }
  Corrections corrections;
  ABSL_RETURN_IF_ERROR(AddShifts(tuning, layers, source, lines, &corrections));
  ABSL_RETURN_IF_ERROR(AddFactors(tuning, tuned, layers, source, lines, &corrections));
  *precisions = NodePrecisions(layers, tuned);
  return QdqWriter(source, layers, /*writes_several=*/false).Write(tuned, ranges, corrections);
}

absl::StatusOr<std::optional<TunedSource>> OpenTuned(const std::string& path) {
  namespace fs = std::filesystem;
  const std::string beside = TuningFileOf(path);
  std::error_code error;
  if (!fs::exists(beside, error)) return std::nullopt;
  const auto named = [](const absl::Status& status) {
    return absl::Status(status.code(), absl::StrCat(kTuningFile, ": ", status.message()));
  };
  TuningLines lines;
  const auto tuning = ReadTuning(beside, &lines);
  if (!tuning.ok()) return named(tuning.status());
  const fs::path of = fs::path(tuning->file()).filename();
  const bool is_of_sibling = of != fs::path(path).filename() && !of.empty() &&
                             fs::exists(fs::path(beside).parent_path() / of, error);
  if (is_of_sibling) return std::nullopt;
  auto opened = Open(path, *tuning, lines);
  if (!opened.ok()) return named(opened.status());
  return std::optional(*std::move(opened));
}

}  // namespace tilewire::tuning

namespace tilewire {

absl::StatusOr<std::optional<TuningFacts>> CheckTuning(const std::string& path) {
  ABSL_ASSIGN_OR_RETURN(auto tuned, tuning::OpenTuned(path));
  if (!tuned) return std::nullopt;
  return std::move(tuned->facts);
}

}  // namespace tilewire
