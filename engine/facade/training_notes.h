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
#include "engine/training/training_spec.h"

namespace tilewire {

// `forward` is the network without losses; `outputs` are those of the spec's losses. Notes are of
// normalizations that an exporter has folded, of cross entropies of probabilities, and of steps
// that run reference implementations.
std::vector<std::string> NotesOf(const network::Network& forward, const TrainingSpec& spec,
                                 const std::vector<int>& outputs, const runtime::Plan& update);

}  // namespace tilewire

#endif  // ENGINE_FACADE_TRAINING_NOTES_H_
