// SPDX-License-Identifier: Apache-2.0
//
// The sinks of traces that flags ask for.
#ifndef SERVICE_TRACES_H_
#define SERVICE_TRACES_H_

#include <memory>

#include "absl/status/status.h"
#include "service/flags.h"
#include "service/models/model_repository.h"
#include "service/trace/trace_file.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

// Thread-compatible.
class Traces {
 public:
  // `models` outlives it.
  Traces(const Flags& flags, const ModelRepository* models);

  // Null where no flag asks for traces.
  Tracer* tracer() { return tracer_.get(); }
  // Takes the file, if there is one: to be called once the port is open, so that a server that
  // does not start leaves the file as it is.
  //   the errors of TraceFile::Begin()
  absl::Status Begin();
  // After the last request: see Tracer::Finish().
  void End() {
    if (tracer_ != nullptr) tracer_->Finish();
  }

 private:
  TraceFile* file_ = nullptr;  // one of the tracer's sinks
  std::unique_ptr<Tracer> tracer_;
};

}  // namespace tilewire::service

#endif  // SERVICE_TRACES_H_
