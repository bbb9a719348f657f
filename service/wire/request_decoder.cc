// SPDX-License-Identifier: Apache-2.0
#include "service/wire/request_decoder.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "service/wire/classification.h"
#include "service/wire/message_limits.h"
#include "service/wire/request_parameters.h"
#include "service/wire/status_text.h"
#include "service/wire/tensor_layout.h"
#include "service/wire/typed_contents.h"

namespace tilewire::service {
namespace {

absl::Status Invalid(absl::string_view what, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": ", why));
}

std::string Names(const std::vector<TensorSpec>& specs) {
  return absl::StrJoin(specs, ", ", [](std::string* out, const TensorSpec& spec) {
    absl::StrAppend(out, "'", spec.name, "'");
  });
}

constexpr int kDefaultPriority = 2;

// As Triton has it, the default stands for 0 and for levels that there are none of.
absl::StatusOr<int> PriorityIn(const Parameters& parameters) {
  constexpr int64_t kLowest = std::numeric_limits<int>::max();
  const auto found = parameters.find("priority");
  const bool is_beyond = found != parameters.end() && found->second.uint64_param() > kLowest;
  if (is_beyond) return kDefaultPriority;
  ABSL_ASSIGN_OR_RETURN(
      const std::optional<int64_t> given,
      IntegerParameter(parameters, "priority", std::numeric_limits<int64_t>::max()));
  const bool is_level = given.value_or(0) > 0 && *given <= kLowest;
  return is_level ? static_cast<int>(*given) : kDefaultPriority;
}

// -1 where no tensor has this name.
int FindSpec(const std::vector<TensorSpec>& specs, absl::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [name](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? -1 : static_cast<int>(found - specs.begin());
}

// "[N,3,224,224]" in the order of `layout`.
std::string SpecText(const TensorSpec& spec, Layout layout) {
  if (spec.any_rank) return ShapeText(spec);
  Dims dims = FromLogical(spec.dims, layout);
  return absl::StrCat("[",
                      absl::StrJoin(dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out, dim < 0 ? "N" : absl::StrCat(dim));
                                    }),
                      "]");
}

// A hint for a shape that does not match; empty if there is none.
std::string ShapeHint(const Dims& given, const TensorSpec& spec, Layout layout) {
  if (std::any_of(given.begin(), given.end(), [](int64_t dim) { return dim < 0; })) {
    return "; no dimension is negative";
  }
  const bool has_layouts = given.size() >= 3 && given.size() <= 5;
  const Layout other = layout == Layout::kNchw ? Layout::kNhwc : Layout::kNchw;
  if (!has_layouts || !spec.Allows(ToLogical(given, other))) return "";
  return other == Layout::kNhwc
             ? "; if its channels stand last, set the input's parameter 'layout' to 'nhwc'"
             : "; its parameter 'layout' says 'nhwc', but it looks like 'nchw'";
}

template <typename Shape>
absl::StatusOr<Dims> LogicalDims(const Shape& shape, const TensorSpec& spec, Layout layout) {
  if (!spec.any_rank && shape.size() != spec.dims.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", shape.size(), " does not match ", SpecText(spec, layout)));
  }
  const Dims given(shape.begin(), shape.end());
  const Dims dims = ToLogical(given, layout);
  if (spec.Allows(dims)) return dims;
  return absl::InvalidArgumentError(absl::StrCat("shape ", DimsToString(given), " does not match ",
                                                 SpecText(spec, layout),
                                                 ShapeHint(given, spec, layout)));
}

// An error of the tensor `name`, which the client named so.
absl::Status OfTensor(absl::string_view kind, absl::string_view name, const absl::Status& status) {
  return status.ok() ? status : Invalid(absl::StrCat(kind, Quoted(name)), status.message());
}

int64_t TotalBytes(absl::Span<const absl::string_view> pieces) {
  int64_t total = 0;
  for (absl::string_view piece : pieces) total += piece.size();
  return total;
}

}  // namespace

void InferRequest::Clear() {
  message_ = nullptr;
  arena_.reset();
  slices_.clear();
  if (slices_.capacity() > kKeptPieces) std::vector<grpc::Slice>().swap(slices_);
  const bool large = wire_.pieces.capacity() > kKeptPieces || wire_.ends.capacity() > kKeptPieces ||
                     wire_.fields.capacity() > kArenaBytes;
  if (large) wire_ = WireRequest();
  if (large || inputs_.capacity() > kKeptPieces) std::vector<InputTensor>().swap(inputs_);
  if (outputs_.capacity() > kKeptPieces) {
    std::vector<OutputRequest>().swap(outputs_);
    std::vector<int64_t>().swap(classes_);
  }
  converted_.clear();
}

