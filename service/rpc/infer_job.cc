// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/infer_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/observe/steady_time.h"
#include "service/rpc/call.h"
#include "service/wire/response_encoder.h"
#include "service/wire/shape_error.h"

namespace tilewire::service {
namespace {

constexpr char kTypedContents[] = "a request's typed contents (raw ones need no copy)";

// The rows of a request: its batch, where the model leaves that open.
int64_t RowsOf(const ModelSignature& signature, const std::vector<InputTensor>& inputs) {
  if (signature.inputs.empty() || inputs.empty()) return 1;
  const bool is_open = LeavesBatchOpen(signature.inputs[0].dims) && !inputs[0].dims.empty();
  return is_open ? inputs[0].dims[0] : 1;
}

}  // namespace

OwnedJob InferJob::Start(const Setting& setting, const CallHost& host,
                         const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  std::unique_ptr<InferJob> job = setting.idle->Take();
  if (job == nullptr) job = std::make_unique<InferJob>(setting.idle);
  job->models_ = setting.models;
  job->answers_ = host.answers;
  job->in_stream_ = setting.in_stream;
  job->request_ = &request;
  job->response_ = response;
  return OwnedJob(job.release());
}

absl::Status InferJob::Parse(Ticket* ticket) {
  PassingCharge copy(ticket);
  return decoded_.Parse(*request_,
                        [&copy](int64_t bytes) { return copy.Add(bytes, kTypedContents); });
}

absl::Status InferJob::FindModel() {
  ABSL_ASSIGN_OR_RETURN(served_, models_->Find(decoded_.model_name(), decoded_.model_version()));
  absl::Status usable = Usable(*served_);
  is_ready_ = usable.ok();
  return usable;
}

absl::Status InferJob::Prepare(WorkTerms* terms) {
  ticket_ = terms->ticket;
  ABSL_RETURN_IF_ERROR(Parse(ticket_));
  ABSL_RETURN_IF_ERROR(FindModel());
  terms->model = served_->name;
  ABSL_RETURN_IF_ERROR(decoded_.Bind(served_->tensors.signature()));
  ABSL_RETURN_IF_ERROR(
      CheckBatch(served_->tensors.signature(), decoded_.inputs(), served_->max_batch));
  ABSL_RETURN_IF_ERROR(served_->tensors.ToModel(decoded_.mutable_inputs(), decoded_.outputs()));
  if (const int64_t more = decoded_.BytesBeyondMessage(); more > 0 && ticket_ != nullptr) {
    ABSL_RETURN_IF_ERROR(ticket_->Charge(more, kTypedContents));
  }
  const Model& model = *served_->model;
  terms->cost_key = CostKey(*served_, decoded_.inputs());
  terms->time_varies = model.TimeVaries();
  terms->priority = decoded_.priority();
  prepared_ = SteadyNow();
  terms->deadline = std::min(terms->deadline, prepared_ + decoded_.timeout());
  terms->may_run_serially = true;
  return absl::OkStatus();
}

std::optional<int64_t> InferJob::Operations() const {
  return served_->model->PlannedOperations(decoded_.inputs());
}

absl::Status InferJob::Run(Call& call) {
  const Model& model = *served_->model;
  const absl::Time started = decoded_.timing() ? SteadyNow() : absl::Time();
  reorder_ = absl::ZeroDuration();
  RunOptions options = call.LimitsOfWork();
  options.reorder_time = &reorder_;
  absl::StatusOr<std::vector<OutputTensor>> outputs =
      model.Run(decoded_.inputs(), decoded_.outputs(), options);
  if (!outputs.ok()) {
    return WithBatches(models_->AfterRun(served_, outputs.status()), model.signature(),
                       decoded_.inputs());
  }
  ABSL_RETURN_IF_ERROR(served_->tensors.FromModel(&*outputs));
  computed_ = SteadyNow();
  return Encode(*std::move(outputs), started, options.max_output_bytes);
}

// Text may be many times the numbers that it tells.
absl::Status InferJob::ChargeClasses(int64_t bytes, int64_t most_bytes) {
  classes_bytes_ += bytes;
  if (classes_bytes_ - bytes > most_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("its classes take more than the ", most_bytes,
                     " bytes that an answer may have (--max_message_mb)"));
  }
  return ticket_ == nullptr ? absl::OkStatus() : ticket_->Charge(bytes, "the classes of an answer");
}

