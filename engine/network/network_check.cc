// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network_check.h"

#include <cstdint>
#include <string>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/attention.h"

namespace tilewire::network {
namespace {

using Text = absl::string_view;

constexpr Text kSameDims = "sources of its result's dims";
constexpr Text kItsAxis = "an axis of its source, and the same sizes along the others";

bool IsAxis(int axis, const Dims& dims) {
  return axis >= 0 && axis < static_cast<int>(dims.size());
}

// Whether the dims are equal but for those of `axis`, which both have.
bool DifferAlong(int axis, const Dims& a, const Dims& b) {
  if (a.size() != b.size() || !IsAxis(axis, a)) return false;
  Dims other = b;
  other[axis] = a[axis];
  return a == other;
}

bool AllLike(const Dims& dims, const Tensors& tensors) {
  return absl::c_all_of(tensors.srcs, [&](const Value* src) { return src->dims == dims; });
}

bool KeepsType(const Tensors& tensors) {
  return absl::c_all_of(tensors.srcs,
                        [&](const Value* src) { return src->type == tensors.dst->type; });
}

bool IsReal(const Value* value) { return value->type == DataType::kF32; }

bool AllReal(const Tensors& tensors) {
  return IsReal(tensors.dst) && absl::c_all_of(tensors.srcs, IsReal);
}

// Dims that a tensor of `whole` repeats along dimensions of 1, and before the first.
bool AreBroadcastTo(const Dims& whole, const Dims& dims) {
  if (dims.size() > whole.size()) return false;
  const size_t missing = whole.size() - dims.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] != 1 && dims[d] != whole[missing + d]) return false;
  }
  return true;
}

// One entry, or one per index of an axis.
bool ArePerIndex(size_t entries, int axis, const Dims& dims) {
  return IsAxis(axis, dims) && (entries == 1 || static_cast<int64_t>(entries) == dims[axis]);
}

Text Lack(const Activation&, const Tensors& tensors) {
  if (tensors.src() != tensors.result()) return kSameDims;
  return AllReal(tensors) ? "" : "real numbers";
}

Text Lack(const Softmax& softmax, const Tensors& tensors) {
  if (!IsAxis(softmax.axis, tensors.src()) || tensors.src() != tensors.result()) return kItsAxis;
  return AllReal(tensors) ? "" : "real numbers";
}

Text Lack(const Sum&, const Tensors& tensors) {
  if (!AllLike(tensors.result(), tensors)) return kSameDims;
  return AllReal(tensors) ? "" : "real numbers";
}

Text Lack(const Concat& concat, const Tensors& tensors) {
  int64_t total = 0;
  for (const Value* src : tensors.srcs) {
    if (!DifferAlong(concat.axis, src->dims, tensors.result())) return kItsAxis;
    total += src->dims[concat.axis];
  }
  if (total != tensors.result()[concat.axis]) return "sources as long as its result";
  return KeepsType(tensors) ? "" : "sources of its result's type";
}

Text Lack(const Shuffle& shuffle, const Tensors& tensors) {
  if (tensors.src() != tensors.result() || !IsAxis(shuffle.axis, tensors.src())) return kItsAxis;
  if (shuffle.group_size < 1 || tensors.src()[shuffle.axis] % shuffle.group_size != 0)
    return "whole groups";
  return KeepsType(tensors) ? "" : "a source of its result's type";
}

Text Lack(const Reshape&, const Tensors& tensors) {
  if (ElementCount(tensors.src()) != ElementCount(tensors.result())) return "as many elements";
  return KeepsType(tensors) ? "" : "a source of its result's type";
}

Text Lack(const Convert&, const Tensors& tensors) {
  return tensors.src() == tensors.result() ? "" : kSameDims;
}