absl::Status InferRequest::Parse(const grpc::ByteBuffer& bytes, CopyFilter copied) {
  Clear();
  message_bytes_ = bytes.Valid() ? static_cast<int64_t>(bytes.Length()) : 0;
  if (bytes.Valid() && !bytes.Dump(&slices_).ok()) {
    return absl::InvalidArgumentError("the request cannot be decompressed");
  }
  ABSL_RETURN_IF_ERROR(WalkInferRequest(slices_, copied, &wire_));
  google::protobuf::io::ArrayInputStream fields(wire_.fields.data(), wire_.fields.size());
  ABSL_RETURN_IF_ERROR(CheckEntries(*inference::ModelInferRequest::descriptor(), &fields));
  // The first block of an arena belongs to the thread that makes it.
  arena_.emplace(arena_bytes_.data(), arena_bytes_.size());
  message_ = google::protobuf::Arena::CreateMessage<inference::ModelInferRequest>(&arena_.value());
  if (!message_->ParseFromString(wire_.fields)) {
    return absl::InvalidArgumentError("the request is not a valid ModelInferRequest");
  }
  if (wire_.fields.capacity() > kArenaBytes) std::string().swap(wire_.fields);
  return absl::OkStatus();
}

int64_t InferRequest::BytesBeyondMessage() const {
  auto bytes = static_cast<int64_t>(arena_->SpaceAllocated());
  for (const std::unique_ptr<std::string>& one : converted_) bytes += one->capacity();
  return std::max<int64_t>(0, bytes - message_bytes_ - kArenaBytes);
}

absl::Status InferRequest::Bind(const ModelSignature& signature) {
  ABSL_RETURN_IF_ERROR(ReadParameters());
  const size_t entries = wire_.raw_count();
  if (entries > 0 && static_cast<int>(entries) != message_->inputs_size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "raw_input_contents has ", entries, " entries for ", message_->inputs_size(), " inputs"));
  }
  inputs_.resize(signature.inputs.size());
  Seen seen(signature.inputs.size(), false);
  for (int i = 0; i < message_->inputs_size(); ++i) {
    const absl::Status bound = BindInput(i, signature, &seen);
    if (!bound.ok()) return OfTensor("input ", message_->inputs(i).name(), bound);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    if (!seen[i]) {
      return absl::InvalidArgumentError(
          absl::StrCat("input '", signature.inputs[i].name, "' is missing"));
    }
  }
  return BindOutputs(signature);
}

absl::Status InferRequest::ReadParameters() {
  timeout_ = absl::InfiniteDuration();
  priority_ = kDefaultPriority;
  timing_ = asks_for_final_ = false;
  if (message_->parameters().empty()) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(CheckNames(message_->parameters(), ParametersOf::kRequest));
  ABSL_ASSIGN_OR_RETURN(
      const std::optional<int64_t> timeout,
      IntegerParameter(message_->parameters(), "timeout", std::numeric_limits<int64_t>::max()));
  if (timeout.value_or(0) > 0) timeout_ = absl::Microseconds(*timeout);
  ABSL_ASSIGN_OR_RETURN(priority_, PriorityIn(message_->parameters()));
  ABSL_ASSIGN_OR_RETURN(timing_, BoolParameter(message_->parameters(), "timing"));
  ABSL_ASSIGN_OR_RETURN(
      asks_for_final_, BoolParameter(message_->parameters(), "triton_enable_empty_final_response"));
  return absl::OkStatus();
}

absl::Status InferRequest::BindInput(int index, const ModelSignature& signature, Seen* seen) {
  const inference::ModelInferRequest::InferInputTensor& input = message_->inputs(index);
  const int slot = FindSpec(signature.inputs, input.name());
  if (slot < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown; the model has ", Names(signature.inputs)));
  }
  if ((*seen)[slot]) return absl::InvalidArgumentError("given twice");
  (*seen)[slot] = true;
  ABSL_RETURN_IF_ERROR(CheckNames(input.parameters(), ParametersOf::kInput));
  return BindInputTo(index, signature.inputs[slot], &inputs_[slot]);
}

