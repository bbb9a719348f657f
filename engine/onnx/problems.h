// SPDX-License-Identifier: Apache-2.0
//
// Reasons why a model cannot be served, gathered while it is read, so that a user learns of all of
// it at once. An operator that is refused in many nodes for one reason is one problem.
#ifndef ENGINE_ONNX_PROBLEMS_H_
#define ENGINE_ONNX_PROBLEMS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/onnx/file/node.h"

namespace tilewire::reader {

// Thread-compatible.
class Problems {
 public:
  bool empty() const { return found_.empty(); }
  void Add(const absl::Status& error);
  void Add(const Node& node, const absl::Status& error);  // of node.Invalid() or Unimplemented()
  void Append(const Problems& others);

  // OK if empty; otherwise all problems in one message, with the code of the first.
  absl::Status AsStatus() const;

 private:
  struct Problem {
    absl::Status error;
    std::string reason;  // what nodes of one operator share
    int nodes = 0;       // 0: it is not of a node
  };

  void Keep(Problem problem);  // or, for the first that is one too many, that there are more

  std::vector<Problem> found_;
};

// The problems that `status` was made of, one text each; its message where it was not made of any.
std::vector<std::string> ProblemsOf(const absl::Status& status);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_PROBLEMS_H_