Text Lack(const Transpose& transpose, const Tensors& tensors) {
  const Dims &src = tensors.src(), &dst = tensors.result();
  bool fits = transpose.order.size() == src.size() && dst.size() == src.size();
  std::vector<bool> seen(src.size(), false);
  for (size_t d = 0; fits && d < src.size(); ++d) {
    const int from = transpose.order[d];
    fits = IsAxis(from, src) && !seen[from] && dst[d] == src[from];
    if (fits) seen[from] = true;
  }
  if (!fits) return "an order of its source's dimensions";
  return KeepsType(tensors) ? "" : "a source of its result's type";
}

Text Lack(const Select& select, const Tensors& tensors) {
  const Dims &src = tensors.src(), &dst = tensors.result();
  if (src.size() != dst.size() || select.from.size() != dst.size()) return "a list per dimension";
  for (size_t d = 0; d < dst.size(); ++d) {
    int64_t count = select.from[d].empty() ? src[d] : 0;
    for (const IndexRun& run : select.from[d]) count += run.count;
    if (count != dst[d]) return "as many indices as its result has";
  }
  return KeepsType(tensors) ? "" : "a source of its result's type";
}

Text Lack(const Literal& literal, const Tensors& tensors) {
  if (literal.constant == nullptr) return "elements";
  const Constant& constant = *literal.constant;
  if (ElementCount(constant.dims) != ElementCount(tensors.result())) return "as many elements";
  const size_t in_memory = constant.is_float ? constant.floats.size() : constant.ints.size();
  const bool has_all = static_cast<int64_t>(in_memory) == constant.count();
  if (!has_all && constant.stored == nullptr) return "elements";
  const bool fits = constant.is_float ? tensors.dst->type != DataType::kBool
                                      : tensors.dst->type != DataType::kF32;
  return fits ? "" : "elements that its result's type holds";
}

Text Lack(const Elementwise& elementwise, const Tensors& tensors) {
  if (static_cast<int>(tensors.srcs.size()) != ArityOf(elementwise.function))
    return "as many sources as its function takes";
  const bool fits = absl::c_all_of(
      tensors.srcs, [&](const Value* src) { return AreBroadcastTo(tensors.result(), src->dims); });
  return fits ? "" : "sources that are broadcast to its result";
}

Text Lack(const Reduce&, const Tensors& tensors) {
  const bool fits = tensors.src().size() == tensors.result().size() &&
                    AreBroadcastTo(tensors.src(), tensors.result());
  return fits ? "" : "a source of its result's rank";
}

Text Lack(const Interpolate& interpolate, const Tensors& tensors) {
  const int axis = interpolate.axis;
  if (!DifferAlong(axis, tensors.src(), tensors.result())) return kItsAxis;
  const int64_t size = tensors.src()[axis];
  const int64_t taps = interpolate.taps * tensors.result()[axis];
  const bool fits = interpolate.taps >= 1 &&
                    static_cast<int64_t>(interpolate.indices.size()) == taps &&
                    static_cast<int64_t>(interpolate.weights.size()) == taps;
  if (!fits) return "an index and a weight per tap";
  const bool inside = absl::c_all_of(interpolate.indices,
                                     [size](int64_t index) { return index >= 0 && index < size; });
  return inside ? "" : "indices inside its source";
}

Text Lack(const Lrn&, const Tensors& tensors) {
  return tensors.src() == tensors.result() && tensors.src().size() >= 2 ? "" : kSameDims;
}

Text Lack(const LayerNormalization& norm, const Tensors& tensors) {
  Dims rows = tensors.src();
  if (rows != tensors.result() || rows.size() < 2 || rows.size() > 5) return kSameDims;
  const Dims row = {rows.back()};
  rows.pop_back();
  const size_t known = norm.reads_parameters || norm.scale.empty() ? 0 : row[0];
  const bool fits = norm.scale.size() == known && norm.shift.size() == known;
  const bool reads = !norm.reads_parameters || (tensors.src(1) == row && tensors.src(2) == row);
  if (!fits || !reads) return "a scale and a shift per element of its rows";
  const bool are_saved = absl::c_all_of(tensors.more_results, [&rows](const Value* value) {
    return value->dims == rows && IsReal(value);
  });
  if (!are_saved) return "a mean and a variance per row";
  return AllReal(tensors) ? "" : "real numbers";
}

