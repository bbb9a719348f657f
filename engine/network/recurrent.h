// SPDX-License-Identifier: Apache-2.0
//
// A layer of a recurrent network, as an operation of a network (network.h).
#ifndef ENGINE_NETWORK_RECURRENT_H_
#define ENGINE_NETWORK_RECURRENT_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/functions/rnn_cell.h"
#include "engine/network/weights.h"

namespace tilewire::network {

// The cell (engine/functions/rnn_cell.h) passes over the T steps of N sequences, in D directions,
// each with weights of its own. What it reads are sources of the operation or known, each in the
// dims that its role names, with I inputs, H states and G gates; all but the first three may be
// left out. As for clip, couples_gates, peepholes and lengths, see engine/primitives/rnn/rnn.h.
struct Rnn {
  enum class Role : uint8_t {
    kLayer,            // [T,N,I]
    kWeightsLayer,     // [1,D,I,G,H]
    kWeightsIter,      // [1,D,H,G,H]
    kBias,             // [1,D,G,H]; of kLbrGru [1,D,G+1,H]
    kPeephole,         // [1,D,3,H]
    kIter,             // the first states, [1,D,N,H]
    kIterC,            // the same of the memory of an lstm
    kSequenceLengths,  // [N], of s32
  };
  functions::RnnCell cell = functions::RnnCell::kLstm;
  functions::RnnDirection direction = functions::RnnDirection::kLeftToRight;
  std::vector<functions::RnnActivation> activations;
  float clip = 0;
  bool couples_gates = false;
  std::vector<Role> roles;  // of the operation's sources
  std::vector<std::pair<Role, Weights>> known;
  // dst is [T,N,D*H], the states of the directions side by side; one more step holds the last
  // states if `gives_iter`, and one more the last memory if `gives_iter_c`.
  bool gives_iter = false, gives_iter_c = false;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_RECURRENT_H_
