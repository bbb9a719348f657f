// SPDX-License-Identifier: Apache-2.0
//
// The patterns that passes look for, as exporters and quantisers write it, of any rank, and almost:
// now and then an axis, an order, a shape or a factor is another one, or a part is read elsewhere
// too.
#ifndef TESTS_FUZZ_NETWORKS_PATTERNS_H_
#define TESTS_FUZZ_NETWORKS_PATTERNS_H_

#include "tests/fuzz/networks/network_maker.h"

namespace tilewire::testing {

// Adds one of them, as far as the engine takes it.
void AddPattern(NetworkMaker& maker);

// attention_patterns.cc
void AddAttention(NetworkMaker& maker);

// quantized_patterns.cc
void AddQuantizedLayer(NetworkMaker& maker);
void AddQuantizedMoves(NetworkMaker& maker);
void AddDynamicQuantization(NetworkMaker& maker);
void AddImageOfBytes(NetworkMaker& maker);

// A random order of so many dimensions.
std::vector<int64_t> RandomOrder(Random& random, int rank);

// `src` under other dims of as many elements.
Made Reshaped(NetworkMaker& maker, const Made& src, const Dims& dims);
Made Transposed(NetworkMaker& maker, const Made& src, const std::vector<int64_t>& order);

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_PATTERNS_H_
