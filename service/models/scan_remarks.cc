// SPDX-License-Identifier: Apache-2.0
#include "service/models/scan_remarks.h"

#include "spdlog/spdlog.h"

namespace tilewire::service {

void ScanRemarks::Begin() {
  last_.swap(now_);
  now_.clear();
}

void ScanRemarks::Add(const std::string& text) {
  if (now_.insert(text).second && last_.count(text) == 0) spdlog::warn(text);
}

}  // namespace tilewire::service
