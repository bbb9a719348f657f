// SPDX-License-Identifier: Apache-2.0
//
// An Execute request, up to the engine's descriptors and the pieces of its tensors. The first byte
// is the size of the slices. What is accepted must hold what protobuf's own parser finds, and a
// layout must mean the same after it was written and read again.
#include <cstdint>
#include <string>

#include "engine/base/check.h"
#include "engine/memory/index_walk.h"
#include "protos/tilewire.pb.h"
#include "service/wire/execute_request.h"
#include "service/wire/operation_count.h"
#include "service/wire/primitive_decoder.h"
#include "tests/fuzz/slices.h"

namespace tilewire::service {
namespace {

constexpr int64_t kMostBytes = int64_t{64} << 20;
constexpr int64_t kMostPlaces = 4096;

// Strides that no element depends on may differ.
bool PlacesAgree(const MemoryDesc& one, const MemoryDesc& other) {
  if (one.dims() != other.dims() || one.data_type() != other.data_type()) return false;
  if (one.SizeBytes() != other.SizeBytes()) return false;
  if (one.ElementCount() > kMostPlaces) return true;
  bool agree = true;
  ForEachIndex(one.dims(), [&](const Dims& index) {
    agree = agree && one.Offset(index) == other.Offset(index);
  });
  return agree;
}

void CheckLayout(const v1::MemoryDesc& message) {
  const absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(message);
  if (!desc.ok() || desc->IsAny()) return;
  const absl::StatusOr<MemoryDesc> again = DecodeMemoryDesc(EncodeMemoryDesc(*desc));
  TILEWIRE_CHECK(again.ok() && PlacesAgree(*again, *desc), "a layout is written as it was read");
}

void CheckInputs(const ExecuteRequest& request, const v1::ExecuteRequest& whole) {
  TILEWIRE_CHECK(request.message().inputs_size() == whole.inputs_size(), "as many inputs");
  ByteBudget budget(kMostBytes);
  const absl::StatusOr<std::vector<PrimitiveInput>> inputs = request.Inputs(&budget);
  if (!inputs.ok()) return;
  for (int i = 0; i < whole.inputs_size(); ++i) {
    std::string bytes;
    for (absl::string_view piece : (*inputs)[i].pieces) bytes.append(piece.data(), piece.size());
    TILEWIRE_CHECK(bytes == whole.inputs(i).content(), "bytes as protobuf reads them");
  }
}

void CheckPrimitive(const v1::PrimitiveDesc& message) {
  const auto operation = DecodeOperation(message);
  const auto attributes = DecodeAttributes(message.attributes());
  if (!operation.ok() || !attributes.ok()) return;
  TILEWIRE_CHECK(DescribedBytes(*operation) >= 0, "bytes do not overflow");
  TILEWIRE_CHECK(DescribedOperations(*operation) >= 0, "operations do not overflow");
  TILEWIRE_CHECK(ReferenceOperations(*operation) >= 0, "nor those of the reference");
}

}  // namespace
}  // namespace tilewire::service

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using namespace tilewire::service;
  if (size == 0) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(bytes) + 1, size - 1);
  ExecuteRequest request;
  if (!request.Parse(tilewire::fuzz::InSlices(text, bytes[0])).ok()) return 0;
  tilewire::v1::ExecuteRequest whole;
  TILEWIRE_CHECK(whole.ParseFromArray(text.data(), static_cast<int>(text.size())),
                 "protobuf reads what is accepted");
  CheckInputs(request, whole);
  for (const tilewire::v1::Tensor& tensor : whole.inputs()) CheckLayout(tensor.desc());
  for (const tilewire::v1::WantedOutput& output : whole.outputs()) CheckLayout(output.desc());
  CheckPrimitive(whole.primitive());
  return 0;
}