absl::Status InferRequest::BindInputTo(int index, const TensorSpec& spec, InputTensor* bound) {
  const inference::ModelInferRequest::InferInputTensor& input = message_->inputs(index);
  if (input.datatype() != DatatypeName(spec.type)) {
    return absl::InvalidArgumentError(
        absl::StrCat("datatype ", Quoted(input.datatype()), " is not ", DatatypeName(spec.type)));
  }
  ABSL_ASSIGN_OR_RETURN(bound->layout, LayoutParameter(input.parameters(), input.shape_size()));
  ABSL_ASSIGN_OR_RETURN(bound->dims, LogicalDims(input.shape(), spec, bound->layout));
  const std::optional<int64_t> elements = ElementCount(bound->dims);
  const std::optional<int64_t> bytes =
      elements ? CheckedMul(*elements, SizeOf(spec.type)) : std::nullopt;
  if (!bytes) return absl::InvalidArgumentError("its size overflows");
  return BindPieces(index, spec.type, *elements, &bound->pieces);
}

absl::Status InferRequest::BindPieces(int index, DataType type, int64_t elements, Pieces* pieces) {
  const inference::ModelInferRequest::InferInputTensor& input = message_->inputs(index);
  const bool typed = input.has_contents() && input.contents().ByteSizeLong() > 0;
  if (wire_.raw_count() == 0) {
    if (!typed && elements > 0)
      return absl::InvalidArgumentError("has neither raw nor typed contents");
    converted_.push_back(std::make_unique<std::string>());
    ABSL_ASSIGN_OR_RETURN(absl::string_view bytes,
                          TypedBytes(input.contents(), type, elements, converted_.back().get()));
    pieces->assign(1, bytes);
    return absl::OkStatus();
  }
  if (typed) return absl::InvalidArgumentError("has both raw and typed contents");
  const absl::Span<const absl::string_view> raw = wire_.raw(index);
  const int64_t got = TotalBytes(raw);
  if (got != elements * SizeOf(type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "raw contents have ", got, " bytes, the shape needs ", elements * SizeOf(type)));
  }
  pieces->assign(raw.begin(), raw.end());
  return absl::OkStatus();
}

absl::Status InferRequest::BindOutputs(const ModelSignature& signature) {
  outputs_.clear();
  classes_.assign(std::max<size_t>(message_->outputs_size(), signature.outputs.size()), 0);
  if (message_->outputs().empty()) {
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      outputs_.push_back({static_cast<int>(i), Layout::kNchw});
    }
    return absl::OkStatus();
  }
  Seen seen(signature.outputs.size(), false);
  for (const inference::ModelInferRequest::InferRequestedOutputTensor& output :
       message_->outputs()) {
    const absl::StatusOr<OutputRequest> bound = BindOutput(output, signature, &seen);
    if (!bound.ok()) return OfTensor("output ", output.name(), bound.status());
    const absl::StatusOr<int64_t> classes = BindClasses(output, signature.outputs[bound->index]);
    if (!classes.ok()) return OfTensor("output ", output.name(), classes.status());
    classes_[outputs_.size()] = *classes;
    outputs_.push_back(*bound);
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> InferRequest::BindClasses(
    const inference::ModelInferRequest::InferRequestedOutputTensor& output,
    const TensorSpec& spec) {
  if (output.parameters().empty()) return 0;
  ABSL_ASSIGN_OR_RETURN(
      const std::optional<int64_t> most,
      IntegerParameter(output.parameters(), "classification", std::numeric_limits<int64_t>::max()));
  if (most.value_or(0) == 0) return 0;
  ABSL_RETURN_IF_ERROR(CheckClassified(spec));
  return *most;
}

absl::StatusOr<OutputRequest> InferRequest::BindOutput(
    const inference::ModelInferRequest::InferRequestedOutputTensor& output,
    const ModelSignature& signature, Seen* seen) {
  const int slot = FindSpec(signature.outputs, output.name());
  if (slot < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown; the model has ", Names(signature.outputs)));
  }
  if ((*seen)[slot]) return absl::InvalidArgumentError("asked for twice");
  (*seen)[slot] = true;
  ABSL_RETURN_IF_ERROR(CheckNames(output.parameters(), ParametersOf::kOutput));
  const TensorSpec& spec = signature.outputs[slot];
  constexpr int kAnyRank = 3;  // every layout is allowed until the rank is known
  ABSL_ASSIGN_OR_RETURN(
      const Layout layout,
      LayoutParameter(output.parameters(), spec.any_rank ? kAnyRank : spec.dims.size()));
  return OutputRequest{slot, layout};
}

}  // namespace tilewire::service
