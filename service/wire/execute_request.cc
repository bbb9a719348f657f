// SPDX-License-Identifier: Apache-2.0
#include "service/wire/execute_request.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "service/wire/message_limits.h"
#include "service/wire/message_pieces.h"
#include "service/wire/primitive_decoder.h"

namespace tilewire::service {
namespace {

constexpr uint32_t kOutputsTag = 1 << 3 | 2;  // of ExecuteResponse
constexpr uint32_t kContentTag = 3 << 3 | 2;  // of Tensor
constexpr size_t kCopiedContentBytes = 1024;

absl::Status OfInput(int argument, absl::string_view problem) {
  return absl::InvalidArgumentError(absl::StrCat("input ", ArgName(argument), ": ", problem));
}

absl::StatusOr<PrimitiveInput> DecodeInput(const v1::Tensor& tensor,
                                           absl::Span<const absl::string_view> pieces) {
  absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(tensor.desc());
  if (!desc.ok()) return OfInput(tensor.argument(), desc.status().message());
  if (desc->IsAny()) return OfInput(tensor.argument(), "a tensor cannot have layout 'any'");
  int64_t bytes = 0;
  for (absl::string_view piece : pieces) bytes += static_cast<int64_t>(piece.size());
  if (bytes != desc->SizeBytes()) {
    return OfInput(tensor.argument(),
                   absl::StrCat(bytes, " bytes, its descriptor needs ", desc->SizeBytes()));
  }
  return PrimitiveInput{tensor.argument(), *std::move(desc), {pieces.begin(), pieces.end()}};
}

void AppendTensor(PrimitiveOutput output, AnswerPool* pool, MessagePieces* pieces) {
  v1::Tensor head;
  head.set_argument(output.arg);
  *head.mutable_desc() = EncodeMemoryDesc(output.desc);
  const size_t size = output.bytes.size();
  const size_t head_bytes = head.ByteSizeLong();
  const size_t content_head_bytes =
      size == 0 ? 0 : MessagePieces::FieldHeadBytes(kContentTag, size);
  pieces->AppendFieldHead(kOutputsTag, head_bytes + content_head_bytes + size);
  pieces->AppendMessage(head);
  if (size == 0) return;
  pieces->AppendFieldHead(kContentTag, size);
  if (size > kCopiedContentBytes) {
    pieces->AppendSlice(pool->AsSlice(std::move(output.bytes)));
    return;
  }
  std::memcpy(pieces->Append(size), output.bytes.data(), size);
  pool->Return(std::move(output.bytes));
}

}  // namespace

absl::Status ExecuteRequest::Parse(const grpc::ByteBuffer& bytes, CopyFilter copied) {
  if (bytes.Valid() && !bytes.Dump(&slices_).ok()) {
    return absl::InvalidArgumentError("the request cannot be decompressed");
  }
  ABSL_RETURN_IF_ERROR(WalkExecuteRequest(slices_, copied, &wire_));
  google::protobuf::io::ArrayInputStream fields(wire_.fields.data(), wire_.fields.size());
  ABSL_RETURN_IF_ERROR(CheckEntries(*v1::ExecuteRequest::descriptor(), &fields));
  if (!message_.ParseFromString(wire_.fields)) {
    return absl::InvalidArgumentError("the request is not a valid ExecuteRequest");
  }
  std::string().swap(wire_.fields);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<PrimitiveInput>> ExecuteRequest::Inputs(ByteBudget* budget) const {
  if (message_.inputs_size() > kMaxSources + 8) {
    return absl::InvalidArgumentError(absl::StrCat(message_.inputs_size(), " inputs are too many"));
  }
  std::vector<PrimitiveInput> inputs;
  for (int i = 0; i < message_.inputs_size(); ++i) {
    ABSL_ASSIGN_OR_RETURN(PrimitiveInput input, DecodeInput(message_.inputs(i), wire_.raw(i)));
    const bool twice = std::any_of(inputs.begin(), inputs.end(), [&](const PrimitiveInput& other) {
      return other.arg == input.arg;
    });
    if (twice) return OfInput(input.arg, "given twice");
    ABSL_RETURN_IF_ERROR(budget->Spend(input.desc.SizeBytes()));
    inputs.push_back(std::move(input));
  }
  return inputs;
}

absl::Status EncodeExecuteResponse(const v1::ExecuteResponse& answer,
                                   std::vector<PrimitiveOutput> outputs, int64_t max_bytes,
                                   AnswerPool* pool, grpc::ByteBuffer* response) {
  MessagePieces pieces;
  for (PrimitiveOutput& output : outputs) AppendTensor(std::move(output), pool, &pieces);
  pieces.AppendMessage(answer);
  pieces.MoveTo(response);
  if (static_cast<int64_t>(response->Length()) <= max_bytes) return absl::OkStatus();
  response->Clear();
  return absl::ResourceExhaustedError("the answer is larger than a message may be");
}

}  // namespace tilewire::service
