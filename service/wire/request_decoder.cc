// SPDX-License-Identifier: Apache-2.0
#include "service/wire/request_decoder.h"

#include <algorithm>
#include <limits>

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

template <typename Shape>
absl::StatusOr<Dims> LogicalDims(const Shape& shape, const TensorSpec& spec, Layout layout,
                                 absl::string_view what) {
  if (shape.size() != spec.dims.size()) {
    return Invalid(what,
                   absl::StrCat("rank ", shape.size(), " does not match ", SpecText(spec, layout)));
  }
  const Dims given(shape.begin(), shape.end());
  const Dims dims = ToLogical(given, layout);
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 1 || (spec.dims[i] >= 0 && dims[i] != spec.dims[i])) {
      return Invalid(what, absl::StrCat("shape ", DimsToString(given), " does not match ",
                                        SpecText(spec, layout)));
    }
  }
  return dims;
}

// A sequence carries state from request to request; ignoring it would give other answers than the
// client expects.
template <typename Parameters>
absl::Status RefuseSequences(const Parameters& parameters) {
  for (absl::string_view name : {"sequence_id", "sequence_start", "sequence_end"}) {
    if (!parameters.contains(std::string(name))) continue;
    return Invalid(absl::StrCat("parameter '", name, "'"),
                   "sequences are not supported: every request stands alone; leave it out");
  }
  return absl::OkStatus();
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
  ABSL_RETURN_IF_ERROR(RefuseSequences(message_.parameters()));
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

absl::Status InferRequest::BindInput(int index, const ModelSignature& signature,
                                     std::vector<bool>* seen) {
  const inference::ModelInferRequest::InferInputTensor& input = message_.inputs(index);
  const std::string what = absl::StrCat("input ", Quoted(input.name()));
  const int slot = FindSpec(signature.inputs, input.name());
  if (slot < 0)
    return Invalid(what, absl::StrCat("unknown; the model has ", Names(signature.inputs)));
  if ((*seen)[slot]) return Invalid(what, "given twice");
  (*seen)[slot] = true;

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
    ABSL_ASSIGN_OR_RETURN(
        const Layout layout,
        LayoutParameter(output.parameters(), signature.outputs[slot].dims.size(), what));
    outputs_.push_back({slot, layout});
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
