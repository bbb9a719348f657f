// SPDX-License-Identifier: Apache-2.0
//
// From the bytes of a ModelInferRequest to what the engine runs. Everything that a client can get
// wrong is found here and answered with kInvalidArgument: what, which value, what is allowed.
// Thread-compatible.
#ifndef SERVICE_WIRE_REQUEST_DECODER_H_
#define SERVICE_WIRE_REQUEST_DECODER_H_

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model.h"
#include "google/protobuf/arena.h"
#include "grpcpp/support/byte_buffer.h"
#include "protos/open_inference.pb.h"
#include "service/wire/wire_walk.h"

namespace tilewire::service {

// A request that is well-formed by itself. May be used for one request after the other, and keeps
// what memory an ordinary one needs. Not movable: pieces point into it.
class InferRequest {
 public:
  InferRequest() = default;
  InferRequest(const InferRequest&) = delete;

  // Before anything else. The bytes of raw_input_contents are not copied; of other large fields a
  // copy exists until this returns.
  absl::Status Parse(const grpc::ByteBuffer& bytes, CopyFilter copied = AnyCopy);
  // Lets go of the request's bytes.
  void Clear();

  const std::string& model_name() const { return message_->model_name(); }
  const std::string& model_version() const { return message_->model_version(); }
  const std::string& id() const { return message_->id(); }
  bool parsed() const { return message_ != nullptr; }

  // The parameter `priority`: 1 is the highest; 0, none and numbers beyond 2^31-1 stand
  // for 2. Higher is served first.
  int priority() const { return -priority_; }
  // The parameter `timeout`, in microseconds; infinite where there is none. After Bind().
  absl::Duration timeout() const { return timeout_; }
  // The parameter `timing`: the answer is to say where its time went. After Bind().
  bool timing() const { return timing_; }
  // The parameter `triton_enable_empty_final_response`: the answer is to say that it is the only
  // one. After Bind().
  bool asks_for_final() const { return asks_for_final_; }

  // The bytes that it holds beyond those of its message. After Bind().
  int64_t BytesBeyondMessage() const;

  // Fits the request to a model. The pieces live as long as this object.
  absl::Status Bind(const ModelSignature& signature);

  const std::vector<InputTensor>& inputs() const { return inputs_; }  // in the signature's order
  // For what makes them another signature's.
  std::vector<InputTensor>* mutable_inputs() { return &inputs_; }
  const std::vector<OutputRequest>& outputs() const { return outputs_; }  // never empty
  // The parameter `classification` of each of these; 0: its values are asked for.
  const std::vector<int64_t>& classes() const { return classes_; }

 private:
  // Room for an ordinary request in protobuf's memory, and for its tensors and slices. Memory that
  // a larger one took is not kept.
  static constexpr size_t kArenaBytes = 4096;
  static constexpr size_t kKeptPieces = 256;
  using Seen = absl::InlinedVector<bool, 16>;

  absl::Status BindInput(int index, const ModelSignature& signature, Seen* seen);
  absl::Status BindInputTo(int index, const TensorSpec& spec, InputTensor* bound);
  absl::Status BindPieces(int index, DataType type, int64_t elements, Pieces* pieces);
  absl::Status BindOutputs(const ModelSignature& signature);
  absl::StatusOr<OutputRequest> BindOutput(
      const inference::ModelInferRequest::InferRequestedOutputTensor& output,
      const ModelSignature& signature, Seen* seen);
  // 0: not classified.
  static absl::StatusOr<int64_t> BindClasses(
      const inference::ModelInferRequest::InferRequestedOutputTensor& output,
      const TensorSpec& spec);
  absl::Status ReadParameters();

  alignas(8) std::array<char, kArenaBytes> arena_bytes_;
  std::optional<google::protobuf::Arena> arena_;
  inference::ModelInferRequest* message_ = nullptr;  // in the arena
  int64_t message_bytes_ = 0;
  std::vector<grpc::Slice> slices_;
  WireRequest wire_;
  std::vector<std::unique_ptr<std::string>>
      converted_;  // typed contents that are narrower on the wire
  std::vector<InputTensor> inputs_;
  std::vector<OutputRequest> outputs_;
  std::vector<int64_t> classes_;
  int priority_ = 2;
  absl::Duration timeout_ = absl::InfiniteDuration();
  bool timing_ = false, asks_for_final_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_REQUEST_DECODER_H_
