// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// A constant place, no step. Large tables of the model's file are in memory once, shared by all
// plans of the model.
absl::Status LowerLiteral(const graph::Literal& literal, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, context.RowMajorDesc(context.dst()));
  std::shared_ptr<const AlignedBuffer> bytes;
  if (literal.constant->stored != nullptr && literal.constant->quantized == nullptr) {
    graph::Weights table;
    table.key = literal.constant->name;
    table.dims = context.dst_value().dims;
    table.stored = literal.constant->stored;
    const LoweringContext& settings = context.settings();
    ABSL_ASSIGN_OR_RETURN(bytes, settings.weights->Pack(table, desc, settings.team));
  } else {
    ABSL_ASSIGN_OR_RETURN(const graph::ConstantPtr constant, graph::InMemory(literal.constant));
    ABSL_ASSIGN_OR_RETURN(AlignedBuffer copy, AlignedBuffer::Allocate(desc.SizeBytes()));
    std::memcpy(copy.data(), constant->floats.data(), copy.size());
    bytes = std::make_shared<const AlignedBuffer>(std::move(copy));
  }
  context.BindResult(context.plan().ConstantPlace(desc, std::move(bytes)));
  return absl::OkStatus();
}

}  // namespace tilewire::lowering
