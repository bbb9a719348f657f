// SPDX-License-Identifier: Apache-2.0
//
// A bound on the bytes of all tensors of one primitive. Thread-compatible.
#ifndef SERVICE_WIRE_BYTE_BUDGET_H_
#define SERVICE_WIRE_BYTE_BUDGET_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace tilewire::service {

// Bytes that cannot overflow: kResourceExhausted once they are spent.
class ByteBudget {
 public:
  explicit ByteBudget(int64_t limit) : limit_(limit), left_(limit) {}

  absl::Status Spend(int64_t bytes) {
    if (bytes > left_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the primitive's tensors need more than ", limit_,
                       " bytes, which a larger --max_message_mb of the server raises"));
    }
    left_ -= bytes;
    return absl::OkStatus();
  }

 private:
  const int64_t limit_;
  int64_t left_;
};

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_BYTE_BUDGET_H_
