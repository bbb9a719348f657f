// SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads of models that clients ask for. The answer comes when the loader is done, and
// no thread waits for it. Thread-safe.
#ifndef SERVICE_RPC_LOAD_JOB_H_
#define SERVICE_RPC_LOAD_JOB_H_

#include "grpcpp/support/byte_buffer.h"
#include "service/models/model_control.h"
#include "service/rpc/call_host.h"
#include "service/rpc/job.h"

namespace tilewire::service {

// `control` may be null: models are then not loaded by request. What is pointed to outlives the
// jobs. A job's error is, beside those of ModelControl,
//   kInvalidArgument    a parameter that is unknown or has a wrong value, or files without settings
//   kPermissionDenied   files are sent along, and the server takes none
//   kResourceExhausted  they are too large
OwnedJob LoadModelJob(ModelControl* control, const CallHost& host, const grpc::ByteBuffer& request,
                      grpc::ByteBuffer* response);
OwnedJob UnloadModelJob(ModelControl* control, const CallHost& host,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

}  // namespace tilewire::service

#endif  // SERVICE_RPC_LOAD_JOB_H_
