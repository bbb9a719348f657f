// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/primitive_service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/primitive_decoder.h"

namespace tilewire::service {
namespace {

// All layouts of a primitive's tensors together, in messages of the largest size.
constexpr int64_t kTensorBytesPerMessageByte = 8;
constexpr int64_t kCatalogBytes = int64_t{64} << 20;

absl::Status TooLarge(int64_t limit) {
  return absl::ResourceExhaustedError(
      absl::StrCat("the primitive's tensors need more than ", limit, " bytes"));
}

// Adds to a budget that cannot overflow: kResourceExhausted once it is spent.
class Budget {
 public:
  explicit Budget(int64_t limit) : limit_(limit), left_(limit) {}
  absl::Status Spend(int64_t bytes) {
    if (bytes > left_) return TooLarge(limit_);
    left_ -= bytes;
    return absl::OkStatus();
  }

 private:
  const int64_t limit_;
  int64_t left_;
};

absl::StatusOr<std::vector<PrimitiveInput>> DecodeInputs(const v1::ExecuteRequest& request,
                                                         Budget* budget) {
  if (request.inputs_size() > kMaxSources + 8) {
    return absl::InvalidArgumentError(absl::StrCat(request.inputs_size(), " inputs are too many"));
  }
  std::vector<PrimitiveInput> inputs;
  for (const v1::Tensor& tensor : request.inputs()) {
    const std::string what = absl::StrCat("input ", ArgName(tensor.argument()));
    absl::StatusOr<MemoryDesc> desc = DecodeMemoryDesc(tensor.desc());
    if (!desc.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": ", desc.status().message()));
    }
    if (desc->IsAny()) {
      return absl::InvalidArgumentError(absl::StrCat(what, ": a tensor cannot have layout 'any'"));
    }
    if (static_cast<int64_t>(tensor.content().size()) != desc->SizeBytes()) {
      return absl::InvalidArgumentError(absl::StrCat(
          what, ": ", tensor.content().size(), " bytes, its descriptor needs ", desc->SizeBytes()));
    }
    for (const PrimitiveInput& other : inputs) {
      if (other.arg == tensor.argument()) {
        return absl::InvalidArgumentError(absl::StrCat(what, ": given twice"));
      }
    }
    ABSL_RETURN_IF_ERROR(budget->Spend(desc->SizeBytes()));
    inputs.push_back({tensor.argument(), *std::move(desc), {tensor.content()}});
  }
  return inputs;
}

absl::StatusOr<PrimitiveOutput> DecodeOutput(const v1::WantedOutput& wanted,
                                             const Primitive& primitive) {
  const std::string what = absl::StrCat("output ", ArgName(wanted.argument()));
  const MemoryDesc& written = primitive.Desc(wanted.argument());
  if (written.IsZero() || !IsOutput(wanted.argument())) {
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
                                                           Budget* budget) {
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
      if (IsOutput(arg.arg)) outputs.push_back({arg.arg, arg.desc, {}});
    }
  }
  for (const PrimitiveOutput& output : outputs) {
    ABSL_RETURN_IF_ERROR(budget->Spend(output.desc.SizeBytes()));
  }
  return outputs;
}

void EncodeOutputs(const std::vector<PrimitiveOutput>& outputs, v1::ExecuteResponse* response) {
  for (const PrimitiveOutput& output : outputs) {
    v1::Tensor* tensor = response->add_outputs();
    tensor->set_argument(output.arg);
    *tensor->mutable_desc() = EncodeMemoryDesc(output.desc);
    tensor->set_content(output.bytes.data(), output.bytes.size());
  }
}

}  // namespace

PrimitiveService::PrimitiveService(Engine* engine, Scheduler* scheduler, int64_t max_message_bytes)
    : engine_(engine),
      scheduler_(scheduler),
      max_message_bytes_(max_message_bytes),
      max_tensor_bytes_(kTensorBytesPerMessageByte * max_message_bytes),
      catalog_(engine->options().max_isa, kCatalogBytes) {}

grpc::ServerUnaryReactor* PrimitiveService::Create(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return RpcCall::Start(context, scheduler_, [this, request, response](const RpcCall&) {
    return AnswerParsed<v1::CreateRequest, v1::CreateResponse>(
        *request, max_message_bytes_,
        [this](const auto& parsed, auto* answer) { return DoCreate(parsed, answer); }, response);
  });
}

grpc::ServerUnaryReactor* PrimitiveService::Execute(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* response) {
  return RpcCall::Start(context, scheduler_, [this, request, response](const RpcCall& call) {
    return AnswerParsed<v1::ExecuteRequest, v1::ExecuteResponse>(
        *request, max_message_bytes_,
        [&](const auto& parsed, auto* answer) { return DoExecute(parsed, call, answer); },
        response);
  });
}

