// SPDX-License-Identifier: Apache-2.0
//
// A ModelInfer request, from its bytes to the pieces that the engine reads. The first byte is the
// size of the slices. What is accepted must be exactly as large as its shape says, and hold what
// protobuf's own parser finds.
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "service/wire/request_decoder.h"
#include "tests/fuzz/slices.h"

namespace tilewire::service {
namespace {

ModelSignature Signature() {
  return {
      .inputs = {{"image", DataType::kF32, {-1, 2, 3, 4}},
                 {"row", DataType::kU8, {-1, 5}},
                 {"scale", DataType::kS8, {1}}},
      .outputs = {{"scores", DataType::kF32, {-1, 10}}, {"planes", DataType::kF32, {-1, 2, 3, 4}}}};
}

std::string Joined(const Pieces& pieces) {
  std::string all;
  for (absl::string_view piece : pieces) all.append(piece.data(), piece.size());
  return all;
}

void CheckBound(const InferRequest& request, const ModelSignature& signature,
                const inference::ModelInferRequest& whole) {
  TILEWIRE_CHECK(request.inputs().size() == signature.inputs.size(), "every input is bound");
  TILEWIRE_CHECK(!request.outputs().empty(), "some output is asked for");
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const InputTensor& input = request.inputs()[i];
    const std::string bytes = Joined(input.pieces);
    const int64_t expected = *ElementCount(input.dims) * SizeOf(signature.inputs[i].type);
    TILEWIRE_CHECK(static_cast<int64_t>(bytes.size()) == expected, "bytes as the shape says");
    if (whole.raw_input_contents_size() == 0) continue;
    for (int j = 0; j < whole.inputs_size(); ++j) {
      const bool is_it = whole.inputs(j).name() == signature.inputs[i].name;
      TILEWIRE_CHECK(!is_it || bytes == whole.raw_input_contents(j),
                     "bytes as protobuf reads them");
    }
  }
}

}  // namespace
}  // namespace tilewire::service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tilewire::service;
  static const tilewire::ModelSignature signature = Signature();
  if (size == 0) return 0;
  const absl::string_view message(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  InferRequest request;
  if (!request.Parse(tilewire::fuzz::InSlices(message, bytes[0])).ok()) return 0;
  inference::ModelInferRequest whole;
  TILEWIRE_CHECK(whole.ParseFromArray(message.data(), static_cast<int>(message.size())),
                 "protobuf reads what is accepted");
  TILEWIRE_CHECK(whole.model_name() == request.model_name(), "the name as protobuf reads it");
  if (request.Bind(signature).ok()) CheckBound(request, signature, whole);
  return 0;
}
