// SPDX-License-Identifier: Apache-2.0
//
// A node of any operator of the table, with inputs and attributes that it may take: most guesses
// are of the kind that the operator wants, some are not.
#ifndef TESTS_FUZZ_NETWORKS_NODE_GUESS_H_
#define TESTS_FUZZ_NETWORKS_NODE_GUESS_H_

#include <string>
#include <vector>

#include "engine/onnx/ops/op_table.h"
#include "tests/fuzz/networks/network_maker.h"

namespace tilewire::testing {

// Adds a node of the row, if one of a few guesses is taken; returns its results. The first guesses
// read `wanted` first, unless it has no name.
std::vector<Made> AddNodeOf(NetworkMaker& maker, const reader::OpRow& row, const Made& wanted = {});

// attribute_guess.cc: some of the attributes that the row names. `x` is the first input.
Attributes GuessAttributes(NetworkMaker& maker, const reader::OpRow& row, const Made& x);

// input_guess.cc: the inputs after the first one, `x`, and attributes that must suit them.
struct Guess {
  std::vector<Made> inputs;
  Attributes attributes;
};
Guess GuessInputs(NetworkMaker& maker, const reader::OpRow& row, const Made& x);

// first_guess.cc: the first input, of a rank and type that the operator mostly wants.
Made GuessFirst(NetworkMaker& maker, const reader::OpRow& row);

}  // namespace tilewire::testing

#endif  // TESTS_FUZZ_NETWORKS_NODE_GUESS_H_
