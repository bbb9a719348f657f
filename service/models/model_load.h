// SPDX-License-Identifier: Apache-2.0
//
// From what was found on disk to what serves. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_LOAD_H_
#define SERVICE_MODELS_MODEL_LOAD_H_

#include "absl/status/status.h"
#include "engine/engine.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// `found` with its model and labels, kReady; or kUnavailable with the error, whose message names no
// path. Writes a line to the log.
ServedModel LoadVersion(const ServedModel& found, Engine* engine, const LoadOptions& options);

// Runs a model once, on zeros and a batch of one, so that the first request finds its memory in
// place. Does nothing if the model leaves more open than the batch, or asks for large inputs.
//   what options.between_steps returned, and the errors of Model::Run()
absl::Status WarmUp(const Model& model, const LoadOptions& options);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_LOAD_H_