Text Lack(const BatchNormalization& norm, const Tensors& tensors) {
  const Dims& src = tensors.src();
  if (src != tensors.result() || src.size() < 2 || src.size() > 5) return kSameDims;
  if (norm.uses_given_statistics && (norm.adds || norm.relu))
    return "statistics of its own to add or apply relu";
  if (norm.saves_passed && !norm.relu) return "relu to save what it let through";
  std::vector<const Value*> of_channels(tensors.srcs.begin() + 1, tensors.srcs.end());
  if (norm.adds) {
    if (of_channels.back()->dims != src) return kSameDims;
    of_channels.pop_back();
  }
  of_channels.insert(of_channels.end(), tensors.more_results.begin(), tensors.more_results.end());
  if (norm.saves_passed) {
    if (of_channels.back()->dims != src || of_channels.back()->type != DataType::kU8)
      return "bytes of its dims for what relu let through";
    of_channels.pop_back();
  }
  const bool fits = absl::c_all_of(of_channels, [&](const Value* value) {
    return value->dims == Dims{src[1]} && IsReal(value);
  });
  if (!fits) return "a number per channel for each of its parameters";
  return AllReal(tensors) ? "" : "real numbers";
}

bool AreFactors(const Tensors& tensors, size_t second = 1) {
  const Dims &a = tensors.src(0), &b = tensors.src(second), &dst = tensors.result();
  const size_t rank = dst.size();
  if (rank < 2 || a.size() != rank || b.size() != rank) return false;
  const auto lead = [rank](const Dims& dims) { return Dims(dims.begin(), dims.end() - 2); };
  return AreBroadcastTo(lead(dst), lead(a)) && AreBroadcastTo(lead(dst), lead(b)) &&
         a[rank - 1] == b[rank - 2] && dst[rank - 2] == a[rank - 2] && dst[rank - 1] == b[rank - 1];
}

Text Lack(const Matmul&, const Tensors& tensors) {
  if (!AreFactors(tensors)) return "matrices of its result's rank that fit each other";
  return KeepsType(tensors) ? "" : "sources of its result's type";
}

Text Lack(const IntegerMatmul&, const Tensors& tensors) {
  if (!AreFactors(tensors)) return "matrices of its result's rank that fit each other";
  const bool bytes = IsByte(tensors.srcs[0]->type) && IsByte(tensors.srcs[1]->type);
  return bytes ? "" : "integers of 8 bits";
}

Text Lack(const DynamicMatmul&, const Tensors& tensors) {
  if (!AreFactors(tensors, 2)) return "matrices of its result's rank that fit each other";
  if (tensors.src(1) != Dims{2} || tensors.src(3) != Dims{2}) return "a range for each matrix";
  const bool bytes = IsByte(tensors.srcs[0]->type) && IsByte(tensors.srcs[2]->type);
  return bytes && IsReal(tensors.dst) ? "" : "integers of 8 bits, and a result of real numbers";
}

Text Lack(const Attention&, const Tensors& tensors) {
  std::vector<Dims> dims;
  for (const Value* src : tensors.srcs) dims.push_back(src->dims);
  if (!FoldHeads(dims)) return "queries, keys, values and masks that fit each other";
  Dims result = dims[0];
  result.back() = dims[2].back();
  if (result != tensors.result()) return "a row of values per query";
  return AllReal(tensors) ? "" : "real numbers";
}

Text Lack(const TopK& top, const Tensors& tensors) {
  return DifferAlong(top.axis, tensors.src(), tensors.result()) &&
                 tensors.result()[top.axis] <= tensors.src()[top.axis]
             ? ""
             : kItsAxis;
}

