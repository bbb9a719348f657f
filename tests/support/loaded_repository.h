// SPDX-License-Identifier: Apache-2.0
//
// A repository of a folder's models, every version of which has been loaded on this thread.
#ifndef TESTS_SUPPORT_LOADED_REPOSITORY_H_
#define TESTS_SUPPORT_LOADED_REPOSITORY_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/engine.h"
#include "service/models/model_load.h"
#include "service/models/model_repository.h"
#include "service/models/repository_scan.h"

namespace tilewire::testing {

// A version that does not load is kept with its error. Errors are those of ScanDirectory().
inline absl::StatusOr<std::unique_ptr<service::ModelRepository>> OpenRepository(
    const std::string& folder, Engine* engine, const service::ScanOptions& options = {}) {
  auto found = service::ScanDirectory(folder, options);
  if (!found.ok()) return found.status();
  for (service::ServedModel& served : *found) served = service::LoadVersion(served, engine, {});
  return std::make_unique<service::ModelRepository>(*std::move(found));
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_LOADED_REPOSITORY_H_
