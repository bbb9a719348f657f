// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a ModelInferRequest to what the engine runs. Everything that a client can get
// wrong is found here and answered with kInvalidArgument: what, which value, what is allowed.
// Thread-compatible.
#ifndef SERVICE_WIRE_REQUEST_DECODER_H_
#define SERVICE_WIRE_REQUEST_DECODER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model.h"
#include "grpcpp/support/byte_buffer.h"
#include "protos/open_inference.pb.h"
#include "service/wire/wire_walk.h"

namespace tilewire::service {

// A request that is well-formed by itself. Not movable: pieces point into it.
class InferRequest {
 public:
  InferRequest() = default;
  InferRequest(const InferRequest&) = delete;

  // Once, before anything else. The bytes of raw_input_contents are not copied.
  absl::Status Parse(const grpc::ByteBuffer& bytes);

  const std::string& model_name() const { return message_.model_name(); }
  const std::string& model_version() const { return message_.model_version(); }
  const std::string& id() const { return message_.id(); }

  // The parameter `priority`: 1 is the highest, 0 (and none) stands for 2. Higher is served first.
  int priority() const { return -priority_; }
  // The parameter `timeout`, in microseconds; infinite where there is none. After Bind().
  absl::Duration timeout() const { return timeout_; }

  // Fits the request to a model. The pieces live as long as this object.
  absl::Status Bind(const ModelSignature& signature);

  const std::vector<InputTensor>& inputs() const { return inputs_; }  // in the signature's order
  const std::vector<OutputRequest>& outputs() const { return outputs_; }  // never empty

 private:
  absl::Status BindInput(int index, const ModelSignature& signature, std::vector<bool>* seen);
  absl::StatusOr<Pieces> InputPieces(int index, DataType type, int64_t elements);
  absl::Status BindOutputs(const ModelSignature& signature);
  absl::Status ReadParameters();

  std::vector<grpc::Slice> slices_;
  inference::ModelInferRequest message_;
  std::vector<Pieces> raw_;
  std::vector<std::unique_ptr<std::string>>
      converted_;  // typed contents that are narrower on the wire
  std::vector<InputTensor> inputs_;
  std::vector<OutputRequest> outputs_;
  int priority_ = 2;
  absl::Duration timeout_ = absl::InfiniteDuration();
};

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_REQUEST_DECODER_H_
