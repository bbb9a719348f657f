// SPDX-License-Identifier: Apache-2.0
#include "service/wire/response_encoder.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "protos/open_inference.pb.h"
#include "service/observe/steady_time.h"
#include "service/wire/message_pieces.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

constexpr uint32_t kRawOutputContentsTag = 6 << 3 | 2;
// Room for the names and shapes of an ordinary answer.
constexpr size_t kHeadBytes = 2048;

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

void EncodeInferResponse(const AnsweredModel& model, const ModelSignature& signature,
                         std::vector<OutputTensor> outputs, AnswerPool* pool,
                         const TimesOfRequest* times, grpc::ByteBuffer* response) {
  const absl::Time started = times != nullptr ? SteadyNow() : absl::Time();
  alignas(8) char head_bytes[kHeadBytes];
  google::protobuf::Arena arena(head_bytes, kHeadBytes);
  auto* head = google::protobuf::Arena::CreateMessage<inference::ModelInferResponse>(&arena);
  head->set_model_name(model.name);
  head->set_model_version(absl::StrCat(model.version));
  head->set_id(model.request_id);
  for (const OutputTensor& output : outputs) {
    AddOutput(output, signature.outputs[output.index], head);
  }
  MessagePieces pieces;
  pieces.AppendMessage(*head);
  for (OutputTensor& output : outputs) {
    const size_t size = output.bytes.size();
    pieces.AppendFieldHead(kRawOutputContentsTag, size);
    if (size > kCopiedBytes) {
      pieces.AppendSlice(pool->AsSlice(std::move(output.bytes)));
      continue;
    }
    if (size > 0) std::memcpy(pieces.Append(size), output.bytes.data(), size);
    pool->Return(std::move(output.bytes));
  }
  if (times != nullptr) AppendTimes(*times, SteadyNow() - started, &arena, &pieces);
  pieces.MoveTo(response);
}

}  // namespace tilewire::service
