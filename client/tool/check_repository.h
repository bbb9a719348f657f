// SPDX-License-Identifier: Apache-2.0
//
// `tilewire check REPOSITORY`: of every model in a repository, which settings a server applies,
// which have no effect, and what keeps it from being served.
#ifndef CLIENT_TOOL_CHECK_REPOSITORY_H_
#define CLIENT_TOOL_CHECK_REPOSITORY_H_

#include <string>

#include "service/models/repository_scan.h"

namespace tilewire::client {

struct RepositoryCheckOptions {
  service::ScanOptions scan;
  bool json = false;
};

// The tuning beside a file, as a server would take it; both are empty where there is none.
struct CheckedTuning {
  std::string text;     // "tilewire.tuning, to l2<=0.03: 5 layers int8, 0 bf16, 1 exact; ..."
  std::string problem;  // that keeps the model from being loaded
};
CheckedTuning CheckTuningOf(const std::string& path);

// Prints the verdicts on the models in `folder`, a repository or a single model's folder. The exit
// status: 0 every model would be served, 1 some would not, 2 there is none.
int CheckRepository(const std::string& folder, const RepositoryCheckOptions& options);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_CHECK_REPOSITORY_H_
