// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/load/random_input.h"
#include "client/npy.h"
#include "client/tool/command.h"
#include "client/tool/load_flags.h"

namespace tilewire::client {
namespace {

using Inputs = std::vector<std::vector<Tensor>>;  // per request

absl::StatusOr<WantedRequests> ParseWanted(absl::string_view text) {
  WantedRequests wanted;
  const size_t colon = text.rfind(':');
  absl::string_view name = text.substr(0, colon);
  const bool share_is_right = colon == absl::string_view::npos ||
                              (absl::SimpleAtod(text.substr(colon + 1), &wanted.share) &&
                               wanted.share > 0 && wanted.share < 1e9);
  const size_t at = name.rfind('@');
  const bool batch_is_right =
      at == absl::string_view::npos ||
      (absl::SimpleAtoi(name.substr(at + 1), &wanted.batch) && wanted.batch > 0);
  wanted.model = std::string(name.substr(0, at));
  if (share_is_right && batch_is_right && !wanted.model.empty()) return wanted;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not NAME[@BATCH][:SHARE], such as digits@8:3"));
}

bool HasLayout(const TensorMetadata& input) {
  return input.shape.size() >= 3 && input.shape.size() <= 5;
}

absl::StatusOr<Inputs> RandomInputs(const LoadFlags& flags, const WantedRequests& wanted,
                                    const ModelMetadata& metadata) {
  Inputs all;
  for (int64_t number = 0; number < flags.distinct; ++number) {
    std::vector<Tensor> inputs;
    for (const TensorMetadata& input : metadata.inputs) {
      auto tensor = RandomInput(input, wanted.batch, flags.free_size,
                                HasLayout(input) ? ParseLayout(flags.layout) : Layout::kNchw,
                                (flags.seed - 1) * flags.distinct + number);
      if (!tensor.ok()) return tensor.status();
      inputs.push_back(*std::move(tensor));
    }
    all.push_back(std::move(inputs));
  }
  return all;
}

// The file of an input: "INPUT=FILE", or the one file of a model with one input.
absl::StatusOr<std::string> ArrayFile(const LoadFlags& flags, const TensorMetadata& input,
                                      size_t inputs) {
  for (const std::string& array : flags.arrays) {
    const size_t equals = array.find('=');
    if (equals == std::string::npos && inputs == 1) return array;
    if (array.substr(0, equals) == input.name) return array.substr(equals + 1);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--array=", input.name, "=FILE.npy is missing for input '", input.name, "'"));
}

// A tensor of `batch` rows per request, from an array of many rows.
absl::StatusOr<std::vector<Tensor>> CutIntoBatches(const NpyArray& array, const std::string& file,
                                                   const TensorMetadata& input, int64_t batch,
                                                   Layout layout) {
  if (array.datatype != input.datatype) {
    return absl::InvalidArgumentError(absl::StrCat(
        "input '", input.name, "' takes ", input.datatype, ", ", file, " holds ", array.datatype));
  }
  const int64_t rows_per_request =
      input.shape.empty() || input.shape[0] < 0 ? batch : input.shape[0];
  if (array.shape.size() != input.shape.size() || array.shape.empty() ||
      array.shape[0] < rows_per_request) {
    return absl::InvalidArgumentError(
        absl::StrCat(file, " holds ", ShapeText(array.shape), "; input '", input.name, "' takes ",
                     ShapeText(input.shape), ", ", rows_per_request, " rows per request"));
  }
  const size_t bytes = array.bytes.size() / array.shape[0] * rows_per_request;
  std::vector<Tensor> tensors;
  for (int64_t first = 0; first + rows_per_request <= array.shape[0]; first += rows_per_request) {
    Tensor tensor{input.name, array.datatype, array.shape, layout,
                  array.bytes.substr(bytes * tensors.size(), bytes)};
    tensor.shape[0] = rows_per_request;
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Each file is of an input, and no input has two. In a mix it may be of another part's.
absl::Status CheckArrays(const LoadFlags& flags, const ModelMetadata& metadata) {
  std::set<std::string> named;
  for (const std::string& array : flags.arrays) {
    const size_t equals = array.find('=');
    if (equals == std::string::npos && metadata.inputs.size() > 1) {
      return absl::InvalidArgumentError(absl::StrCat("--array=", array, ": the model has ",
                                                     metadata.inputs.size(),
                                                     " inputs: write --array=INPUT=", array));
    }
    const std::string name =
        equals == std::string::npos ? metadata.inputs.at(0).name : array.substr(0, equals);
    if (!named.insert(name).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("--array=", array, ": input '", name, "' has a file already"));
    }
    const bool is_known =
        std::any_of(metadata.inputs.begin(), metadata.inputs.end(),
                    [&](const TensorMetadata& input) { return input.name == name; });
    if (is_known || !flags.mix.empty()) continue;
    const auto append = [](std::string* text, const TensorMetadata& input) {
      absl::StrAppend(text, "'", input.name, "'");
    };
    return absl::InvalidArgumentError(absl::StrCat("--array=", array, ": the model has no input '",
                                                   name, "'; its inputs are ",
                                                   absl::StrJoin(metadata.inputs, ", ", append)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Inputs> ArrayInputs(const LoadFlags& flags, const WantedRequests& wanted,
                                   const ModelMetadata& metadata) {
  if (absl::Status status = CheckArrays(flags, metadata); !status.ok()) return status;
  Inputs all;
  for (const TensorMetadata& input : metadata.inputs) {
    const auto file = ArrayFile(flags, input, metadata.inputs.size());
    if (!file.ok()) return file.status();
    const auto content = ReadFile(*file);
    if (!content.ok()) return content.status();
    const auto array = ReadNpy(*content);
    if (!array.ok())
      return absl::InvalidArgumentError(absl::StrCat(*file, ": ", array.status().message()));
    auto tensors = CutIntoBatches(*array, *file, input, wanted.batch,
                                  HasLayout(input) ? ParseLayout(flags.layout) : Layout::kNchw);
    if (!tensors.ok()) return tensors.status();
    if (all.empty()) all.resize(tensors->size());
    if (all.size() != tensors->size())
      return absl::InvalidArgumentError(absl::StrCat(*file, " has another number of rows"));
    for (size_t i = 0; i < all.size(); ++i) all[i].push_back(std::move((*tensors)[i]));
  }
  return all;
}

// A request per picture; with a larger batch the pictures follow each other around.
absl::StatusOr<Inputs> ImageInputs(const LoadFlags& flags, const WantedRequests& wanted,
                                   const ModelMetadata& metadata) {
  if (metadata.inputs.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--image: model '", wanted.model, "' does not take one picture"));
  }
  const TensorMetadata& input = metadata.inputs[0];
  const auto picture =
      PictureInputOf(input, wanted.batch, flags.free_size, ParseLayout(flags.layout));
  if (!picture.ok())
    return absl::InvalidArgumentError(absl::StrCat("--image: ", picture.status().message()));
  Inputs all;
  for (size_t first = 0; first < flags.images.size(); ++first) {
    Tensor tensor = picture->tensor;
    for (int64_t row = 0; row < picture->pictures; ++row) {
      const std::string& file = flags.images[(first + row) % flags.images.size()];
      auto bytes = ReadPicture(file, input, *picture, flags.pictures);
      if (!bytes.ok()) return bytes.status();
      tensor.bytes += *bytes;
    }
    all.push_back({std::move(tensor)});
  }
  return all;
}

absl::StatusOr<LoadPart> MakePart(const LoadFlags& flags, const WantedRequests& wanted,
                                  Client* client) {
  absl::StatusOr<ModelMetadata> metadata = client->Metadata(wanted.model);
  if (!metadata.ok()) return metadata.status();
  if (absl::Status status = CheckBatch(wanted.model, *metadata, wanted.batch); !status.ok())
    return status;
  auto inputs = !flags.images.empty()   ? ImageInputs(flags, wanted, *metadata)
                : !flags.arrays.empty() ? ArrayInputs(flags, wanted, *metadata)
                                        : RandomInputs(flags, wanted, *metadata);
  if (!inputs.ok()) return inputs.status();
  LoadPart part;
  part.name = wanted.batch == 1 ? wanted.model : absl::StrCat(wanted.model, "@", wanted.batch);
  part.share = wanted.share;
  part.model = wanted.model;
  part.inputs = *std::move(inputs);
  part.infer.deadline = absl::Seconds(flags.timeout_s);
  part.infer.outputs = AllOutputs(*metadata, ParseLayout(flags.layout));
  part.rows = wanted.batch;
  return part;
}

}  // namespace

absl::StatusOr<std::vector<WantedRequests>> ParseMix(const std::string& text) {
  std::vector<WantedRequests> all;
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const auto wanted = ParseWanted(part);
    if (!wanted.ok()) return wanted.status();
    all.push_back(*wanted);
  }
  return all;
}

absl::StatusOr<std::vector<LoadPart>> MakeLoadParts(const LoadFlags& flags, Client* client) {
  std::vector<WantedRequests> all = {{.model = flags.model, .batch = flags.batch}};
  if (!flags.mix.empty()) {
    auto mix = ParseMix(flags.mix);
    if (!mix.ok()) return mix.status();
    all = *std::move(mix);
  }
  std::vector<LoadPart> parts;
  for (const WantedRequests& wanted : all) {
    auto part = MakePart(flags, wanted, client);
    if (!part.ok()) return part.status();
    parts.push_back(*std::move(part));
  }
  return parts;
}

absl::StatusOr<LoadOptions> MakeLoadOptions(const LoadFlags& flags, Client* client) {
  auto parts = MakeLoadParts(flags, client);
  if (!parts.ok()) return parts.status();
  LoadOptions options;
  options.parts = *std::move(parts);
  options.arrivals = flags.arrivals == "constant" ? ArrivalKind::kConstant : ArrivalKind::kPoisson;
  if (!flags.think.empty() && !absl::ParseDuration(flags.think, &options.think))
    return absl::InvalidArgumentError("--think is not a duration such as 20ms");
  options.think_kind =
      flags.think_times == "constant" ? ThinkKind::kConstant : ThinkKind::kExponential;
  options.seed = flags.seed;
  options.connections = flags.connections;
  options.threads = flags.threads;
  options.max_waiting = flags.max_waiting;
  options.warm_up = absl::Seconds(flags.warm_up_s);
  if (flags.duration_s > 0) options.duration = absl::Seconds(flags.duration_s);
  options.requests = flags.requests;
  options.split = flags.split;
  options.tolerance = flags.tolerance;
  return options;
}

}  // namespace tilewire::client
