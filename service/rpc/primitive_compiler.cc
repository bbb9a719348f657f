// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/primitive_compiler.h"

#include <utility>
#include <variant>

#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "service/wire/byte_budget.h"
#include "service/wire/operation_count.h"
#include "service/wire/primitive_decoder.h"

namespace tilewire::service {
namespace {

// All layouts of a primitive's tensors together, in messages of the largest size.
constexpr int64_t kTensorBytesPerMessageByte = 8;
constexpr int64_t kCatalogBytes = int64_t{64} << 20;

}  // namespace

PrimitiveCompiler::PrimitiveCompiler(Engine* engine, int64_t max_message_bytes,
                                     const PrimitiveLimits& limits)
    : engine_(engine),
      max_tensor_bytes_(kTensorBytesPerMessageByte * max_message_bytes),
      limits_(limits),
      catalog_(engine->options().max_isa, kCatalogBytes) {}

absl::StatusOr<PrimitiveCompiler::Described> PrimitiveCompiler::Describe(
    const v1::PrimitiveDesc& message) const {
  ABSL_ASSIGN_OR_RETURN(OpDesc operation, DecodeOperation(message));
  ABSL_ASSIGN_OR_RETURN(Attributes attributes, DecodeAttributes(message.attributes()));
  ABSL_RETURN_IF_ERROR(ByteBudget(max_tensor_bytes_).Spend(DescribedBytes(operation)));
  const double operations = DescribedOperations(operation);
  if (operations > limits_.max_operations) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("the primitive computes %.3g operations, at most %.3g are allowed "
                        "(--max_operations)",
                        operations, limits_.max_operations));
  }
  return catalog_.Describe(std::move(operation), std::move(attributes));
}

absl::StatusOr<PrimitiveCompiler::Described> PrimitiveCompiler::WithWorkspaceOf(
    const std::string& forward_id, const Described& described) {
  ABSL_ASSIGN_OR_RETURN(Described forward, Find(forward_id));
  ABSL_ASSIGN_OR_RETURN(const Compiled compiled, Compile(std::move(forward)));
  OpDesc operation = described->operation;
  const bool takes = std::visit(
      [&compiled](auto& desc) {
        if constexpr (requires { desc.workspace; }) {
          if (!IsBackward(desc.prop_kind) || !desc.workspace.IsZero()) return false;
          desc.workspace = compiled.found.primitive->Desc(kArgWorkspace);
          return true;
        }
        return false;
      },
      operation);
  if (!takes) {
    return absl::InvalidArgumentError(
        "a forward_id is for a primitive that runs backward, reads a workspace and brings none");
  }
  return catalog_.Describe(std::move(operation), described->attributes);
}

absl::StatusOr<PrimitiveCompiler::Compiled> PrimitiveCompiler::Compile(Described described) {
  Compiled compiled;
  ABSL_ASSIGN_OR_RETURN(compiled.found, engine_->primitives().GetPrimitive(described->operation,
                                                                           described->attributes));
  const PrimitiveInfo& info = compiled.found.primitive->info();
  const double operations = ReferenceOperations(described->operation);
  if (info.traits.is_reference && operations > limits_.max_reference_operations) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "only %s takes this primitive, which computes %.3g operations; at most %.3g are allowed "
        "for reference implementations (--max_reference_operations)",
        info.name, operations, limits_.max_reference_operations));
  }
  ByteBudget budget(max_tensor_bytes_);
  ABSL_RETURN_IF_ERROR(budget.Spend(info.scratchpad_bytes));
  for (const ArgDesc& arg : info.args) ABSL_RETURN_IF_ERROR(budget.Spend(arg.desc.SizeBytes()));
  ABSL_RETURN_IF_ERROR(catalog_.Remember(described));
  compiled.described = std::move(described);
  return compiled;
}

}  // namespace tilewire::service
