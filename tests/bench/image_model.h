// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_BENCH_IMAGE_MODEL_H_
#define TESTS_BENCH_IMAGE_MODEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/model.h"

namespace tilewire::bench {

// The input of a model for one image; open dimensions after the batch are 224.
inline absl::StatusOr<Dims> ImageDimsOf(const Model& model, const std::string& path) {
  if (model.signature().inputs.size() != 1)
    return absl::UnimplementedError(absl::StrCat(path, " does not have exactly one input"));
  Dims dims = model.signature().inputs[0].dims;
  for (int64_t& dim : dims) dim = dim > 0 ? dim : 224;
  dims[0] = 1;
  return dims;
}

// The name of the model in file `path`: of model.onnx, the folder above that of the version.
inline std::string NameOf(const std::string& path) {
  std::string name = path.substr(path.find_last_of('/') + 1);
  if (name != "model.onnx") return name.substr(0, name.rfind(".onnx"));
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  return parts.size() >= 3 ? parts[parts.size() - 3] : name;
}

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_IMAGE_MODEL_H_
