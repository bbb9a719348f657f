// SPDX-License-Identifier: Apache-2.0
//
// A network as text, for tests and logs; one line per input, operation and output:
//
//   input x [1,3,8,8]
//   y [1,4,8,8] = convolution(x) conv.w[4,3,3,3] scaled bias pads=[1,1],[1,1] + sum(z) + relu(0,0)
//   output y
//
// Parameters and statistics, which only training has, have lines of their own.
//
// Attributes with their usual value (stride 1, no padding, one group, ...) are left out.
#ifndef TESTS_ENGINE_ONNX_NETWORK_TEXT_H_
#define TESTS_ENGINE_ONNX_NETWORK_TEXT_H_

#include <string>

#include "engine/network/network.h"

namespace tilewire::reader {

std::string NetworkToText(const network::Network& network);

}  // namespace tilewire::reader

#endif  // TESTS_ENGINE_ONNX_NETWORK_TEXT_H_
