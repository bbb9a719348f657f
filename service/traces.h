// SPDX-License-Identifier: Apache-2.0
//
// The sinks of traces that flags ask for.
#ifndef SERVICE_TRACES_H_
#define SERVICE_TRACES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "service/flags.h"
#include "service/models/model_repository.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

// Null where no flag asks for traces. `models` outlives the tracer.
//   the errors of TraceFile::Open()
absl::StatusOr<std::unique_ptr<Tracer>> OpenTraces(const Flags& flags,
                                                   const ModelRepository* models);

}  // namespace tilewire::service

#endif  // SERVICE_TRACES_H_
