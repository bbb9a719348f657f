// SPDX-License-Identifier: Apache-2.0
//
// One request of ModelInfer, alone or in a stream: decoded, run, encoded and counted.
// Thread-compatible.
#ifndef SERVICE_RPC_INFER_JOB_H_
#define SERVICE_RPC_INFER_JOB_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "service/models/model_repository.h"
#include "service/models/statistics.h"
#include "service/rpc/call_host.h"
#include "service/rpc/idle_slots.h"
#include "service/rpc/job.h"
#include "service/wire/request_decoder.h"

namespace tilewire::service {

// Serves one call after the other, so that its memory is there when a request comes.
class InferJob final : public Job {
 public:
  // `in_stream`: the answer is a ModelStreamInferResponse.
  struct Setting {
    IdleSlots<InferJob>* idle = nullptr;
    ModelRepository* models = nullptr;
    bool in_stream = false;
  };

  explicit InferJob(IdleSlots<InferJob>* idle) : idle_(idle) {}

  static OwnedJob Start(const Setting& setting, const CallHost& host,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response);

  absl::Status Prepare(WorkTerms* terms) override;
  std::optional<int64_t> Operations() const override;
  absl::Status Run(Call& call) override;
  absl::string_view RequestId() const override {
    return decoded_.parsed() ? absl::string_view(decoded_.id()) : "";
  }
  std::shared_ptr<VersionStatistics> Account(const CallTimes& times, const absl::Status& status,
                                             RequestRefusal refusal, FlightRecord* record) override;
  void Release() override;

 private:
  absl::Status Parse(Ticket* ticket);
  absl::Status FindModel();
  void Refine(const CallTimes& times, FlightRecord* record) const;
  void Count(const CallTimes& times, const absl::Status& status, RequestRefusal refusal,
             const FlightRecord& record);
  absl::Status Encode(std::vector<OutputTensor> outputs, absl::Time started, int64_t most_bytes);
  absl::Status ChargeClasses(int64_t bytes, int64_t most_bytes);

  IdleSlots<InferJob>* const idle_;
  ModelRepository* models_ = nullptr;
  AnswerPool* answers_ = nullptr;
  const grpc::ByteBuffer* request_ = nullptr;
  grpc::ByteBuffer* response_ = nullptr;
  bool in_stream_ = false;
  InferRequest decoded_;
  absl::Time prepared_ = absl::InfinitePast(), computed_ = absl::InfinitePast();
  absl::Duration reorder_;
  Ticket* ticket_ = nullptr;
  int64_t classes_bytes_ = 0;
  std::shared_ptr<const ServedModel> served_;
  bool is_ready_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_INFER_JOB_H_
