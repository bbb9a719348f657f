// SPDX-License-Identifier: Apache-2.0
//
// The models that a command line names one by one: --model=PATH or --model=NAME=PATH.
#ifndef SERVICE_MODELS_NAMED_MODELS_H_
#define SERVICE_MODELS_NAMED_MODELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "service/models/repository_scan.h"
#include "service/models/served_model.h"

namespace tilewire::service {

struct NamedModel {
  std::string name;  // empty: the path gives it
  std::string path;  // of an ONNX file, or of a folder that is one model
};

// The text before the first "=" is a name if it holds no slash; a path that holds "=" may begin
// with "./".
NamedModel ParseNamedModel(absl::string_view text);

// All of them, by ScanFile() or ScanFolder(), sorted by name and version. `models` is not empty.
//   kInvalidArgument  a name that is not UTF-8, or two files for one version of one model
//   the errors of ScanFile() and ScanFolder()
absl::StatusOr<std::vector<ServedModel>> ScanNamed(const std::vector<NamedModel>& models,
                                                   const ScanOptions& options = {});

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_NAMED_MODELS_H_
