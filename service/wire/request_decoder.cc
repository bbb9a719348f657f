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
#include "service/wire/message_limits.h"
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

// -1 where no tensor has this name.
int FindSpec(const std::vector<TensorSpec>& specs, absl::string_view name) {
  const auto found = std::find_if(specs.begin(), specs.end(),
                                  [name](const TensorSpec& spec) { return spec.name == name; });
  return found == specs.end() ? -1 : static_cast<int>(found - specs.begin());
}

// "[N,3,224,224]" in the order of `layout`.
std::string SpecText(const TensorSpec& spec, Layout layout) {
  Dims dims = FromLogical(spec.dims, layout);
  return absl::StrCat("[",
                      absl::StrJoin(dims, ",",
                                    [](std::string* out, int64_t dim) {
                                      absl::StrAppend(out, dim < 0 ? "N" : absl::StrCat(dim));
                                    }),
                      "]");
}

bool Matches(const Dims& dims, const TensorSpec& spec) {
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1 || (spec.dims[i] >= 0 && dims[i] != spec.dims[i])) return false;
  }
  return true;
}

// What would help where a shape does not match.
std::string ShapeHint(const Dims& given, const TensorSpec& spec, Layout layout) {
  if (std::any_of(given.begin(), given.end(), [](int64_t dim) { return dim < 1; })) {
    return "; every dimension is at least 1";
  }
  const bool has_layouts = given.size() >= 3 && given.size() <= 5;
  const Layout other = layout == Layout::kNchw ? Layout::kNhwc : Layout::kNchw;
  if (!has_layouts || !Matches(ToLogical(given, other), spec)) return "";
  return other == Layout::kNhwc
             ? "; if its channels stand last, set the input's parameter 'layout' to 'nhwc'"
             : "; its parameter 'layout' says 'nhwc', but it looks like 'nchw'";
}

template <typename Shape>
absl::StatusOr<Dims> LogicalDims(const Shape& shape, const TensorSpec& spec, Layout layout,
                                 absl::string_view what) {
  if (shape.size() != spec.dims.size()) {
    return Invalid(what,
                   absl::StrCat("rank ", shape.size(), " does not match ", SpecText(spec, layout)));
  }
  const Dims given(shape.begin(), shape.end());
  const Dims dims = ToLogical(given, layout);
  if (Matches(dims, spec)) return dims;
  return Invalid(what, absl::StrCat("shape ", DimsToString(given), " does not match ",
                                    SpecText(spec, layout), ShapeHint(given, spec, layout)));
}

using Parameters = google::protobuf::Map<std::string, inference::InferParameter>;

// Parameters that change the answer and are not served: ignoring one would give another answer than
// the client expects.
struct Refused {
  absl::string_view name, why;
};
constexpr Refused kRefusedOfRequests[] = {
    {"sequence_id", "sequences are not supported: every request stands alone; leave it out"},
    {"sequence_start", "sequences are not supported: every request stands alone; leave it out"},
    {"sequence_end", "sequences are not supported: every request stands alone; leave it out"},
};
constexpr char kNoSharedMemory[] = "shared memory is not supported; send the tensor's bytes";
constexpr Refused kRefusedOfTensors[] = {
    {"classification", "classification is not supported; ask for the scores"},
    {"shared_memory_region", kNoSharedMemory},
    {"shared_memory_byte_size", kNoSharedMemory},
    {"shared_memory_offset", kNoSharedMemory},
};

absl::Status Refuse(const Parameters& parameters, absl::Span<const Refused> refused,
                    absl::string_view prefix) {
  for (const Refused& one : refused) {
    if (!parameters.contains(std::string(one.name))) continue;
    return Invalid(absl::StrCat(prefix, "parameter '", one.name, "'"), one.why);
  }
  return absl::OkStatus();
}

// The value of an integer parameter; nothing if it is absent.
absl::StatusOr<std::optional<int64_t>> IntegerParameter(const Parameters& parameters,
                                                        const char* name) {
  const auto found = parameters.find(name);
  if (found == parameters.end()) return std::optional<int64_t>();
  const inference::InferParameter& value = found->second;
  if (value.parameter_choice_case() == inference::InferParameter::kUint64Param &&
      value.uint64_param() <= std::numeric_limits<int64_t>::max()) {
    return std::optional<int64_t>(value.uint64_param());
  }
  if (value.parameter_choice_case() == inference::InferParameter::kInt64Param &&
      value.int64_param() >= 0) {
    return std::optional<int64_t>(value.int64_param());
  }
  return Invalid(absl::StrCat("parameter '", name, "'"), "it is not an integer from 0");
}

int64_t TotalBytes(const Pieces& pieces) {
  int64_t total = 0;
  for (absl::string_view piece : pieces) total += piece.size();
  return total;
}

}  // namespace

absl::Status InferRequest::Parse(const grpc::ByteBuffer& bytes) {
  if (bytes.Valid() && !bytes.Dump(&slices_).ok()) {
    return absl::InvalidArgumentError("the request cannot be decompressed");
  }
  ABSL_ASSIGN_OR_RETURN(WireRequest wire, WalkInferRequest(slices_));
  google::protobuf::io::ArrayInputStream fields(wire.fields.data(), wire.fields.size());
  ABSL_RETURN_IF_ERROR(CheckEntries(*inference::ModelInferRequest::descriptor(), &fields));
  if (!message_.ParseFromString(wire.fields)) {
    return absl::InvalidArgumentError("the request is not a ModelInferRequest");
  }
  raw_ = std::move(wire.raw);
  return absl::OkStatus();
}

