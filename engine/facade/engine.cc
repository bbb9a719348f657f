// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <malloc.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/diagnostics.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/cores.h"
#include "engine/facade/loaded_model.h"
#include "engine/facade/primitive_execution.h"
#include "engine/jit/fma_peak.h"
#include "engine/jit/generator.h"
#include "engine/primitive_engine.h"
#include "engine/tuning/tuned_source.h"
#include "engine/tuning_text.h"
#include "spdlog/spdlog.h"

namespace tilewire {
namespace {

constexpr int kMaxThreads = 1024;

absl::StatusOr<EngineOptions> Resolve(EngineOptions options) {
  if (!options.diagnostics) {
    ABSL_RETURN_IF_ERROR(DiagnosticsOfEnvironment().status());
    options.diagnostics = ActiveDiagnostics();
  }
  ABSL_RETURN_IF_ERROR(ParseVerboseLevel(absl::StrCat(options.diagnostics->verbose)).status());
  ABSL_RETURN_IF_ERROR(jit::CheckDumpFolder(options.diagnostics->dump_jit));
  if (options.threads < 0 || options.threads > kMaxThreads) {
    return InvalidArgument("threads: ", options.threads, ", allowed 0 to ", kMaxThreads);
  }
  if (options.threads_per_request < 0 || options.threads_per_request > kMaxThreads) {
    return InvalidArgument("threads per request: ", options.threads_per_request, ", allowed 0 to ",
                           kMaxThreads);
  }
  if (options.primitive_cache_bytes < 0) {
    return InvalidArgument("primitive cache: ", options.primitive_cache_bytes, " bytes");
  }
  if (options.plan_bytes < 0) {
    return InvalidArgument("plans: ", options.plan_bytes, " bytes");
  }
  if (!cpu::Supports(options.max_isa)) {
    return InvalidArgument("this CPU has no ", cpu::IsaName(options.max_isa));
  }
  if (options.threads == 0) options.threads = cpu::GrantedCores();
  if (options.threads_per_request == 0) options.threads_per_request = options.threads;
  options.threads_per_request = std::min(options.threads_per_request, options.threads);
  return options;
}

class RealEngine final : public Engine, public PrimitiveEngine {
 public:
  explicit RealEngine(const EngineOptions& resolved)
      : shared_(std::make_shared<EngineShared>(resolved)) {}

  absl::StatusOr<std::shared_ptr<const Model>> LoadModel(const std::string& path,
                                                         const LoadOptions& options) override {
    LoadOptions named = options;
    if (named.name.empty()) named.name = path;
    if (options.takes_tuning) {
      ABSL_ASSIGN_OR_RETURN(auto tuned, tuning::OpenTuned(path));
      if (tuned) return CreateTuned(*std::move(tuned), std::move(named));
    }
    ABSL_ASSIGN_OR_RETURN(auto source, reader::OnnxModel::Open(path));
    return LoadedModel::Create(std::move(source), shared_, named);
  }

  absl::StatusOr<PrimitiveCache::Found> GetPrimitive(const OpDesc& desc,
                                                     const Attributes& attributes) override {
    Attributes user_mode = attributes;
    user_mode.scratchpad_mode = ScratchpadMode::kUser;
    const CreateOptions create{.max_isa = options().max_isa, .only = {}};
    const auto* convolution = std::get_if<ConvolutionDesc>(&desc);
    if (convolution == nullptr || convolution->algorithm != ConvolutionAlgorithm::kAuto) {
      return shared_->cache.GetOrCreate(desc, user_mode, create);
    }
    ConvolutionDesc decided = *convolution;
    decided.algorithm = options().convolution_algorithm;
    return shared_->cache.GetOrCreate(decided, user_mode, create);
  }

  absl::StatusOr<PrimitiveTimes> ExecutePrimitive(const Primitive& primitive,
                                                  absl::Span<const PrimitiveInput> inputs,
                                                  absl::Span<PrimitiveOutput> outputs,
                                                  const RunOptions& run) override {
    return ExecuteWithReorders(primitive, inputs, outputs,
                               {.cache = &shared_->cache,
                                .scratchpads = &shared_->scratchpads,
                                .team = shared_->TeamFor(run),
                                .max_isa = options().max_isa,
                                .interrupted = run.interrupted,
                                .max_output_bytes = run.max_output_bytes,
                                .reserve = run.reserve,
                                .allocate_output = run.allocate_output});
  }

  Peak MeasurePeak() const override {
    const int threads = options().threads_per_request;
    return {.gflops = threads * jit::MeasureFmaPeak(options().max_isa), .threads = threads};
  }

  void FreeIdleMemory(absl::Duration unused_for) override {
    const int64_t freed = shared_->scratchpads.FreeIdle(unused_for);
    if (freed > 0 || unused_for == absl::ZeroDuration()) malloc_trim(0);
  }

  void BoundPooledMemory(int64_t bytes) override { shared_->scratchpads.Bound(bytes); }
  void CountBesidePooled(int64_t more) override { shared_->scratchpads.CountBeside(more); }

  CacheStatistics cache_statistics() const override { return shared_->cache.Statistics(); }
  StageCounts stage_counts() const override {
    return {.plans = shared_->stage_plans, .runs = shared_->staged_runs};
  }
  PlanCounts plan_counts() const override {
    return {.kept = shared_->plans_kept,
            .built = shared_->plans_built,
            .building = absl::Nanoseconds(shared_->plan_building_ns.load())};
  }
  PrimitiveEngine& primitives() override { return *this; }
  threading::Arena& arena() override { return shared_->arena; }
  std::shared_ptr<EngineShared> shared() override { return shared_; }
  const EngineOptions& options() const override { return shared_->options; }

 private:
  absl::StatusOr<std::shared_ptr<const Model>> CreateTuned(tuning::TunedSource tuned,
                                                           LoadOptions options) {
    const TuningFacts& facts = tuned.facts;
    spdlog::info("{}: tuned by {}", options.name, FactsText(facts));
    const std::vector<std::string> features =
        cpu::FeatureNames(shared_->options.max_isa & cpu::BestIsa());
    const bool is_of_this_cpu = facts.cpu_features == features;
    if (!is_of_this_cpu) {
      spdlog::info(
          "{}: was tuned on another CPU, with {}; this one has {}: its precisions hold, rows are "
          "chosen by estimate, and other precisions may be faster here",
          options.name, absl::StrJoin(facts.cpu_features, " "), absl::StrJoin(features, " "));
    } else if (facts.rows > 0) {
      spdlog::info("{}: rows of its layers that are those of the tuning: {}", options.name,
                   facts.rows);
    }
    options.precision = Precision::kExact;
    options.node_precisions = std::move(tuned.precisions);
    if (!is_of_this_cpu) return Finish(std::move(tuned), options);
    options.node_rows = std::move(tuned.rows);
    auto model = Finish(std::move(tuned), options);
    if (options.node_rows.empty() || !absl::IsInvalidArgument(model.status())) return model;
    return InvalidArgument(kTuningFile, ": ", model.status().message());
  }

  absl::StatusOr<std::shared_ptr<const Model>> Finish(tuning::TunedSource tuned,
                                                      const LoadOptions& options) {
    return LoadedModel::Create(std::move(tuned.model), shared_, options,
                               {std::move(tuned.facts), tuned.held_bytes});
  }

  const std::shared_ptr<EngineShared> shared_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Engine>> Engine::Create(const EngineOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const EngineOptions resolved, Resolve(options));
  SetDiagnostics(*resolved.diagnostics);
  return std::make_unique<RealEngine>(resolved);
}

}  // namespace tilewire
