// SPDX-License-Identifier: Apache-2.0
#include "service/models/configured_warm_up.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/models/model_config.h"
#include "service/models/within_memory.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;
using inference::ModelWarmup;

constexpr int64_t kMostWarmUpBytes = int64_t{64} << 20;

// One element from 16 random bits: a float from 1/2 to 1, an integer that is 0 or 1.
void WriteElement(DataType type, uint16_t bits, char* to) {
  const auto write = [to](auto value) { std::memcpy(to, &value, sizeof(value)); };
  switch (type) {
    case DataType::kF32:
      return write(0.5f + static_cast<float>(bits) / 131072.0f);
    case DataType::kF64:
      return write(0.5 + bits / 131072.0);
    case DataType::kF16:
      return write(static_cast<uint16_t>(0x3800 + bits % 0x400));
    case DataType::kBf16:
      return write(static_cast<uint16_t>(0x3f00 + bits % 0x80));
    default:
      *to = static_cast<char>(bits & 1);  // little-endian; the other bytes are zero
  }
}

std::string RandomBytes(DataType type, int64_t bytes) {
  std::string random(bytes, '\0');
  std::minstd_rand generator(1);
  const int64_t size = SizeOf(type);
  for (int64_t at = 0; at < bytes; at += size)
    WriteElement(type, static_cast<uint16_t>(generator() >> 8), &random[at]);
  return random;
}

absl::StatusOr<std::string> FileBytes(const ServedModel& served, const std::string& name,
                                      int64_t bytes) {
  if (!IsFileName(name))
    return absl::InvalidArgumentError("its file is not a name in the folder warmup");
  const fs::path path = fs::path(served.settings_folder) / "warmup" / name;
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (error) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file ", Quoted(name), " is missing from the model's folder warmup"));
  }
  if (size != static_cast<uintmax_t>(bytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file ", Quoted(name), " has ", size, " bytes, the tensor needs ", bytes));
  }
  std::string content(bytes, '\0');
  if (std::ifstream(path, std::ios::binary).read(content.data(), bytes)) return content;
  return absl::InvalidArgumentError(absl::StrCat("the file ", Quoted(name), " cannot be read"));
}

// The dims and bytes of one input of an entry.
absl::Status MakeInput(const ServedModel& served, const ModelWarmup& entry,
                       const ModelWarmup::Input& input, const TensorSpec& spec, InputTensor* tensor,
                       std::string* bytes) {
  if (input.data_type() != ConfigType(spec.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("its data_type is not ", inference::DataType_Name(ConfigType(spec.type))));
  }
  tensor->dims.assign(input.dims().begin(), input.dims().end());
  if (served.max_batch > 0)
    tensor->dims.insert(tensor->dims.begin(), std::max<int64_t>(entry.batch_size(), 1));
  const std::optional<int64_t> count = ElementCount(tensor->dims);
  if (!spec.Allows(tensor->dims) || !count) {
    return absl::InvalidArgumentError(absl::StrCat("its shape ", DimsToString(tensor->dims),
                                                   " does not match ", ShapeText(spec)));
  }
  if (*count > kMostWarmUpBytes / SizeOf(spec.type))
    return absl::InvalidArgumentError("it has more than 64 MB");
  const int64_t size = *count * SizeOf(spec.type);
  if (input.has_input_data_file()) {
    ABSL_ASSIGN_OR_RETURN(*bytes, FileBytes(served, input.input_data_file(), size));
  } else {
    *bytes = input.random_data() ? RandomBytes(spec.type, size) : std::string(size, '\0');
  }
  tensor->pieces = {*bytes};
  return absl::OkStatus();
}

absl::Status RunEntry(const ServedModel& served, const ModelWarmup& entry,
                      const RunOptions& options) {
  const std::vector<TensorSpec>& specs = served.tensors.signature().inputs;
  if (served.max_batch > 0 && entry.batch_size() > served.max_batch)
    return absl::InvalidArgumentError("its batch_size is larger than max_batch_size");
  for (const auto& [name, input] : entry.inputs()) {
    const bool known = std::any_of(specs.begin(), specs.end(),
                                   [&](const TensorSpec& spec) { return spec.name == name; });
    if (!known)
      return absl::InvalidArgumentError(absl::StrCat("input ", Quoted(name), ": unknown"));
  }
  std::vector<InputTensor> inputs(specs.size());
  std::vector<std::string> bytes(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto input = entry.inputs().find(specs[i].name);
    const absl::Status made =
        input == entry.inputs().end()
            ? absl::InvalidArgumentError("it is missing")
            : MakeInput(served, entry, input->second, specs[i], &inputs[i], &bytes[i]);
    if (!made.ok()) {
      return absl::Status(made.code(),
                          absl::StrCat("input ", Quoted(specs[i].name), ": ", made.message()));
    }
  }
  ABSL_RETURN_IF_ERROR(served.tensors.ToModel(&inputs, {}));
  for (uint32_t i = 0; i < std::max<uint32_t>(entry.count(), 1); ++i) {
    ABSL_RETURN_IF_ERROR(
        WithinMemory([&] { return served.model->Run(inputs, {}, options).status(); }));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RunConfiguredWarmUp(const ServedModel& served, RunOptions options) {
  options.is_counted = false;  // live profiles are of requests
  for (const ModelWarmup& entry : served.config->model_warmup()) {
    const absl::Status status = RunEntry(served, entry, options);
    if (absl::IsCancelled(status)) return status;
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("config.pbtxt: model_warmup ", Quoted(entry.name()), ": ",
                                       status.message()));
    }
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