absl::Status InferRequest::Bind(const ModelSignature& signature) {
  ABSL_RETURN_IF_ERROR(ReadParameters());
  if (!raw_.empty() && static_cast<int>(raw_.size()) != message_.inputs_size()) {
    return absl::InvalidArgumentError(absl::StrCat("raw_input_contents has ", raw_.size(),
                                                   " entries for ", message_.inputs_size(),
                                                   " inputs"));
  }
  inputs_.resize(signature.inputs.size());
  std::vector<bool> seen(signature.inputs.size());
  for (int i = 0; i < message_.inputs_size(); ++i) {
    ABSL_RETURN_IF_ERROR(BindInput(i, signature, &seen));
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
  ABSL_RETURN_IF_ERROR(Refuse(message_.parameters(), kRefusedOfRequests, ""));
  ABSL_ASSIGN_OR_RETURN(const std::optional<int64_t> timeout,
                        IntegerParameter(message_.parameters(), "timeout"));
  if (timeout.value_or(0) > 0) timeout_ = absl::Microseconds(*timeout);
  ABSL_ASSIGN_OR_RETURN(const std::optional<int64_t> priority,
                        IntegerParameter(message_.parameters(), "priority"));
  constexpr int64_t kLowestPriority = 1000;
  if (priority.value_or(0) > 0) {
    priority_ = static_cast<int>(std::min(*priority, kLowestPriority));
  }
  return absl::OkStatus();
}

absl::Status InferRequest::BindInput(int index, const ModelSignature& signature,
                                     std::vector<bool>* seen) {
  const inference::ModelInferRequest::InferInputTensor& input = message_.inputs(index);
  const std::string what = absl::StrCat("input ", Quoted(input.name()));
  const int slot = FindSpec(signature.inputs, input.name());
  if (slot < 0)
    return Invalid(what, absl::StrCat("unknown; the model has ", Names(signature.inputs)));
  if ((*seen)[slot]) return Invalid(what, "given twice");
  (*seen)[slot] = true;
  ABSL_RETURN_IF_ERROR(Refuse(input.parameters(), kRefusedOfTensors, absl::StrCat(what, ": ")));

  const TensorSpec& spec = signature.inputs[slot];
  if (input.datatype() != DatatypeName(spec.type)) {
    return Invalid(what, absl::StrCat("datatype ", Quoted(input.datatype()), " is not ",
                                      DatatypeName(spec.type)));
  }
  ABSL_ASSIGN_OR_RETURN(const Layout layout,
                        LayoutParameter(input.parameters(), spec.dims.size(), what));
  ABSL_ASSIGN_OR_RETURN(Dims dims, LogicalDims(input.shape(), spec, layout, what));
  const std::optional<int64_t> elements = ElementCount(dims);
  const std::optional<int64_t> bytes =
      elements ? CheckedMul(*elements, SizeOf(spec.type)) : std::nullopt;
  if (!bytes) return Invalid(what, "its size overflows");
  absl::StatusOr<Pieces> pieces = InputPieces(index, spec.type, *elements);
  if (!pieces.ok()) return Invalid(what, pieces.status().message());
  inputs_[slot] = InputTensor{std::move(dims), layout, *std::move(pieces)};
  return absl::OkStatus();
}

absl::StatusOr<Pieces> InferRequest::InputPieces(int index, DataType type, int64_t elements) {
  const inference::ModelInferRequest::InferInputTensor& input = message_.inputs(index);
  const bool typed = input.has_contents() && input.contents().ByteSizeLong() > 0;
  if (raw_.empty()) {
    if (!typed) return absl::InvalidArgumentError("has neither raw nor typed contents");
    converted_.push_back(std::make_unique<std::string>());
    ABSL_ASSIGN_OR_RETURN(absl::string_view bytes,
                          TypedBytes(input.contents(), type, elements, converted_.back().get()));
    return Pieces{bytes};
  }
  if (typed) return absl::InvalidArgumentError("has both raw and typed contents");
  const int64_t got = TotalBytes(raw_[index]);
  if (got != elements * SizeOf(type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "raw contents have ", got, " bytes, the shape needs ", elements * SizeOf(type)));
  }
  return std::move(raw_[index]);
}

absl::Status InferRequest::BindOutputs(const ModelSignature& signature) {
  if (message_.outputs().empty()) {
    for (size_t i = 0; i < signature.outputs.size(); ++i) {
      outputs_.push_back({static_cast<int>(i), Layout::kNchw});
    }
    return absl::OkStatus();
  }
  std::vector<bool> seen(signature.outputs.size());
  for (const inference::ModelInferRequest::InferRequestedOutputTensor& output :
       message_.outputs()) {
    const std::string what = absl::StrCat("output ", Quoted(output.name()));
    const int slot = FindSpec(signature.outputs, output.name());
    if (slot < 0) {
      return Invalid(what, absl::StrCat("unknown; the model has ", Names(signature.outputs)));
    }
    if (seen[slot]) return Invalid(what, "asked for twice");
    seen[slot] = true;
    ABSL_RETURN_IF_ERROR(Refuse(output.parameters(), kRefusedOfTensors, absl::StrCat(what, ": ")));
    ABSL_ASSIGN_OR_RETURN(
        const Layout layout,
        LayoutParameter(output.parameters(), signature.outputs[slot].dims.size(), what));
    outputs_.push_back({slot, layout});
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