grpc::ServerUnaryReactor* PrimitiveService::CacheStatistics(grpc::CallbackServerContext* context,
                                                            const v1::CacheStatisticsRequest*,
                                                            v1::CacheStatisticsResponse* response) {
  const tilewire::CacheStatistics statistics = engine_->cache_statistics();
  response->set_hits(statistics.hits);
  response->set_misses(statistics.misses);
  response->set_evictions(statistics.evictions);
  response->set_failures(statistics.failures);
  response->set_entries(statistics.entries);
  response->set_bytes(statistics.bytes);
  response->set_capacity_bytes(statistics.capacity_bytes);
  response->set_compile_time_ns(absl::ToInt64Nanoseconds(statistics.compile_time));
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* PrimitiveService::ListImplementations(
    grpc::CallbackServerContext* context, const v1::ListImplementationsRequest*,
    v1::ListImplementationsResponse* response) {
  const cpu::Isa allowed = engine_->options().max_isa;
  for (const ImplementationRow& row : AllImplementations()) {
    v1::Implementation* implementation = response->add_implementations();
    implementation->set_primitive(std::string(PrimitiveKindName(row.kind)));
    implementation->set_name(std::string(row.name));
    implementation->set_isa(std::string(cpu::IsaName(row.isa)));
    implementation->set_usable(allowed.Includes(row.isa) && cpu::Supports(row.isa));
    for (DataType type : TypesOf(row)) {
      implementation->add_types(static_cast<v1::DataType>(type));
    }
  }
  response->set_cpu_isa(std::string(cpu::IsaName(cpu::BestIsa())));
  response->set_allowed_isa(std::string(cpu::IsaName(allowed)));
  return RpcCall::Answer(context, absl::OkStatus());
}

absl::StatusOr<PrimitiveService::Compiled> PrimitiveService::Compile(
    std::shared_ptr<const DescribedPrimitive> described) {
  if (DescribedBytes(described->operation) > max_tensor_bytes_) return TooLarge(max_tensor_bytes_);
  Compiled compiled;
  ABSL_ASSIGN_OR_RETURN(compiled.found,
                        engine_->GetPrimitive(described->operation, described->attributes));
  const PrimitiveInfo& info = compiled.found.primitive->info();
  Budget budget(max_tensor_bytes_);
  ABSL_RETURN_IF_ERROR(budget.Spend(info.scratchpad_bytes));
  for (const ArgDesc& arg : info.args) ABSL_RETURN_IF_ERROR(budget.Spend(arg.desc.SizeBytes()));
  compiled.described = std::move(described);
  return compiled;
}

absl::StatusOr<PrimitiveService::Compiled> PrimitiveService::CompileMessage(
    const v1::PrimitiveDesc& message) {
  ABSL_ASSIGN_OR_RETURN(OpDesc operation, DecodeOperation(message));
  ABSL_ASSIGN_OR_RETURN(Attributes attributes, DecodeAttributes(message.attributes()));
  ABSL_ASSIGN_OR_RETURN(Compiled compiled,
                        Compile(catalog_.Describe(std::move(operation), std::move(attributes))));
  ABSL_RETURN_IF_ERROR(catalog_.Remember(compiled.described));
  return compiled;
}

absl::Status PrimitiveService::DoCreate(const v1::CreateRequest& request,
                                        v1::CreateResponse* response) {
  ABSL_ASSIGN_OR_RETURN(const Compiled compiled, CompileMessage(request.primitive()));
  const PrimitiveInfo& info = compiled.found.primitive->info();
  response->set_id(compiled.described->id);
  response->set_implementation(info.name);
  for (const ArgDesc& arg : info.args) {
    v1::ArgumentDesc* argument = response->add_arguments();
    argument->set_argument(arg.arg);
    argument->set_name(ArgName(arg.arg));
    *argument->mutable_desc() = EncodeMemoryDesc(arg.desc);
    argument->set_size_bytes(arg.desc.SizeBytes());
    argument->set_text(arg.desc.ToString());
  }
  response->set_scratchpad_bytes(info.scratchpad_bytes);
  for (const Refusal& refusal : info.creation.refusals) {
    v1::Refusal* message = response->add_refusals();
    message->set_implementation(refusal.name);
    message->set_reason(refusal.reason);
  }
  response->set_cache_hit(compiled.found.hit);
  response->set_compile_time_ns(absl::ToInt64Nanoseconds(compiled.found.compile_time));
  return absl::OkStatus();
}

absl::Status PrimitiveService::DoExecute(const v1::ExecuteRequest& request, const RpcCall& call,
                                         v1::ExecuteResponse* response) {
  Compiled compiled;
  if (request.which_case() == v1::ExecuteRequest::kPrimitive) {
    ABSL_ASSIGN_OR_RETURN(compiled, CompileMessage(request.primitive()));
  } else if (request.which_case() == v1::ExecuteRequest::kId) {
    ABSL_ASSIGN_OR_RETURN(auto described, catalog_.Find(request.id()));
    ABSL_ASSIGN_OR_RETURN(compiled, Compile(std::move(described)));
  } else {
    return absl::InvalidArgumentError("neither an id nor a primitive is given");
  }
  const Primitive& primitive = *compiled.found.primitive;
  Budget budget(max_tensor_bytes_);
  ABSL_ASSIGN_OR_RETURN(std::vector<PrimitiveInput> inputs, DecodeInputs(request, &budget));
  ABSL_ASSIGN_OR_RETURN(std::vector<PrimitiveOutput> outputs,
                        DecodeOutputs(request, primitive, &budget));
  ABSL_ASSIGN_OR_RETURN(const PrimitiveTimes times,
                        engine_->ExecutePrimitive(primitive, inputs, absl::MakeSpan(outputs),
                                                  call.LimitsOfWork(max_message_bytes_)));
  EncodeOutputs(outputs, response);
  response->set_implementation(primitive.info().name);
  response->set_reorder_in_ns(absl::ToInt64Nanoseconds(times.reorder_in));
  response->set_kernel_ns(absl::ToInt64Nanoseconds(times.kernel));
  response->set_reorder_out_ns(absl::ToInt64Nanoseconds(times.reorder_out));
  return absl::OkStatus();
}

}  // namespace tilewire::service
