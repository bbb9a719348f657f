// SPDX-License-Identifier: Apache-2.0
//
// The upload that each model is served from, and those that nothing but runs which began before
// still uses. Thread-compatible: used by the loading thread.
#ifndef SERVICE_MODELS_UPLOADS_SERVED_UPLOADS_H_
#define SERVICE_MODELS_UPLOADS_SERVED_UPLOADS_H_

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "service/models/retired_models.h"
#include "service/models/uploads/upload_folder.h"

namespace tilewire::service {

class ServedUploads {
 public:
  // `folder` may be null: there are no uploads. It must outlive this object.
  explicit ServedUploads(UploadFolder* folder) : folder_(folder) {}

  bool Has(const std::string& model) const { return paths_.count(model) != 0; }
  // From now on `model` is served from the upload at `path`; empty: from none. The one before is
  // removed once none of its `models` runs any more.
  void Set(const std::string& model, const std::string& path, std::vector<const Model*> models) {
    const auto before = paths_.find(model);
    if (before != paths_.end()) {
      left_.push_back({before->second, std::move(models)});
      paths_.erase(before);
    }
    if (!path.empty()) paths_[model] = path;
  }
  // Removes what was left, but for what `retired` models may still read.
  void RemoveUnused(const RetiredModels& retired) {
    std::erase_if(left_, [&](const Left& left) {
      const bool is_used = std::any_of(left.models.begin(), left.models.end(),
                                       [&](const Model* model) { return retired.Holds(model); });
      if (!is_used) folder_->Remove(left.path);
      return !is_used;
    });
  }

 private:
  struct Left {
    std::string path;
    std::vector<const Model*> models;
  };

  UploadFolder* const folder_;
  std::map<std::string, std::string> paths_;  // by model
  std::vector<Left> left_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_UPLOADS_SERVED_UPLOADS_H_
