// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/lowering.h"

#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/progress.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/weighted/bf16_values.h"
#include "engine/network/network_check.h"
#include "engine/network/value_uses.h"

namespace tilewire::lowering {
namespace {

// Whether all rows that the context names are of layers that can take one.
absl::Status CheckRows(const network::Network& network, const LoweringContext& context) {
  if (context.tries_rows) return absl::OkStatus();
  for (const auto& [name, row] : context.node_rows) {
    const auto takes_row = [&](const network::Operation& operation) {
      return operation.name == name &&
             (std::holds_alternative<network::Convolution>(operation.params) ||
              std::holds_alternative<network::InnerProduct>(operation.params));
    };
    if (absl::c_any_of(network.operations, takes_row)) continue;
    return InvalidArgument("node '", name, "': the row '", row,
                           "' that it is to take does not fit: no convolution or product with "
                           "known weights has this name");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> LowerNetwork(const network::Network& network,
                                                         const LoweringContext& context) {
  ABSL_RETURN_IF_ERROR(network::CheckNetwork(network));
  ABSL_RETURN_IF_ERROR(CheckRows(network, context));
  ValueFacts facts{.uses = network::ValueUses(network)};
  facts.is_bf16 = Bf16Values(network, facts.uses, context);
  PlanBuilder plan(network, std::move(facts), context);
  for (const network::Operation& operation : network.operations) {
    if (context.between_operations) ABSL_RETURN_IF_ERROR(context.between_operations());
    ReportProgress("planning node", operation.name);
    OperationContext operation_context(network, operation, &plan);
    const absl::Status status = RowOf(operation).lower(operation, operation_context);
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("node '", operation.name, "': ", status.message()));
    }
  }
  return plan.Finish();
}

}  // namespace tilewire::lowering
