// SPDX-License-Identifier: Apache-2.0
//
// From the engine's outputs to the bytes of a ModelInferResponse. Thread-compatible.
#ifndef SERVICE_WIRE_RESPONSE_ENCODER_H_
#define SERVICE_WIRE_RESPONSE_ENCODER_H_

#include <vector>

#include "engine/model.h"
#include "grpcpp/support/byte_buffer.h"
#include "protos/open_inference.pb.h"

namespace tilewire::service {

// `head` holds the model's name, version and the request's id; the outputs are added here. Each
// output's bytes become a slice of the message that owns the engine's buffer: they are not copied.
grpc::ByteBuffer EncodeInferResponse(inference::ModelInferResponse head,
                                     const ModelSignature& signature,
                                     std::vector<OutputTensor> outputs);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_RESPONSE_ENCODER_H_
