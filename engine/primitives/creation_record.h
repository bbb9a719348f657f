// SPDX-License-Identifier: Apache-2.0
//
// How a primitive came about: its problem in words, and the implementations that do not serve it.
#ifndef ENGINE_PRIMITIVES_CREATION_RECORD_H_
#define ENGINE_PRIMITIVES_CREATION_RECORD_H_

#include <string>
#include <vector>

namespace tilewire {

// Why an implementation did not take a descriptor.
struct Refusal {
  std::string name;            // "convolution/avx512_vnni_u8s8_direct"
  std::string reason;          // "needs avx512_vnni"
  bool by_descriptor = false;  // else its instruction set, or an attribute, ruled the row out
  double cycles = 0;           // its estimate, where only that was against it
};

// The record of a primitive's creation beyond what its implementation fills in.
struct CreationRecord {
  std::string prop_kind;          // "forward_inference", or nothing
  std::string problem;            // the descriptor beyond its tensors: "kernel:3x3 strides:2x2 ..."
  std::string attributes;         // "post_ops:relu:0 scratchpad:user"
  std::vector<Refusal> refusals;  // of all that stood before the chosen one or beside it
  double cycles = 0;              // estimated, of a core for one image; 0: the row has no cost
  std::vector<std::string> dumps;  // files of its generated code, if code is dumped
};

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CREATION_RECORD_H_
