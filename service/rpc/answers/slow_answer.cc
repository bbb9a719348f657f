// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/answers/slow_answer.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"

namespace tilewire::service {
namespace {

constexpr int32_t kMost = 1000, kUsualMost = 100;
constexpr int64_t kNsPerMs = 1'000'000;

std::string NameOf(const ModelRepository& models, uint32_t number) {
  return number == 0 ? "other methods" : models.NameOf(number).model;
}

void Encode(const FlightRecord& record, v1::SlowRequest* message) {
  message->set_at_ns(record.arrival_ns);
  message->set_total_ns(record.TotalNs());
  message->set_decode_ns(record.decode_ns);
  message->set_queue_ns(record.queue_ns);
  message->set_plan_ns(record.plan_ns);
  message->set_run_ns(record.run_ns);
  message->set_encode_ns(record.encode_ns);
  message->set_write_ns(record.write_ns);
  message->set_core_ns(record.core_ns);
  message->set_code(absl::StatusCodeToString(static_cast<absl::StatusCode>(record.code)));
  message->set_rows(record.rows);
}

void Encode(const ModelRepository& models, const SlowRequest& request, v1::SlowRequest* message) {
  message->set_id(Utf8Text(TextOf(request.id)));
  if (request.record.model != 0) {
    const Statistics::Name name = models.NameOf(request.record.model);
    message->set_model(name.model);
    message->set_version(absl::StrCat(name.version));
  }
  Encode(request.record, message);
  message->set_usual_ns(request.usual_ns);
  for (uint32_t i = 0; i < request.ahead_count; ++i) {
    v1::SlowRequest::Ahead* ahead = message->add_ahead();
    ahead->set_model(NameOf(models, request.ahead[i].model));
    ahead->set_requests(request.ahead[i].requests);
    ahead->set_run_ns(request.ahead[i].run_ns);
  }
  message->set_beside(request.beside);
  message->set_throttled_ns(request.throttled_ns);
  message->set_words(
      StoryText(request, [&models](uint32_t number) { return NameOf(models, number); }));
}

}  // namespace

absl::Status AnswerSlowRequests(const ModelRepository& models, const SlowRequests& slow,
                                const v1::SlowRequestsRequest& request,
                                v1::SlowRequestsResponse* response) {
  if (request.most() < 0 || request.most() > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.most(), " requests are asked for, allowed are 0 to ", kMost));
  }
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() / kNsPerMs;
  if (request.since_ms() < 0 || request.since_ms() > kLatest) {
    return absl::InvalidArgumentError(
        absl::StrCat("since_ms ", request.since_ms(), ", allowed are 0 to ", kLatest));
  }
  // Requests of other methods, such as one that loads a model, belong to none.
  const auto is_wanted = [&](uint32_t number) {
    if (number == 0) return false;
    return request.model().empty() || models.NameOf(number).model == request.model();
  };
  const auto found = slow.Find(is_wanted, request.since_ms() * kNsPerMs,
                               request.most() == 0 ? kUsualMost : request.most());
  if (found.empty() && !request.model().empty())
    ABSL_RETURN_IF_ERROR(models.Find(request.model(), "").status());
  for (const SlowRequest& one : found) Encode(models, one, response->add_requests());
  response->set_missed(static_cast<int64_t>(slow.missed()));
  if (const auto share = slow.cpu_wait().share) response->set_cpu_wait_share(*share);
  return absl::OkStatus();
}

}  // namespace tilewire::service
