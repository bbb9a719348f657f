// SPDX-License-Identifier: Apache-2.0
//
// Peculiarities of a model, and of the plan of its updates, that matter for training, a sentence
// each. Pure; thread-safe.
#ifndef ENGINE_FACADE_TRAINING_NOTES_H_
#define ENGINE_FACADE_TRAINING_NOTES_H_

#include <string>
#include <vector>

#include "engine/network/network.h"
#include "engine/runtime/plan.h"

namespace tilewire {

// `update` is the network of an update (NetworkOfUpdate()), `plan` what it was lowered to. Notes
// are of normalizations that an exporter has folded, cross entropies of probabilities, functions
// whose gradient is zero everywhere, dropout that the file keeps up for inference, and steps that
// run reference implementations.
std::vector<std::string> NotesOf(const network::Network& update, const runtime::Plan& plan);

}  // namespace tilewire

#endif  // ENGINE_FACADE_TRAINING_NOTES_H_
