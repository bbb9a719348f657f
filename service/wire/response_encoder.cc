// SPDX-License-Identifier: Apache-2.0
#include "service/wire/response_encoder.h"

#include <cstdlib>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

constexpr uint32_t kRawOutputContentsTag = 6 << 3 | 2;

// Field number and length of a raw entry.
void AppendEntryHead(size_t size, std::string* head) {
  using google::protobuf::io::CodedOutputStream;
  uint8_t bytes[16];
  uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kRawOutputContentsTag, bytes);
  end = CodedOutputStream::WriteVarint64ToArray(size, end);
  head->append(reinterpret_cast<const char*>(bytes), end - bytes);
}

void AddOutput(const OutputTensor& output, const TensorSpec& spec,
               inference::ModelInferResponse* head) {
  inference::ModelInferResponse::InferOutputTensor* message = head->add_outputs();
  message->set_name(spec.name);
  message->set_datatype(std::string(DatatypeName(spec.type)));
  for (int64_t dim : FromLogical(output.dims, output.layout)) message->add_shape(dim);
  if (output.layout == Layout::kNhwc) {
    (*message->mutable_parameters())["layout"].set_string_param("nhwc");
  }
}

}  // namespace

grpc::ByteBuffer EncodeInferResponse(inference::ModelInferResponse head,
                                     const ModelSignature& signature,
                                     std::vector<OutputTensor> outputs) {
  for (const OutputTensor& output : outputs) {
    AddOutput(output, signature.outputs[output.index], &head);
  }
  std::string pending = head.SerializeAsString();
  std::vector<grpc::Slice> slices;
  for (OutputTensor& output : outputs) {
    const size_t size = output.bytes.size();
    AppendEntryHead(size, &pending);
    if (size == 0) continue;
    slices.emplace_back(pending);
    pending.clear();
    slices.emplace_back(output.bytes.Release(), size, &std::free);
  }
  if (!pending.empty() || slices.empty()) slices.emplace_back(pending);
  return grpc::ByteBuffer(slices.data(), slices.size());
}

}  // namespace tilewire::service
