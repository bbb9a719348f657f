// SPDX-License-Identifier: Apache-2.0
//
// Starts the engine with compute threads of low priority.
#ifndef SERVICE_ENGINE_START_H_
#define SERVICE_ENGINE_START_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace tilewire::service {

// As Engine::Create(). The compute threads' niceness is 10 more than the process's: a thread that
// receives, answers or runs a short request takes a core from them at once, and does not wait until
// a long request's slice of time ends. What nothing else wants is theirs as before.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const EngineOptions& options);

}  // namespace tilewire::service

#endif  // SERVICE_ENGINE_START_H_
