// SPDX-License-Identifier: Apache-2.0
//
// Space on a disk for a file that a long work writes at its end. A file without a name has it, so
// that nothing is left behind, however the process ends. Thread-compatible.
#ifndef CLIENT_TRAINING_RESERVED_SPACE_H_
#define CLIENT_TRAINING_RESERVED_SPACE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace tilewire::client {

class ReservedSpace {
 public:
  // Takes `bytes` in the folder of `path`. Where its file system knows no reservation, only whether
  // so many are free now is asked, and nothing where it does not know that either.
  //   kResourceExhausted  so many are not free, or this process may write no file of that size
  //   what making a file there fails with
  static absl::StatusOr<ReservedSpace> Take(const std::string& path, int64_t bytes);
  ReservedSpace(ReservedSpace&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)) {}
  ReservedSpace& operator=(ReservedSpace&&) = delete;
  ~ReservedSpace() { GiveBack(); }

  // Right before the file is written.
  void GiveBack();

 private:
  explicit ReservedSpace(int descriptor) : descriptor_(descriptor) {}

  int descriptor_;
};

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_RESERVED_SPACE_H_
