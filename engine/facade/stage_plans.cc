// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/stage_plans.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/lowering.h"
#include "engine/primitives/verbose.h"
#include "engine/runtime/page_release.h"

namespace tilewire {
namespace {

CreateOptions PrimitiveOptions(const EngineOptions& options) {
  return {.max_isa = options.max_isa, .only = {}};
}

bool IsEndOfARequest(const absl::Status& status) {
  return absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

// "node_a (NonZero) node_b (Loop) 2 tensors"
std::string EndOf(const reader::Cut& cut) {
  std::string end;
  for (const reader::Node* node : cut.late)
    absl::StrAppend(&end, end.empty() ? "" : " ", node->name(), " (", node->op(), ")");
  if (!cut.known.empty())
    absl::StrAppend(&end, end.empty() ? "" : " ", cut.known.size(), " tensors");
  return end;
}

}  // namespace

StagePlans::StagePlans(EngineShared* shared, bool elements_decide_sizes, LayerOptions layers)
    : shared_(*shared),
      elements_decide_sizes_(elements_decide_sizes),
      layers_(std::move(layers)),
      weights_(&shared->cache, PrimitiveOptions(shared->options)),
      plans_({.values = kPlans,
              .bytes = shared->options.plan_bytes,
              .bytes_of = [](const PlannedStage& stage) { return stage.HeldBytes(); }}) {}

absl::StatusOr<PlannedStagePtr> StagePlans::GetOrMake(
    const Key& key, const LoadOptions& options,
    absl::FunctionRef<absl::StatusOr<reader::Stage>()> build) {
  while (true) {
    bool is_own = false;
    absl::StatusOr<PlannedStagePtr> stage = plans_.GetOrMake(key, [&] {
      is_own = true;
      return Make(options, build);
    });
    if (stage.ok() || is_own || !IsEndOfARequest(stage.status())) return stage;
    if (options.between_steps) ABSL_RETURN_IF_ERROR(options.between_steps());
  }
}

absl::StatusOr<PlannedStagePtr> StagePlans::Make(
    const LoadOptions& options, absl::FunctionRef<absl::StatusOr<reader::Stage>()> build) {
  const absl::Time start = absl::Now();
  ABSL_ASSIGN_OR_RETURN(reader::Stage stage, build());
  auto planned = std::make_unique<PlannedStage>();
  planned->cut = std::move(stage.cut);
  const bool runs = planned->cut == nullptr || !stage.network.outputs.empty();
  if (runs) {
    ABSL_ASSIGN_OR_RETURN(planned->plan, Lower(stage.network, options));
    planned->times = std::make_shared<runtime::StepTimes>(*planned->plan);
  }
  if (planned->cut != nullptr) ++shared_.stage_plans;
  if (planned->cut != nullptr && VerboseLevel() >= 2)
    WriteStageLine(EndOf(*planned->cut), runs ? planned->plan->steps.size() : 0,
                   absl::Now() - start);
  return runs ? Counted(std::move(planned), absl::Now() - start) : std::move(planned);
}

PlannedStagePtr StagePlans::Counted(std::unique_ptr<PlannedStage> built, absl::Duration building) {
  ++shared_.plans_built;
  ++shared_.plans_kept;
  shared_.plan_building_ns += absl::ToInt64Nanoseconds(building);
  return PlannedStagePtr(built.release(), [shared = &shared_](const PlannedStage* stage) {
    delete stage;
    --shared->plans_kept;
  });
}

absl::StatusOr<std::shared_ptr<const runtime::Plan>> StagePlans::Lower(
    const network::Network& network, const LoadOptions& options) {
  lowering::LoweringContext context;
  context.cache = &shared_.cache;
  context.weights = &weights_;
  context.options = PrimitiveOptions(shared_.options);
  context.convolution_algorithm = shared_.options.convolution_algorithm;
  context.precision = layers_.precision;
  context.node_precisions = layers_.node_precisions;
  context.node_rows = layers_.node_rows;
  context.tries_rows = layers_.tries_rows;
  context.team = options.serial ? threading::Team::Serial() : threading::Team(&shared_.arena);
  context.requests_decide_sizes = elements_decide_sizes_;
  context.between_operations = options.between_steps;
  return lowering::LowerNetwork(network, context);
}

void StagePlans::Release(absl::FunctionRef<void()> between) const {
  weights_.Release(between);
  for (const Key& key : plans_.Keys()) {
    const PlannedStagePtr stage = plans_.Peek(key);
    if (stage == nullptr || stage->plan == nullptr) continue;
    for (const auto& constant : stage->plan->constants) runtime::ReleasePages(*constant, between);
  }
}

}  // namespace tilewire
