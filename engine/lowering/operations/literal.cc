// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/memory/element_types.h"

namespace tilewire::lowering {
namespace {

template <typename T, typename Elements>
void Store(const Elements& elements, std::byte* to) {
  for (const auto element : elements) {
    const T stored = static_cast<T>(element);
    std::memcpy(to, &stored, sizeof(T));
    to += sizeof(T);
  }
}

// The elements, which `type` holds, as it holds them.
void StoreAs(DataType type, const network::Constant& constant, std::byte* to) {
  if (constant.count() == 0) return;
  if (type == DataType::kBool) return Store<uint8_t>(constant.ints, to);
  if (type == DataType::kF32) return Store<float>(constant.floats, to);
  if (type == DataType::kF64 && constant.doubles != nullptr)
    return Store<double>(*constant.doubles, to);
  VisitIntegerOrDouble(type, [&](auto element) {
    using T = decltype(element);
    constant.is_float ? Store<T>(constant.floats, to) : Store<T>(constant.ints, to);
  });
}

}  // namespace

// A constant place, no step. Large tables of the model's file are in memory once, shared by all
// plans of the model.
absl::Status LowerLiteral(const network::Literal& literal, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, context.RowMajorDesc(context.dst()));
  std::shared_ptr<const AlignedBuffer> bytes;
  const bool is_f32 = desc.data_type() == DataType::kF32;
  if (is_f32 && literal.constant->stored != nullptr && literal.constant->quantized == nullptr) {
    network::Weights table;
    table.key = literal.constant->name;
    table.dims = context.dst_value().dims;
    table.stored = literal.constant->stored;
    const LoweringContext& settings = context.settings();
    ABSL_ASSIGN_OR_RETURN(bytes, settings.weights->Pack(table, desc, settings.team));
  } else {
    ABSL_ASSIGN_OR_RETURN(const network::ConstantPtr constant, network::InMemory(literal.constant));
    ABSL_ASSIGN_OR_RETURN(AlignedBuffer copy, AlignedBuffer::Allocate(desc.SizeBytes()));
    StoreAs(desc.data_type(), *constant, copy.data());
    context.plan().CountOwn(copy);
    bytes = std::make_shared<const AlignedBuffer>(std::move(copy));
  }
  return context.BindResult(context.plan().ConstantPlace(desc, std::move(bytes)));
}

}  // namespace tilewire::lowering
