// SPDX-License-Identifier: Apache-2.0
//
// From what was found on disk to what serves. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_LOAD_H_
#define SERVICE_MODELS_MODEL_LOAD_H_

#include "absl/status/status.h"
#include "engine/engine.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// Reads the model's settings and file; sets its path, config, tensors and model.
//   the errors of Engine::LoadModel(), and of settings that are refused; messages may name the path
absl::Status ReadVersion(Engine* engine, const LoadOptions& options, ServedModel* served);

// `found` with its model and labels, kReady; or kUnavailable with the error, whose message names no
// path. Writes a line to the log.
ServedModel LoadVersion(const ServedModel& found, Engine* engine, const LoadOptions& options);

// `found` as kUnavailable, because of `why`. Writes a line to the log, but of what was cancelled.
ServedModel NotLoaded(const ServedModel& found, const absl::Status& why);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_LOAD_H_
