// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/answers/statistics_answer.h"

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/models/statistics.h"

namespace tilewire::service {
namespace {

using Message = inference::ModelStatistics;

void Encode(const VersionStatistics::Total& total, inference::StatisticDuration* message) {
  message->set_count(total.count);
  message->set_ns(total.ns);
}

void Encode(const VersionStatistics::Batch& batch, inference::InferBatchStatistics* message) {
  message->set_batch_size(batch.rows);
  Encode({batch.runs, batch.input_ns}, message->mutable_compute_input());
  Encode({batch.runs, batch.infer_ns}, message->mutable_compute_infer());
  Encode({batch.runs, batch.output_ns}, message->mutable_compute_output());
}

void Encode(const ServedModel& served, Message* message) {
  const VersionStatistics::Sums sums = served.statistics->Sum();
  message->set_name(served.name);
  message->set_version(absl::StrCat(served.version));
  message->set_last_inference(sums.last_ms);
  message->set_inference_count(sums.rows);
  message->set_execution_count(sums.runs);
  inference::InferStatistics* all = message->mutable_inference_stats();
  Encode(sums.success, all->mutable_success());
  Encode(sums.fail, all->mutable_fail());
  Encode(sums.queue, all->mutable_queue());
  Encode(sums.input, all->mutable_compute_input());
  Encode({sums.infer.count, sums.plan.ns + sums.infer.ns}, all->mutable_compute_infer());
  Encode(sums.output, all->mutable_compute_output());
  all->mutable_cache_hit();
  all->mutable_cache_miss();
  for (const VersionStatistics::Batch& batch : sums.batches) {
    Encode(batch, message->add_batch_stats());
  }
  inference::MemoryUsage* memory = message->add_memory_usage();
  memory->set_type("CPU");
  memory->set_byte_size(served.model->HeldBytes());
}

}  // namespace

absl::Status AnswerStatistics(const ModelRepository& models,
                              const inference::ModelStatisticsRequest& request,
                              inference::ModelStatisticsResponse* response) {
  if (!request.name().empty()) {
    ABSL_ASSIGN_OR_RETURN(const auto found, models.Find(request.name(), request.version()));
    if (!request.version().empty() && found->model == nullptr) return Usable(*found);
  } else if (!request.version().empty()) {
    return absl::InvalidArgumentError("a version without the name of a model");
  }
  for (const std::shared_ptr<const ServedModel>& served : models.All()) {
    if (served->model == nullptr || served->statistics == nullptr) continue;
    if (!request.name().empty() && served->name != request.name()) continue;
    if (!request.version().empty() && absl::StrCat(served->version) != request.version()) continue;
    Encode(*served, response->add_model_stats());
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
