// SPDX-License-Identifier: Apache-2.0
//
// Elements of examples that a model cannot take, such as indices beyond an embedding, found before
// the training begins. Pure functions.
#ifndef CLIENT_TRAINING_ELEMENT_CHECK_H_
#define CLIENT_TRAINING_ELEMENT_CHECK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "client/training/dataset.h"
#include "engine/trainer.h"

namespace tilewire::client {

// The flags that inputs and targets come from, with their values, as messages name them.
struct ExampleSources {
  std::string inputs, targets;
};

// Looks at all examples, those that are held out, too.
//   kInvalidArgument  an element outside its bounds; names the source, the example, the place in
//                     it, the number and what is allowed
absl::Status CheckElements(const Dataset& dataset, absl::Span<const ElementBounds> bounds,
                           const Trainer& trainer, const ExampleSources& sources);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_ELEMENT_CHECK_H_
