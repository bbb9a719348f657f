// SPDX-License-Identifier: Apache-2.0
//
// Models that serve no more and are still used by runs that began before. Giving back the memory of
// a large one takes a core a tenth of a second and more; this holds the last reference, so that the
// loading thread does it and no thread of a request. Thread-compatible.
#ifndef SERVICE_MODELS_RETIRED_MODELS_H_
#define SERVICE_MODELS_RETIRED_MODELS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "engine/model.h"

namespace tilewire::service {

class RetiredModels {
 public:
  // Nothing that is published holds `model` any more, or will soon. Does nothing for null.
  void Add(std::shared_ptr<const Model> model) {
    if (model != nullptr) models_.push_back(std::move(model));
  }
  // Frees those that nothing else holds, in pieces, and calls `between` after each. Returns whether
  // there was one.
  bool FreeUnused(absl::FunctionRef<void()> between) {
    return std::erase_if(models_, [&](const auto& model) {
             if (model.use_count() != 1) return false;
             model->Release(between);
             return true;
           }) > 0;
  }
  bool Holds(const Model* model) const {
    for (const auto& one : models_) {
      if (one.get() == model) return true;
    }
    return false;
  }
  bool empty() const { return models_.empty(); }

 private:
  std::vector<std::shared_ptr<const Model>> models_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_RETIRED_MODELS_H_
