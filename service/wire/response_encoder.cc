// SPDX-License-Identifier: Apache-2.0
#include "service/wire/response_encoder.h"

#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
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

// The output as classes: what it was is not needed any more.
absl::Status AddClasses(const OutputTensor& output, const TensorSpec& spec, int64_t most,
                        const AnswerForm& form, inference::ModelInferResponse* head,
                        std::string* bytes) {
  const std::vector<absl::string_view> labels =
      form.labels ? form.labels(output.index) : std::vector<absl::string_view>();
  absl::StatusOr<Classes> classes = Classify(output, spec.type, most, labels);
  if (!classes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("output '", spec.name, "': ", classes.status().message()));
  }
  inference::ModelInferResponse::InferOutputTensor* message = head->add_outputs();
  message->set_name(spec.name);
  message->set_datatype("BYTES");
  message->add_shape(classes->rows);
  message->add_shape(classes->per_row);
  *bytes = std::move(classes->bytes);
  return absl::OkStatus();
}

void AppendBytes(absl::string_view bytes, MessagePieces* pieces) {
  if (!bytes.empty()) std::memcpy(pieces->Append(bytes.size()), bytes.data(), bytes.size());
}

void AppendOutput(AlignedBuffer bytes, AnswerPool* pool, MessagePieces* pieces) {
  const size_t size = bytes.size();
  pieces->AppendFieldHead(kRawOutputContentsTag, size);
  if (size > kCopiedBytes) return pieces->AppendSlice(pool->AsSlice(std::move(bytes)));
  AppendBytes({reinterpret_cast<const char*>(bytes.data()), size}, pieces);
  pool->Return(std::move(bytes));
}

// Puts the message that `response` holds into a ModelStreamInferResponse.
void WrapForStream(grpc::ByteBuffer* response) {
  std::vector<grpc::Slice> slices;
  response->Dump(&slices).ok();
  MessagePieces pieces;
  pieces.AppendFieldHead(kInferResponseTag, response->Length());
  for (grpc::Slice& slice : slices) pieces.AppendSlice(std::move(slice));
  pieces.MoveTo(response);
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
  absl::InlinedVector<std::string, 4> classes(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorSpec& spec = signature.outputs[outputs[i].index];
    if (!IsClassified(form, i)) {
      AddOutput(outputs[i], spec, head);
    } else {
      ABSL_RETURN_IF_ERROR(AddClasses(outputs[i], spec, form.classes[i], form, head, &classes[i]));
    }
  }
  MessagePieces pieces;
  pieces.AppendMessage(*head);
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!IsClassified(form, i)) {
      AppendOutput(std::move(outputs[i].bytes), pool, &pieces);
      continue;
    }
    pool->Return(std::move(outputs[i].bytes));
    pieces.AppendFieldHead(kRawOutputContentsTag, classes[i].size());
    AppendBytes(classes[i], &pieces);
  }
  if (form.times != nullptr) AppendTimes(*form.times, SteadyNow() - started, &arena, &pieces);
  pieces.MoveTo(response);
  if (form.in_stream) WrapForStream(response);
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