Text Lack(const RoiAlign&, const Tensors& tensors) {
  const Dims &images = tensors.src(), &regions = tensors.src(1), &dst = tensors.result();
  const bool fits = images.size() == 4 && regions.size() == 2 && regions[1] == 4 &&
                    tensors.src(2) == Dims{regions[0]} && dst.size() == 4 && dst[0] == regions[0] &&
                    dst[1] == images[1];
  return fits ? "" : "images, and a region and an image per result";
}

Text Lack(const GatherChannels& gather, const Tensors& tensors) {
  for (const Value* src : tensors.srcs) {
    if (!DifferAlong(1, src->dims, tensors.result())) return kItsAxis;
  }
  if (static_cast<int64_t>(gather.from.size()) != tensors.result()[1])
    return "as many channels as its result has";
  const bool inside = absl::c_all_of(gather.from, [&](const GatherChannels::From& from) {
    return from.src >= 0 && from.src < static_cast<int>(tensors.srcs.size()) && from.channel >= 0 &&
           from.channel < tensors.src(from.src)[1];
  });
  return inside ? "" : "channels of its sources";
}

Text Lack(const Gather& gather, const Tensors& tensors) {
  if (!IsAxis(gather.axis, tensors.src())) return kItsAxis;
  if (!AreGathered(gather.axis, tensors.src(), tensors.src(1), tensors.result()))
    return "an index per part of its result";
  return tensors.srcs[0]->type == tensors.dst->type ? "" : "a source of its result's type";
}

Text Lack(const Quantize& quantize, const Tensors& tensors) {
  const bool fits = ArePerIndex(quantize.params.size(), quantize.axis, tensors.src()) &&
                    tensors.src() == tensors.result();
  if (!fits) return "parameters of its axis";
  return IsReal(tensors.srcs[0]) && IsByte(tensors.dst->type) ? "" : "real numbers, and bytes";
}

Text Lack(const QuantizationRange&, const Tensors& tensors) {
  return tensors.result() == Dims{2} && AllReal(tensors) ? "" : "a scale and a zero point";
}

Text Lack(const DynamicQuantize&, const Tensors& tensors) {
  const bool fits = tensors.src() == tensors.result() && tensors.src(1) == Dims{2};
  return fits && IsReal(tensors.srcs[0]) ? "" : "real numbers and their range";
}

Text Lack(const Dequantize& dequantize, const Tensors& tensors) {
  const bool fits = ArePerIndex(dequantize.params.size(), dequantize.axis, tensors.src()) &&
                    tensors.src() == tensors.result();
  if (!fits) return "parameters of its axis";
  const Value& src = *tensors.srcs[0];
  return (IsReal(&src) || IsByte(src.type)) && IsReal(tensors.dst) ? "" : "bytes";
}

Text Lack(const ScaleBytes& bytes, const Tensors& tensors) {
  const bool fits = ArePerIndex(bytes.scale.size(), bytes.axis, tensors.src()) &&
                    bytes.shift.size() == bytes.scale.size() && tensors.src() == tensors.result();
  if (!fits) return "a scale and a shift per index of its axis";
  return IsByte(tensors.srcs[0]->type) && IsReal(tensors.dst) ? "" : "bytes";
}

Text Lack(const IntegerSum& sum, const Tensors& tensors) {
  if (!AllLike(tensors.result(), tensors)) return kSameDims;
  if (sum.src_quantization.size() != tensors.srcs.size()) return "parameters of each source";
  const bool bytes =
      absl::c_all_of(tensors.srcs, [](const Value* src) { return IsByte(src->type); });
  return bytes && IsByte(tensors.dst->type) ? "" : "bytes";
}

// How many sources an operation takes, at least and at most.
struct Count {
  size_t least = 1, most = 1;
};
constexpr Count kAnyNumber = {1, SIZE_MAX};

