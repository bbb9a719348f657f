// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/primitive_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "service/rpc/call.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/byte_budget.h"
#include "service/wire/execute_request.h"
#include "service/wire/message_limits.h"
#include "service/wire/primitive_decoder.h"

namespace tilewire::service {
namespace {

// All primitives together are one share among the models.
constexpr char kShareOfPrimitives[] = "primitives";

absl::StatusOr<PrimitiveOutput> DecodeOutput(const v1::WantedOutput& wanted,
                                             const Primitive& primitive) {
  const std::string what = absl::StrCat("output ", ArgName(wanted.argument()));
  const MemoryDesc& written = primitive.Desc(wanted.argument());
  if (!primitive.Writes(wanted.argument())) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, ": ", primitive.name(), " writes no such argument"));
  }
  if (!wanted.has_desc()) return PrimitiveOutput{wanted.argument(), written, {}};
  absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(wanted.desc());
  if (!desc.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", desc.status().message()));
  }
  if (desc->dims() != written.dims()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": dims ", DimsToString(desc->dims()),
                                                   " are not ", DimsToString(written.dims())));
  }
  if (!desc->IsAny() && desc->Overlaps()) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": its elements overlap"));
  }
  return PrimitiveOutput{wanted.argument(), desc->IsAny() ? written : *std::move(desc), {}};
}

absl::StatusOr<std::vector<PrimitiveOutput>> DecodeOutputs(const v1::ExecuteRequest& request,
                                                           const Primitive& primitive,
                                                           ByteBudget* budget) {
  std::vector<PrimitiveOutput> outputs;
  for (const v1::WantedOutput& wanted : request.outputs()) {
    ABSL_ASSIGN_OR_RETURN(PrimitiveOutput output, DecodeOutput(wanted, primitive));
    for (const PrimitiveOutput& other : outputs) {
      if (other.arg == output.arg) {
        return absl::InvalidArgumentError(
            absl::StrCat("output ", ArgName(output.arg), ": asked for twice"));
      }
    }
    outputs.push_back(std::move(output));
  }
  if (request.outputs().empty()) {
    for (const ArgDesc& arg : primitive.info().args) {
      if (arg.is_output) outputs.push_back({arg.arg, arg.desc, {}});
    }
  }
  for (const PrimitiveOutput& output : outputs) {
    ABSL_RETURN_IF_ERROR(budget->Spend(output.desc.SizeBytes()));
  }
  return outputs;
}

class CreateJob final : public Job {
 public:
  CreateJob(PrimitiveCompiler* compiler, const CallHost& host, const grpc::ByteBuffer& request,
            grpc::ByteBuffer* response)
      : compiler_(compiler), host_(host), request_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    terms->model = kShareOfPrimitives;
    v1::CreateRequest parsed;
    ABSL_RETURN_IF_ERROR(ParseLimited(request_, &parsed));
    ABSL_ASSIGN_OR_RETURN(described_, compiler_->Describe(parsed.primitive()));
    forward_id_ = parsed.forward_id();
    terms->may_run_serially = true;
    return absl::OkStatus();
  }

  absl::Status Run(Call&) override {
    if (!forward_id_.empty()) {
      ABSL_ASSIGN_OR_RETURN(described_, compiler_->WithWorkspaceOf(forward_id_, described_));
    }
    ABSL_ASSIGN_OR_RETURN(const PrimitiveCompiler::Compiled compiled,
                          compiler_->Compile(std::move(described_)));
    v1::CreateResponse answer;
    EncodeCreated(compiled, &answer);
    return SerializeAnswer(answer, host_.max_message_bytes, response_);
  }

 private:
  static void EncodeCreated(const PrimitiveCompiler::Compiled& compiled,
                            v1::CreateResponse* answer) {
    const PrimitiveInfo& info = compiled.found.primitive->info();
    answer->set_id(compiled.described->id);
    answer->set_implementation(info.name);
    for (const ArgDesc& arg : info.args) {
      v1::ArgumentDesc* argument = answer->add_arguments();
      argument->set_argument(arg.arg);
      argument->set_name(ArgName(info.kind, arg.arg));
      *argument->mutable_desc() = EncodeMemoryDesc(arg.desc);
      argument->set_size_bytes(arg.desc.SizeBytes());
      argument->set_text(arg.desc.ToString());
      argument->set_written(arg.is_output);
    }
    answer->set_scratchpad_bytes(info.scratchpad_bytes);
    answer->set_operations(info.operations);
    answer->set_cycles(info.creation.cycles);
    for (const tilewire::Refusal& refusal : info.creation.refusals) {
      v1::Refusal* message = answer->add_refusals();
      message->set_implementation(refusal.name);
      message->set_reason(refusal.reason);
      message->set_cycles(refusal.cycles);
    }
    for (const std::string& dump : info.creation.dumps) answer->add_dumps(dump);
    answer->set_cache_hit(compiled.found.hit);
    answer->set_compile_time_ns(absl::ToInt64Nanoseconds(compiled.found.compile_time));
  }

  PrimitiveCompiler* const compiler_;
  const CallHost& host_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer* const response_;
  PrimitiveCompiler::Described described_;
  std::string forward_id_;  // empty: none
};

