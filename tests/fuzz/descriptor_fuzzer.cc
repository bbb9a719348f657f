// SPDX-License-Identifier: Apache-2.0
//
// A primitive's description, from a client's bytes to generated code: decoded, judged by the bounds
// that the service applies (smaller ones), and created, on AVX2 and with everything this machine
// has in turn. The first byte says which.
#include <cstdint>

#include "engine/base/check.h"
#include "engine/primitives/primitives.h"
#include "protos/tilewire.pb.h"
#include "service/wire/operation_count.h"
#include "service/wire/primitive_decoder.h"

namespace {

constexpr int64_t kMostBytes = 1 << 20;
constexpr double kMostOperations = 1e7;

void Create(const tilewire::v1::PrimitiveDesc& message, tilewire::cpu::Isa isa) {
  using namespace tilewire;
  const auto operation = service::DecodeOperation(message);
  const auto attributes = service::DecodeAttributes(message.attributes());
  if (!operation.ok() || !attributes.ok()) return;
  if (service::DescribedBytes(*operation) > kMostBytes) return;
  if (service::DescribedOperations(*operation) > kMostOperations) return;
  const auto primitive = CreatePrimitive(*operation, *attributes, {.max_isa = isa, .only = {}});
  if (!primitive.ok()) return;
  for (const ArgDesc& argument : (*primitive)->info().args) {
    TILEWIRE_CHECK(!argument.desc.IsAny(), "a created primitive has chosen its layouts");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  using tilewire::cpu::Isa;
  if (size == 0) return 0;
  tilewire::v1::PrimitiveDesc message;
  if (!message.ParseFromArray(bytes + 1, static_cast<int>(size - 1))) return 0;
  const Isa isa = bytes[0] % 2 == 0 ? tilewire::cpu::BestIsa() : Isa::kAvx2;
  if (tilewire::cpu::Supports(isa)) Create(message, isa);
  return 0;
}