template <typename Params>
constexpr Count SourcesOf(const Params&) {
  return {};
}
constexpr Count SourcesOf(const Literal&) { return {0, 0}; }
constexpr Count SourcesOf(const ConvolutionDataGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const ConvolutionWeightsGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const MatmulGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const ActivationGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const PoolingGradient&) { return {1, 2}; }
constexpr Count SourcesOf(const SoftmaxGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const BatchNormalizationGradient& gradient) {
  return gradient.forward.relu ? Count{6, 6} : Count{5, 5};
}
constexpr Count SourcesOf(const LrnGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const ReduceGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const GatherGradient&) { return {2, 2}; }
constexpr Count SourcesOf(const ComputedConvolution&) { return {2, 3}; }
constexpr Count SourcesOf(const ComputedDeconvolution&) { return {2, 3}; }
constexpr Count SourcesOf(const DynamicConvolution&) { return {2, 2}; }
constexpr Count SourcesOf(const DynamicInnerProduct&) { return {2, 2}; }
constexpr Count SourcesOf(const DynamicQuantize&) { return {2, 2}; }
constexpr Count SourcesOf(const Matmul&) { return {2, 2}; }
constexpr Count SourcesOf(const IntegerMatmul&) { return {2, 2}; }
constexpr Count SourcesOf(const DynamicMatmul&) { return {4, 4}; }
constexpr Count SourcesOf(const Gather&) { return {2, 2}; }
constexpr Count SourcesOf(const Loss&) { return {2, 2}; }
constexpr Count SourcesOf(const Elementwise&) { return {1, 3}; }
constexpr Count SourcesOf(const RoiAlign&) { return {3, 3}; }
constexpr Count SourcesOf(const Attention&) { return {3, SIZE_MAX}; }
constexpr Count SourcesOf(const Sum&) { return kAnyNumber; }
constexpr Count SourcesOf(const Concat&) { return kAnyNumber; }
constexpr Count SourcesOf(const GatherChannels&) { return kAnyNumber; }
constexpr Count SourcesOf(const IntegerSum&) { return kAnyNumber; }
constexpr Count SourcesOf(const Rnn&) { return kAnyNumber; }
constexpr Count SourcesOf(const LayerNormalization& norm) {
  return norm.reads_parameters ? Count{3, 3} : Count{};
}
constexpr Count SourcesOf(const LayerNormalizationGradient& gradient) {
  return gradient.scales ? Count{5, 5} : Count{4, 4};
}
constexpr Count SourcesOf(const BatchNormalization& norm) {
  const size_t count = (norm.uses_given_statistics ? 5 : 3) + (norm.adds ? 1 : 0);
  return {count, count};
}

template <typename Params>
constexpr size_t FurtherResultsOf(const Params&) {
  return 0;
}
constexpr size_t FurtherResultsOf(const Loss& loss) { return loss.gives_gradient ? 1 : 0; }
constexpr size_t FurtherResultsOf(const BatchNormalization& norm) {
  return (norm.uses_given_statistics ? 0 : 2) + (norm.saves_passed ? 1 : 0);
}

constexpr size_t FurtherResultsOf(const LayerNormalization& norm) {
  return norm.saves_statistics ? 2 : 0;
}
constexpr size_t FurtherResultsOf(const LayerNormalizationGradient& gradient) {
  return gradient.by_parameters ? 2 : 0;
}
constexpr size_t FurtherResultsOf(const Pooling& pooling) { return pooling.saves_places ? 1 : 0; }
constexpr size_t FurtherResultsOf(const ConvolutionWeightsGradient& gradient) {
  return gradient.by_bias ? 1 : 0;
}
constexpr size_t FurtherResultsOf(const BatchNormalizationGradient& gradient) {
  return (gradient.by_parameters ? 2 : 0) + (gradient.by_addend ? 1 : 0);
}

// Goes through the operations in their order.
class Check {
 public:
  explicit Check(const Network& network)
      : network_(network), computed_(network.values.size(), false) {}