class ExecuteJob final : public Job {
 public:
  ExecuteJob(PrimitiveCompiler* compiler, const CallHost& host, const grpc::ByteBuffer& request,
             grpc::ByteBuffer* response)
      : compiler_(compiler), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    terms->model = kShareOfPrimitives;
    PassingCharge copy(terms->ticket);
    ABSL_RETURN_IF_ERROR(request_.Parse(
        bytes_, [&copy](int64_t bytes) { return copy.Add(bytes, "a request's fields"); }));
    const v1::ExecuteRequest& message = request_.message();
    if (message.which_case() == v1::ExecuteRequest::kPrimitive) {
      ABSL_ASSIGN_OR_RETURN(described_, compiler_->Describe(message.primitive()));
    } else if (message.which_case() == v1::ExecuteRequest::kId) {
      ABSL_ASSIGN_OR_RETURN(described_, compiler_->Find(message.id()));
    } else {
      return absl::InvalidArgumentError("neither an id nor a primitive is given");
    }
    terms->cost_key = absl::HashOf(described_->id);
    terms->may_run_serially = !message.measure_peak();
    return absl::OkStatus();
  }

  absl::Status Run(Call& call) override {
    ABSL_ASSIGN_OR_RETURN(const PrimitiveCompiler::Compiled compiled,
                          compiler_->Compile(std::move(described_)));
    const Primitive& primitive = *compiled.found.primitive;
    ByteBudget budget(compiler_->max_tensor_bytes());
    ABSL_ASSIGN_OR_RETURN(const std::vector<PrimitiveInput> inputs, request_.Inputs(&budget));
    ABSL_ASSIGN_OR_RETURN(std::vector<PrimitiveOutput> outputs,
                          DecodeOutputs(request_.message(), primitive, &budget));
    ABSL_ASSIGN_OR_RETURN(const PrimitiveTimes times,
                          compiler_->engine().primitives().ExecutePrimitive(
                              primitive, inputs, absl::MakeSpan(outputs), call.LimitsOfWork()));
    v1::ExecuteResponse answer;
    answer.set_implementation(primitive.info().name);
    answer.set_reorder_in_ns(absl::ToInt64Nanoseconds(times.reorder_in));
    answer.set_kernel_ns(absl::ToInt64Nanoseconds(times.kernel));
    answer.set_reorder_out_ns(absl::ToInt64Nanoseconds(times.reorder_out));
    if (request_.message().measure_peak()) {
      const PrimitiveEngine::Peak peak = compiler_->engine().primitives().MeasurePeak();
      answer.set_peak_gflops(peak.gflops);
      answer.set_threads(peak.threads);
    }
    return EncodeExecuteResponse(answer, std::move(outputs), host_.max_message_bytes, host_.answers,
                                 response_);
  }

 private:
  PrimitiveCompiler* const compiler_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  ExecuteRequest request_;
  PrimitiveCompiler::Described described_;
};

