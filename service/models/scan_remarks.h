// SPDX-License-Identifier: Apache-2.0
//
// Remarks of scans that follow each other: each is a line in the log when it first comes, and again
// when it comes back. Thread-compatible.
#ifndef SERVICE_MODELS_SCAN_REMARKS_H_
#define SERVICE_MODELS_SCAN_REMARKS_H_

#include <set>
#include <string>

namespace tilewire::service {

class ScanRemarks {
 public:
  // A scan begins.
  void Begin();
  void Add(const std::string& text);

 private:
  std::set<std::string> last_, now_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_SCAN_REMARKS_H_
