// SPDX-License-Identifier: Apache-2.0
#include "service/wire/response_encoder.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/arena.h"
#include "protos/open_inference.pb.h"
#include "service/observe/steady_time.h"
#include "service/wire/classification.h"
#include "service/wire/message_pieces.h"
#include "service/wire/status_text.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

constexpr uint32_t kRawOutputContentsTag = 6 << 3 | 2;
constexpr uint32_t kInferResponseTag = 2 << 3 | 2;  // of a ModelStreamInferResponse
// Room for the names and shapes of an ordinary answer.
constexpr size_t kHeadBytes = 2048;

bool IsClassified(const AnswerForm& form, size_t output) {
  return output < form.classes.size() && form.classes[output] > 0;
}

void AddOutput(const OutputTensor& output, const TensorSpec& spec,
               inference::ModelInferResponse* head) {
  inference::ModelInferResponse::InferOutputTensor* message = head->add_outputs();
  message->set_name(spec.name);
  const absl::string_view datatype = DatatypeName(spec.type);
  message->set_datatype(datatype.data(), datatype.size());
  for (int64_t dim : FromLogical(output.dims, output.layout)) message->add_shape(dim);
  if (output.layout == Layout::kNhwc) {
    (*message->mutable_parameters())["layout"].set_string_param("nhwc");
  }
}

// The classes in the place of the output's values, which go back to the pool.
absl::Status PutClasses(const AnswerForm& form, int64_t most, const TensorSpec& spec,
                        AnswerPool* pool, OutputTensor* output,
                        inference::ModelInferResponse* head) {
  const std::vector<absl::string_view> labels =
      form.labels ? form.labels(output->index) : std::vector<absl::string_view>();
  const auto charge = [&form](int64_t bytes) {
    return form.charge ? form.charge(bytes) : absl::OkStatus();
  };
  absl::StatusOr<Classes> classes = Classify(*output, spec, most, labels, charge);
  if (!classes.ok()) {
    return absl::Status(classes.status().code(),
                        absl::StrCat("output '", spec.name, "': ", classes.status().message()));
  }
  inference::ModelInferResponse::InferOutputTensor* message = head->add_outputs();
  message->set_name(spec.name);
  message->set_datatype("BYTES");
  for (int64_t dim : classes->shape) message->add_shape(dim);
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer text, pool->Take(classes->bytes.size()));
  classes->bytes.copy(reinterpret_cast<char*>(text.data()), classes->bytes.size());
  pool->Return(std::exchange(output->bytes, std::move(text)));
  return absl::OkStatus();
}

void AppendOutput(AlignedBuffer bytes, AnswerPool* pool, MessagePieces* pieces) {
  const size_t size = bytes.size();
  pieces->AppendFieldHead(kRawOutputContentsTag, size);
  if (size > kCopiedBytes) return pieces->AppendSlice(pool->AsSlice(std::move(bytes)));
  if (size > 0) std::memcpy(pieces->Append(size), bytes.data(), size);
  pool->Return(std::move(bytes));
}

// A message of its own, which readers merge into the one before it: the outputs have been encoded.
void AppendTimes(const TimesOfRequest& times, absl::Duration encode, google::protobuf::Arena* arena,
                 MessagePieces* pieces) {
  auto* tail = google::protobuf::Arena::CreateMessage<inference::ModelInferResponse>(arena);
  for (const auto& [name, time] : {std::pair{"queue_us", times.queue},
                                   {"compute_us", times.compute},
                                   {"reorder_us", times.reorder},
                                   {"encode_us", encode}})
    (*tail->mutable_parameters())[name].set_int64_param(absl::ToInt64Microseconds(time));
  pieces->AppendMessage(*tail);
}

}  // namespace

absl::Status EncodeInferResponse(const AnsweredModel& model, const ModelSignature& signature,
                                 std::vector<OutputTensor> outputs, const AnswerForm& form,
                                 AnswerPool* pool, grpc::ByteBuffer* response) {
  const absl::Time started = form.times != nullptr ? SteadyNow() : absl::Time();
  alignas(8) char head_bytes[kHeadBytes];
  google::protobuf::Arena arena(head_bytes, kHeadBytes);
  auto* head = google::protobuf::Arena::CreateMessage<inference::ModelInferResponse>(&arena);
  head->set_model_name(model.name);
  head->set_model_version(absl::StrCat(model.version));
  head->set_id(model.request_id);
  if (form.says_final) (*head->mutable_parameters())["triton_final_response"].set_bool_param(true);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorSpec& spec = signature.outputs[outputs[i].index];
    if (!IsClassified(form, i)) {
      AddOutput(outputs[i], spec, head);
    } else {
      ABSL_RETURN_IF_ERROR(PutClasses(form, form.classes[i], spec, pool, &outputs[i], head));
    }
  }
  MessagePieces pieces;
  pieces.AppendMessage(*head);
  for (OutputTensor& output : outputs) AppendOutput(std::move(output.bytes), pool, &pieces);
  if (form.times != nullptr) AppendTimes(*form.times, SteadyNow() - started, &arena, &pieces);
  if (form.in_stream) pieces.WrapIn(kInferResponseTag);
  pieces.MoveTo(response);
  return absl::OkStatus();
}

grpc::ByteBuffer EncodeStreamError(const std::string& id, const absl::Status& status) {
  inference::ModelStreamInferResponse message;
  message.set_error_message(ToGrpcStatus(status).error_message());
  if (message.error_message().empty()) {
    message.set_error_message(absl::StatusCodeToString(status.code()));
  }
  if (!id.empty()) message.mutable_infer_response()->set_id(id);
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace tilewire::service
