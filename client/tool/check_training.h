// SPDX-License-Identifier: Apache-2.0
//
// `tilewire check --training`: whether a file can be trained, and all that keeps it from it.
#ifndef CLIENT_TOOL_CHECK_TRAINING_H_
#define CLIENT_TOOL_CHECK_TRAINING_H_

#include <cstdint>
#include <string>
#include <vector>

namespace tilewire::client {

struct CheckedTraining {
  std::vector<std::string> lacks;  // none: it can be trained
  int64_t parameters = 0, elements = 0;
  std::vector<std::string> notes;  // of what is peculiar

  bool trains() const { return lacks.empty(); }
};

// By the derivative of the first output; nothing is trained. Where other dimensions of inputs than
// the first are open, operations are not looked at, and a note says so.
CheckedTraining CheckTrainingOf(const std::string& path);

}  // namespace tilewire::client

#endif  // CLIENT_TOOL_CHECK_TRAINING_H_
