// SPDX-License-Identifier: Apache-2.0
#include "service/models/named_models.h"

#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"

namespace tilewire::service {

NamedModel ParseNamedModel(absl::string_view text) {
  const size_t end = text.find_first_of("=/");
  if (end == absl::string_view::npos || text[end] == '/') return {"", std::string(text)};
  return {std::string(text.substr(0, end)), std::string(text.substr(end + 1))};
}

absl::StatusOr<std::vector<ServedModel>> ScanNamed(const std::vector<NamedModel>& models,
                                                   const ScanOptions& options) {
  std::map<std::pair<std::string, int64_t>, ServedModel> all;
  for (const NamedModel& model : models) {
    std::error_code error;
    const bool folder = std::filesystem::is_directory(model.path, error);
    ABSL_ASSIGN_OR_RETURN(std::vector<ServedModel> found,
                          folder ? ScanFolder(model.path, model.name, options)
                                 : ScanFile(model.path, model.name, options));
    for (ServedModel& served : found) {
      if (!model.name.empty()) served.named_by = NamedBy::kFlag;
      if (!options.scope.model.empty() && served.name != options.scope.model) continue;
      const std::pair<std::string, int64_t> key(served.name, served.version);
      if (!IsUtf8(served.name)) {
        return absl::InvalidArgumentError(
            absl::StrCat("model '", model.path, "': its name is not UTF-8"));
      }
      if (!all.emplace(key, std::move(served)).second) {
        return absl::InvalidArgumentError(absl::StrCat("two models are version ", key.second,
                                                       " of '", key.first,
                                                       "'; --model=NAME=PATH gives another name"));
      }
    }
  }
  std::vector<ServedModel> sorted;
  for (auto& [key, served] : all) sorted.push_back(std::move(served));
  return sorted;
}

}  // namespace tilewire::service
