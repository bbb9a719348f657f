// SPDX-License-Identifier: Apache-2.0
//
// Starts the engine with compute threads that leave their cores to the other threads in time.
#ifndef SERVICE_ENGINE_START_H_
#define SERVICE_ENGINE_START_H_

#include <memory>

#include "absl/status/statusor.h"
#include "engine/engine.h"

namespace tilewire::service {

// As Engine::Create(). A thread that receives, answers or runs a short request does not wait until
// a compute thread's slice of time ends: the calling thread, and those that it makes later, get
// short slices (schedule/time_slice.h); compute threads do not. Where the system has none, compute
// threads offer their cores several times per millisecond, which a line of the log says.
//
// All have the process's niceness: beside other processes, the server gets a fair share of the
// cores.
//
// With `pin_threads` each compute thread stays on a core of its own (threading/pinning.h).
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const EngineOptions& options, bool pin_threads);

}  // namespace tilewire::service

#endif  // SERVICE_ENGINE_START_H_
