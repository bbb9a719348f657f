// SPDX-License-Identifier: Apache-2.0
//
// Starts the engine with compute threads that leave their cores to the other threads.
#ifndef SERVICE_ENGINE_START_H_
#define SERVICE_ENGINE_START_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace tilewire::service {

// As Engine::Create(). The compute threads' niceness is 10 more than the process's: a thread that
// receives, answers or runs a short request does not wait until a long request's slice of time
// ends. It gets a core from them at once or, where the system does not see to that, between two
// pieces of their work (threading/arena.cc). What nothing else wants is theirs as before.
//
// With `pin_threads` each stays on a core of its own (threading/pinning.h).
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const EngineOptions& options, bool pin_threads);

}  // namespace tilewire::service

#endif  // SERVICE_ENGINE_START_H_
