// SPDX-License-Identifier: Apache-2.0
//
// Finds the models on disk. Pure functions of the file system.
#ifndef SERVICE_MODELS_REPOSITORY_SCAN_H_
#define SERVICE_MODELS_REPOSITORY_SCAN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// The part of what lies on disk that a scan is about.
struct ScanScope {
  std::string model;  // empty: all
  // Settings of that model in the place of its config.pbtxt; null: the file.
  std::shared_ptr<const inference::ModelConfig> config;
  std::string folder;  // that is the model, in the place of the repositories; empty: these
};

struct ScanOptions {
  // The highest versions that are served of a model whose settings do not say; 0: all.
  uint32_t latest = 1;
  bool strict_config = false;  // see ServedModel
  // Told of folders that are skipped; empty: the log is.
  std::function<void(const std::string& line)> remark;
  ScanScope scope;
};

// The versions in `directory`, which holds <model>/<integer version>/model.onnx and, if wanted,
// <model>/labels.txt and <model>/config.pbtxt, whose version_policy says which versions are wanted;
// sorted by name. Names that begin with a dot are skipped, and versions with zeros ahead of their
// number. In the place of model.onnx there may be a folder: OnnxFileAt().
//   kNotFound          no such directory, or no model in it
//   kPermissionDenied  it may not be read
absl::StatusOr<std::vector<ServedModel>> ScanDirectory(const std::string& directory,
                                                       const ScanOptions& options = {});

// The same of several; one of them may hold no model.
//   kInvalidArgument  two hold a model of the same name
//   the errors of ScanDirectory()
absl::StatusOr<std::vector<ServedModel>> ScanDirectories(
    const std::vector<std::string>& directories, const ScanOptions& options);

// One file; .../<model>/<version>/model.onnx gives name and version, any other path its stem and
// version 1. `name`, if there is one, stands in the place of either.
//   kNotFound
absl::StatusOr<std::vector<ServedModel>> ScanFile(const std::string& path,
                                                  const std::string& name = "",
                                                  const ScanOptions& options = {});

// One folder that is one model: with folders of versions, as in a repository; or a version of its
// own, with model.onnx, or with another file *.onnx if it is the only one. Labels and settings lie
// beside the versions, or in the folder. The model has the folder's name if `name` is empty.
//   kNotFound         no such folder, or no model in it
//   kInvalidArgument  several files *.onnx, none of which is model.onnx
absl::StatusOr<std::vector<ServedModel>> ScanFolder(const std::string& folder,
                                                    const std::string& name,
                                                    const ScanOptions& options = {});

// The file of a model that lies at `path`: it, or, where it is a folder, model.onnx inside it,
// beside which the model's other files lie. Neither need be there.
std::string OnnxFileAt(const std::string& path);
// The same of a version that has a folder and these settings.
std::string OnnxFileOf(const ServedModel& served, const inference::ModelConfig& config);

// The names of the files and folders *.onnx in `folder`, in order, without hidden ones.
//   kNotFound, kPermissionDenied  it cannot be read
absl::StatusOr<std::vector<std::string>> OnnxFiles(const std::string& folder);

// A version is digits only, so that every version has one spelling but for leading zeros.
bool ParseVersion(absl::string_view text, int64_t* version);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_REPOSITORY_SCAN_H_