  absl::Status Run() {
    for (ValueId input : network_.inputs) {
      if (!IsValue(input)) return Internal("an input that is not a value");
      computed_[input] = true;
    }
    for (const Parameter& parameter : network_.parameters) {
      if (!MayCompute(parameter.value))
        return Internal("parameter '", parameter.name, "' without a value of its own");
      computed_[parameter.value] = true;
    }
    for (const Operation& operation : network_.operations) {
      const Text lack = LackOf(operation);
      if (!lack.empty()) return Refused(operation, lack);
      computed_[operation.dst] = true;
      for (ValueId dst : operation.more_dsts) computed_[dst] = true;
    }
    for (ValueId output : network_.outputs) {
      if (!IsValue(output) || !computed_[output])
        return Internal("an output that nothing computes");
    }
    return absl::OkStatus();
  }

 private:
  bool IsValue(ValueId id) const {
    if (id < 0 || id >= static_cast<ValueId>(network_.values.size())) return false;
    const Dims& dims = network_.values[id].dims;
    return !dims.empty() && dims.size() <= kMaxRank && ElementCount(dims).value_or(-1) >= 0;
  }
  bool IsComputed(ValueId id) const { return IsValue(id) && computed_[id]; }

  bool AddendsAreComputed(const std::vector<FusedStep>& steps) const {
    return absl::c_all_of(steps, [this](const FusedStep& step) {
      return step.kind != FusedStep::Kind::kSum || IsComputed(step.addend);
    });
  }

  bool MayCompute(ValueId id) const { return IsValue(id) && !computed_[id]; }

  Text LackOf(const Operation& operation) const {
    if (!MayCompute(operation.dst)) return "a result of its own";
    Tensors tensors{{}, &network_.values[operation.dst], network_};
    for (ValueId dst : operation.more_dsts) {
      const bool is_alone = dst != operation.dst && absl::c_count(operation.more_dsts, dst) == 1;
      if (!MayCompute(dst) || !is_alone) return "further results of its own";
      tensors.more_results.push_back(&network_.values[dst]);
    }
    for (ValueId src : operation.srcs) {
      if (!IsComputed(src)) return "sources that are computed before it";
      tensors.srcs.push_back(&network_.values[src]);
    }
    return std::visit(
        [&](const auto& params) -> Text {
          const Count count = SourcesOf(params);
          if (tensors.srcs.size() < count.least || tensors.srcs.size() > count.most)
            return "as many sources as it takes";
          if (tensors.more_results.size() != FurtherResultsOf(params))
            return "as many results as it gives";
          if constexpr (requires { params.fused; }) {
            if (!AddendsAreComputed(params.fused)) return "addends that are computed before it";
          }
          return Lack(params, tensors);
        },
        operation.params);
  }

  absl::Status Refused(const Operation& operation, Text lack) const {
    std::string text = absl::StrCat("node '", operation.name.substr(0, 200), "' lacks ", lack, ":");
    const auto append = [&](ValueId id) {
      if (!IsValue(id)) return absl::StrAppend(&text, " ?");
      const Value& value = network_.values[id];
      absl::StrAppend(&text, " ", DataTypeName(value.type), DimsToString(value.dims));
    };
    for (ValueId src : operation.srcs) append(src);
    absl::StrAppend(&text, " ->");
    append(operation.dst);
    return Internal(text, "; this is a defect of the engine");
  }

  const Network& network_;
  std::vector<bool> computed_;
};

}  // namespace

bool AreGathered(int axis, const Dims& src, const Dims& indices, const Dims& dst) {
  if (!IsAxis(axis, src)) return false;
  Dims dims(src.begin(), src.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), src.begin() + axis + 1, src.end());
  // An index without dimensions is a value of [1].
  return ElementCount(dims) == ElementCount(dst);
}

absl::Status CheckNetwork(const Network& network) { return Check(network).Run(); }

}  // namespace tilewire::network