absl::Status InferJob::Encode(std::vector<OutputTensor> outputs, absl::Time started,
                              int64_t most_bytes) {
  classes_bytes_ = 0;
  const auto charge = [this, most_bytes](int64_t bytes) {
    return ChargeClasses(bytes, most_bytes);
  };
  const TimesOfRequest times = {
      .queue = started - prepared_, .compute = computed_ - started, .reorder = reorder_};
  const AnswerForm form = {.classes = decoded_.classes(),
                           .labels = [this](int output) { return LabelsOf(*served_, output); },
                           .charge = charge,
                           .times = decoded_.timing() ? &times : nullptr,
                           .says_final = in_stream_ && decoded_.asks_for_final(),
                           .in_stream = in_stream_};
  return EncodeInferResponse({served_->name, served_->version, decoded_.id()},
                             served_->tensors.signature(), std::move(outputs), form, answers_,
                             response_);
}

// Parts the call's times at what only the job has seen.
void InferJob::Refine(const CallTimes& times, FlightRecord* record) const {
  record->flags |= FlightRecord::kIsInference | (in_stream_ ? FlightRecord::kInStream : 0);
  if (served_ == nullptr) return;
  record->model = served_->statistics->number();
  if (prepared_ == absl::InfinitePast()) return;
  record->rows = static_cast<uint32_t>(RowsOf(served_->model->signature(), decoded_.inputs()));
  record->decode_ns = absl::ToInt64Nanoseconds(prepared_ - times.arrival);
  record->queue_ns -= record->decode_ns;
  if (times.plan != absl::InfinitePast()) record->batch = record->rows;
  record->reorder_ns = absl::ToInt64Nanoseconds(reorder_);
  if (computed_ == absl::InfinitePast()) return;
  record->encode_ns = absl::ToInt64Nanoseconds(times.end - computed_);
  record->run_ns -= record->encode_ns;
}

std::shared_ptr<VersionStatistics> InferJob::Account(const CallTimes& times,
                                                     const absl::Status& status,
                                                     RequestRefusal refusal, FlightRecord* record) {
  Refine(times, record);
  Count(times, status, refusal, *record);
  return status.ok() && served_ != nullptr ? served_->statistics : nullptr;
}

void InferJob::Count(const CallTimes& times, const absl::Status& status, RequestRefusal refusal,
                     const FlightRecord& record) {
  const absl::Duration total = times.end - times.arrival;
  if (served_ == nullptr) {
    absl::string_view named;
    if (decoded_.parsed()) named = decoded_.model_name();
    return models_->CountUnserved(named, status.code(), refusal);
  }
  if (!is_ready_) refusal = RequestRefusal::kNotReady;
  if (record.core_ns > 0) served_->statistics->HeldCores(absl::Nanoseconds(record.core_ns));
  if (!status.ok()) return served_->statistics->Failed(status.code(), refusal, total);
  const absl::Duration run = computed_ - times.start;
  const absl::Duration plan = absl::Nanoseconds(record.plan_ns);
  served_->statistics->Succeeded(RowsOf(served_->model->signature(), decoded_.inputs()),
                                 {.decode = prepared_ - times.arrival,
                                  .queue = times.start - prepared_,
                                  .plan = plan,
                                  .input = reorder_,
                                  .infer = std::max(run - plan - reorder_, absl::ZeroDuration()),
                                  .output = times.end - computed_},
                                 total);
}

void InferJob::Release() {
  decoded_.Clear();
  prepared_ = computed_ = absl::InfinitePast();
  reorder_ = absl::ZeroDuration();
  served_ = nullptr;
  is_ready_ = false;
  idle_->Keep(std::unique_ptr<InferJob>(this));
}

}  // namespace tilewire::service
