// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/model_trainer.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/huge_pages.h"
#include "engine/base/status_macros.h"
#include "engine/facade/counted_labels.h"
#include "engine/training/schedule.h"

namespace tilewire {
namespace {

absl::Span<const float> FloatsOf(const runtime::OutputBytes& output) {
  return {reinterpret_cast<const float*>(output.bytes.data()), output.bytes.size() / sizeof(float)};
}

std::vector<double> LossesOf(absl::Span<const runtime::OutputBytes> outputs) {
  std::vector<double> losses;
  for (const runtime::OutputBytes& loss : outputs) losses.push_back(FloatsOf(loss)[0]);
  return losses;
}

double SumOf(const std::vector<double>& losses) { return absl::c_accumulate(losses, 0.0); }

absl::Status CheckDims(absl::string_view what, absl::Span<const TensorSpec> specs,
                       absl::Span<const InputTensor> tensors) {
  if (tensors.size() != specs.size())
    return InvalidArgument(tensors.size(), " ", what, " given, ", specs.size(), " are needed");
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (specs[i].Allows(tensors[i].dims)) continue;
    return InvalidArgument("input '", specs[i].name, "': shape ", DimsToString(tensors[i].dims),
                           " does not match ", ShapeText(specs[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<AlignedBuffer> Zeros(size_t bytes) {
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer zeros, AlignedBuffer::Allocate(bytes));
  PreferHugePages(zeros.data(), zeros.size());
  if (bytes > 0) std::memset(zeros.data(), 0, bytes);
  return zeros;
}

absl::Span<float> FloatsIn(AlignedBuffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

}  // namespace

ModelTrainer::ModelTrainer(std::shared_ptr<const reader::OnnxModel> source,
                           std::shared_ptr<EngineShared> shared, const TrainingSpec& spec,
                           TrainingSetup setup)
    : source_(std::move(source)),
      shared_(std::move(shared)),
      spec_(spec),
      setup_(std::move(setup)),
      signature_{source_->inputs(), source_->outputs()},
      plans_({*source_, spec_, setup_.frozen, setup_.outputs}, shared_.get()),
      averages_(spec_.average, &plans_.store()) {}

absl::StatusOr<std::unique_ptr<Trainer>> CreateTrainer(Engine* engine, const std::string& path,
                                                       const TrainingSpec& spec) {
  ABSL_ASSIGN_OR_RETURN(auto source, reader::OnnxModel::Open(path, reader::OpenedFor::kWriting));
  std::shared_ptr<EngineShared> shared = engine->shared();
  if (shared == nullptr) return absl::FailedPreconditionError("the engine makes no trainers");
  return ModelTrainer::Create(std::move(source), std::move(shared), spec);
}

absl::StatusOr<std::unique_ptr<Trainer>> ModelTrainer::Create(
    std::shared_ptr<const reader::OnnxModel> source, std::shared_ptr<EngineShared> shared,
    const TrainingSpec& spec) {
  ABSL_ASSIGN_OR_RETURN(TrainingSetup setup, SetUpTraining(*source, spec));
  std::unique_ptr<ModelTrainer> trainer(
      new ModelTrainer(std::move(source), std::move(shared), spec, std::move(setup)));
  ABSL_RETURN_IF_ERROR(trainer->TryUpdate());
  return trainer;
}

absl::Status ModelTrainer::CheckParameters(const TrainingPlan& planned) {
  runtime::ParameterStore& store = plans_.store();
  for (int index : planned.learning) {
    const absl::Span<const float> elements = store.value(index);
    const auto found = absl::c_find_if(elements, [](float x) { return !std::isfinite(x); });
    if (found == elements.end()) continue;
    return InvalidArgument("parameter '", store.name(index), "' holds ", *found,
                           ", which is not finite");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ElementBounds>> ModelTrainer::Prepare(
    absl::Span<const InputTensor> inputs, absl::Span<const InputTensor> targets, bool recalibrates,
    const RunOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const BatchShape shape, CheckShape(inputs, targets));
  ABSL_ASSIGN_OR_RETURN(const auto planned,
                        plans_.GetOrMake(Purpose::kUpdate, shape, options.interrupted));
  settled_ = true;
  ABSL_RETURN_IF_ERROR(CheckParameters(*planned));
  if (!recalibrates) return planned->bounds;
  ABSL_RETURN_IF_ERROR(plans_
                           .GetOrMake(Purpose::kStatistics, {.inputs = shape.inputs, .targets = {}},
                                      options.interrupted)
                           .status());
  return planned->bounds;
}

absl::Status ModelTrainer::TryUpdate() {
  if (const std::string merged = source_->taken_apart_text(); !merged.empty())
    notes_.push_back({.text = merged});
  for (const std::string& sentence : source_->training_leftovers()) {
    notes_.push_back(
        {.kind = TrainingNote::Kind::kServing,
         .text = absl::StrCat("When it is served: ", sentence, ", as evaluations here do.")});
  }
  BatchShape shape;
  for (const TensorSpec& input : signature_.inputs) {
    Dims dims = input.dims;
    if (!dims.empty() && dims[0] < 0) dims[0] = 2;
    if (input.any_rank || absl::c_any_of(dims, [](int64_t size) { return size < 0; }))
      return absl::OkStatus();
    shape.inputs.push_back(std::move(dims));
  }
  ABSL_ASSIGN_OR_RETURN(const auto planned, plans_.GetOrMake(Purpose::kUpdate, shape, {}));
  settled_ = true;
  for (const std::string& sentence : planned->notes) notes_.push_back({.text = sentence});
  return absl::OkStatus();
}

absl::Status ModelTrainer::SettleParameters(const BatchShape& shape,
                                            const RunOptions& options) const {
  if (settled_) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(
      plans_
          .GetOrMake(Purpose::kUpdate, {.inputs = shape.inputs, .targets = {}}, options.interrupted)
          .status());
  settled_ = true;
  return absl::OkStatus();
}

absl::StatusOr<BatchShape> ModelTrainer::CheckShape(absl::Span<const InputTensor> inputs,
                                                    absl::Span<const InputTensor> targets) const {
  ABSL_RETURN_IF_ERROR(CheckDims("inputs", signature_.inputs, inputs));
  ABSL_RETURN_IF_ERROR(CheckBytes(signature_.inputs, inputs));
  if (!targets.empty() && targets.size() != setup_.targets.size()) {
    return InvalidArgument(targets.size(), " targets given, ", setup_.targets.size(),
                           " are needed: one per loss");
  }
  BatchShape shape;
  for (const InputTensor& input : inputs) shape.inputs.push_back(input.dims);
  for (const InputTensor& target : targets) {
    GivenTargets& given = shape.targets.emplace_back();
    given.dims = target.dims;
    for (absl::string_view piece : target.pieces) given.bytes += static_cast<int64_t>(piece.size());
    const bool has_elements = ElementCount(given.dims).has_value() &&
                              absl::c_none_of(given.dims, [](int64_t size) { return size < 0; });
    if (!has_elements)
      return InvalidArgument("targets: no tensor has the shape ", DimsToString(given.dims));
  }
  return shape;
}

absl::StatusOr<AllOutputBytes> ModelTrainer::RunPlan(const TrainingPlan& planned,
                                                     std::vector<InputTensor> all,
                                                     absl::Span<const InputTensor> targets,
                                                     const RunOptions& options) const {
  const runtime::Plan& plan = *planned.plan;
  all.insert(all.end(), targets.begin(), targets.end());
  std::vector<OutputRequest> requests(plan.outputs.size());
  for (size_t i = 0; i < requests.size(); ++i) requests[i].index = static_cast<int>(i);
  ABSL_ASSIGN_OR_RETURN(AllOutputBytes outputs, DescribeOutputs(plan, requests));
  ABSL_RETURN_IF_ERROR(runtime::CheckOutputBytes(outputs, options.max_output_bytes));
  if (options.reserve) ABSL_RETURN_IF_ERROR(options.reserve(RunBytes(plan, outputs)));
  const runtime::ExecutionContext context{.scratchpads = &shared_->scratchpads,
                                          .team = shared_->TeamFor(options),
                                          .interrupted = &options.interrupted,
                                          .reorder_time = options.reorder_time,
                                          .parameters = &plans_.store()};
  ABSL_RETURN_IF_ERROR(
      runtime::Execute(plan, DescribeInputs(plan, all), absl::MakeSpan(outputs), context));
  return outputs;
}

absl::StatusOr<UpdateResult> ModelTrainer::Update(absl::Span<const InputTensor> inputs,
                                                  absl::Span<const InputTensor> targets,
                                                  const RunOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const BatchShape shape, CheckShape(inputs, targets));
  if (targets.empty()) return InvalidArgument("0 targets given: an update needs one per loss");
  ABSL_ASSIGN_OR_RETURN(const auto planned,
                        plans_.GetOrMake(Purpose::kUpdate, shape, options.interrupted));
  settled_ = true;
  ABSL_RETURN_IF_ERROR(TakeMemory(*planned));
  std::vector<InputTensor> given(inputs.begin(), inputs.end());
  ABSL_RETURN_IF_ERROR(
      masks_.Draw(planned->masks, spec_.seed, updates_, shared_->TeamFor(options), &given));
  ABSL_ASSIGN_OR_RETURN(const AllOutputBytes outputs,
                        RunPlan(*planned, std::move(given), targets, options));
  // The step is short, and goes through once it has begun.
  RunOptions without_stop = options;
  without_stop.stop = nullptr;
  const threading::Team team = shared_->TeamFor(without_stop);
  const UpdateResult result{
      .update = updates_ + 1,
      .loss = SumOf(LossesOf(absl::MakeConstSpan(outputs).first(planned->losses))),
      .rate = training::RateOf(spec_.schedule, updates_),
      .gradient_norm =
          training::NormOf(GradientsOf(*planned), training::GradientBounds().value, team)};
  const bool is_finite = std::isfinite(result.loss) && std::isfinite(result.gradient_norm);
  if (!is_finite || !AreFinite(*planned, outputs))
    return Skip(result, LacksLabels(spec_.losses, planned->targets, targets));
  TakeStep(*planned, result, team);
  MoveStatistics(*planned, outputs);
  ++updates_;
  skipped_in_a_row_ = unlabelled_in_a_row_ = 0;
  recalibrated_ = 0;
  return result;
}

absl::Status ModelTrainer::TakeMemory(const TrainingPlan& planned) {
  states_.resize(plans_.store().count());
  for (int index : planned.learning) {
    for (int i = 0; i < training::StateCount(spec_.optimizer); ++i) {
      AlignedBuffer& array = states_[index].arrays[i];
      const size_t bytes = plans_.store().value(index).size() * sizeof(float);
      if (array.size() == bytes) continue;
      ABSL_ASSIGN_OR_RETURN(array, Zeros(bytes));
    }
  }
  return averages_.Keep(planned.learning);
}

std::vector<absl::Span<const float>> ModelTrainer::GradientsOf(const TrainingPlan& planned) const {
  std::vector<absl::Span<const float>> gradients;
  for (int index : planned.learning) gradients.push_back(plans_.store().gradient(index));
  return gradients;
}

bool ModelTrainer::AreFinite(const TrainingPlan& planned, const AllOutputBytes& outputs) const {
  for (const PlannedStatistics& one : planned.statistics) {
    for (int output : {one.batch_mean, one.batch_variance}) {
      if (!absl::c_all_of(FloatsOf(outputs[output]), [](float x) { return std::isfinite(x); }))
        return false;
    }
  }
  return true;
}

absl::StatusOr<UpdateResult> ModelTrainer::Skip(UpdateResult result, bool lacks_labels) {
  if (lacks_labels) ++unlabelled_in_a_row_;
  if (++skipped_in_a_row_ >= kMostSkipped) {
    std::string message =
        absl::StrCat(skipped_in_a_row_,
                     " updates in a row were skipped, because a loss or a gradient was not finite; "
                     "the last loss was ",
                     result.loss, " at the learning rate ", result.rate);
    if (unlabelled_in_a_row_ > 0) {
      absl::StrAppend(&message, "; ", unlabelled_in_a_row_,
                      " of these batches had no label that counts in a loss: all of theirs are "
                      "ignored, or of classes whose weight is 0");
    }
    return absl::FailedPreconditionError(message);
  }
  result.skipped = true;
  ++updates_;
  return result;
}

void ModelTrainer::TakeStep(const TrainingPlan& planned, const UpdateResult& result,
                            const threading::Team& team) {
  runtime::ParameterStore& store = plans_.store();
  std::vector<training::OptimizedParameter> parameters;
  for (int index : planned.learning) {
    const ParameterSettings& settings = setup_.settings.at(store.name(index));
    parameters.push_back(
        {.value = store.value(index),
         .gradient = store.gradient(index),
         .state = {FloatsIn(states_[index].arrays[0]), FloatsIn(states_[index].arrays[1])},
         .rate = result.rate * settings.rate_factor,
         .weight_decay = settings.weight_decay});
  }
  const training::GradientBounds bounds = training::BoundsOf(
      GradientsOf(planned), result.gradient_norm, spec_.clip_value, spec_.clip_norm, team);
  training::TakeStep(spec_.optimizer, ++steps_, parameters, bounds, team);
  averages_.Move(steps_, team);
}

void ModelTrainer::MoveStatistics(const TrainingPlan& planned, const AllOutputBytes& outputs,
                                  std::optional<double> momentum) {
  runtime::ParameterStore& store = plans_.store();
  for (const PlannedStatistics& one : planned.statistics) {
    const double kept = momentum.value_or(one.momentum);
    const auto move = [&](int index, int output, double factor) {
      const absl::Span<float> running = store.value(index);
      const absl::Span<const float> batch = FloatsOf(outputs[output]);
      for (size_t c = 0; c < batch.size(); ++c)
        running[c] = static_cast<float>(kept * running[c] + (1 - kept) * (factor * batch[c]));
    };
    const auto elements = static_cast<double>(one.elements);
    move(one.mean, one.batch_mean, 1);
    move(one.variance, one.batch_variance, elements / (elements - 1));
  }
}

absl::StatusOr<Evaluation> ModelTrainer::Evaluate(absl::Span<const InputTensor> inputs,
                                                  absl::Span<const InputTensor> targets,
                                                  const RunOptions& options) const {
  ABSL_ASSIGN_OR_RETURN(const BatchShape shape, CheckShape(inputs, targets));
  ABSL_RETURN_IF_ERROR(SettleParameters(shape, options));
  const Purpose purpose = targets.empty() ? Purpose::kOutputs : Purpose::kEvaluation;
  ABSL_ASSIGN_OR_RETURN(const auto planned, plans_.GetOrMake(purpose, shape, options.interrupted));
  const AveragesInPlace averages(&averages_);
  ABSL_ASSIGN_OR_RETURN(AllOutputBytes outputs,
                        RunPlan(*planned, {inputs.begin(), inputs.end()}, targets, options));
  const size_t count = outputs.size() - planned->losses;
  std::vector<double> losses = LossesOf(absl::MakeConstSpan(outputs).subspan(count));
  Evaluation evaluation{.loss = SumOf(losses), .losses = std::move(losses), .outputs = {}};
  for (size_t i = 0; i < count; ++i) {
    const bool is_scalar = planned->plan->outputs[i].is_scalar;
    evaluation.outputs.push_back({static_cast<int>(i), is_scalar ? Dims() : outputs[i].desc->dims(),
                                  Layout::kNchw, std::move(outputs[i].bytes)});
  }
  return evaluation;
}

absl::Status ModelTrainer::Recalibrate(absl::Span<const InputTensor> inputs,
                                       const RunOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const BatchShape shape, CheckShape(inputs, {}));
  ABSL_RETURN_IF_ERROR(SettleParameters(shape, options));
  ABSL_ASSIGN_OR_RETURN(const auto planned,
                        plans_.GetOrMake(Purpose::kStatistics, shape, options.interrupted));
  const AveragesInPlace averages(&averages_);
  ABSL_ASSIGN_OR_RETURN(const AllOutputBytes outputs,
                        RunPlan(*planned, {inputs.begin(), inputs.end()}, {}, options));
  if (!AreFinite(*planned, outputs))
    return InvalidArgument("the statistics of these inputs are not finite");
  const auto batches = static_cast<double>(recalibrated_++);
  MoveStatistics(*planned, outputs, batches / (batches + 1));
  return absl::OkStatus();
}

absl::Status ModelTrainer::WriteModel(const std::string& path) const {
  const AveragesInPlace averages(&averages_);
  const runtime::ParameterStore& store = plans_.store();
  std::vector<std::vector<float>> elements;
  for (int index = 0; index < store.count(); ++index) {
    ABSL_ASSIGN_OR_RETURN(elements.emplace_back(), store.Elements(index));
  }
  std::vector<reader::NewElements> changed;
  for (int index = 0; index < store.count(); ++index)
    changed.push_back({store.name(index), elements[index]});
  return source_->Write(path, changed, {});
}

absl::StatusOr<std::vector<float>> ModelTrainer::Parameter(const std::string& name) const {
  const AveragesInPlace averages(&averages_);
  const int index = plans_.store().Find(name);
  if (index != runtime::ParameterStore::kNone) return plans_.store().Elements(index);
  for (const network::ConstantPtr& constant : source_->Trainable()) {
    if (constant->name != name) continue;
    ABSL_ASSIGN_OR_RETURN(const network::HeldFloats held, network::LoadNumbers(*constant));
    return std::vector<float>(held.values.begin(), held.values.end());
  }
  return absl::NotFoundError(absl::StrCat("there is no parameter '", name, "'"));
}

}  // namespace tilewire