// Finding out which types a row takes compiles kernels: once per process is enough.
const v1::ListImplementationsResponse& AllRows(cpu::Isa allowed) {
  static const auto* const rows = [allowed] {
    auto* response = new v1::ListImplementationsResponse;
    for (const ImplementationRow& row : AllImplementations()) {
      v1::Implementation* implementation = response->add_implementations();
      implementation->set_primitive(std::string(PrimitiveKindName(row.kind)));
      implementation->set_name(std::string(row.name));
      implementation->set_isa(std::string(cpu::IsaName(row.isa)));
      implementation->set_usable(allowed.Includes(row.isa) && cpu::Supports(row.isa));
      implementation->set_by_cost(row.has_cost);
      for (DataType type : TypesOf(row)) {
        implementation->add_types(static_cast<v1::DataType>(type));
      }
    }
    response->set_cpu_isa(std::string(cpu::IsaName(cpu::BestIsa())));
    response->set_allowed_isa(std::string(cpu::IsaName(allowed)));
    return response;
  }();
  return *rows;
}

class ListJob final : public Job {
 public:
  ListJob(const PrimitiveCompiler* compiler, const CallHost& host, const grpc::ByteBuffer& request,
          grpc::ByteBuffer* response)
      : compiler_(compiler), host_(host), request_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    terms->model = kShareOfPrimitives;
    v1::ListImplementationsRequest parsed;
    return ParseLimited(request_, &parsed);
  }

  absl::Status Run(Call&) override {
    return SerializeAnswer(AllRows(compiler_->engine().options().max_isa), host_.max_message_bytes,
                           response_);
  }

 private:
  const PrimitiveCompiler* const compiler_;
  const CallHost& host_;
  const grpc::ByteBuffer& request_;
  grpc::ByteBuffer* const response_;
};

}  // namespace

PrimitiveService::PrimitiveService(Engine* engine, const CallHost& host,
                                   const PrimitiveLimits& limits)
    : host_(host), compiler_(engine, host.max_message_bytes, limits) {
  using Self = PrimitiveService;
#define TILEWIRE_ADD(rpc)                                                                    \
  methods_.Add(MethodNamed("tilewire.v1.PrimitiveService", #rpc), this, &Self::Request##rpc, \
               &Self::rpc)
  TILEWIRE_ADD(Create);
  TILEWIRE_ADD(Execute);
  TILEWIRE_ADD(CacheStatistics);
  TILEWIRE_ADD(ListImplementations);
#undef TILEWIRE_ADD
}

PrimitiveService::JobOrAnswer PrimitiveService::Create(const Bytes& request, Bytes* response) {
  return OwnedJob(new CreateJob(&compiler_, host_, request, response));
}

PrimitiveService::JobOrAnswer PrimitiveService::Execute(const Bytes& request, Bytes* response) {
  return OwnedJob(new ExecuteJob(&compiler_, host_, request, response));
}

PrimitiveService::JobOrAnswer PrimitiveService::ListImplementations(const Bytes& request,
                                                                    Bytes* response) {
  return OwnedJob(new ListJob(&compiler_, host_, request, response));
}

PrimitiveService::JobOrAnswer PrimitiveService::CacheStatistics(const Bytes& request,
                                                                Bytes* response) {
  return AnswerNames<v1::CacheStatisticsRequest, v1::CacheStatisticsResponse>(
      host_, request, response, [this](const auto&, auto* answer) {
        const tilewire::CacheStatistics statistics =
            compiler_.engine().primitives().cache_statistics();
        answer->set_hits(statistics.hits);
        answer->set_misses(statistics.misses);
        answer->set_evictions(statistics.evictions);
        answer->set_failures(statistics.failures);
        answer->set_entries(statistics.entries);
        answer->set_bytes(statistics.bytes);
        answer->set_capacity_bytes(statistics.capacity_bytes);
        answer->set_compile_time_ns(absl::ToInt64Nanoseconds(statistics.compile_time));
        return absl::OkStatus();
      });
}

}  // namespace tilewire::service
