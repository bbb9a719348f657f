// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::StatusOr<Place> PackScaleAndShift(ValueId scale, ValueId shift, OperationContext& context) {
  ConcatDesc desc{.axis = 0};
  std::vector<Place> rows;
  for (ValueId row : {scale, shift}) {
    ABSL_ASSIGN_OR_RETURN(rows.emplace_back(), context.RowMajorOfRank(row, 2));
    desc.srcs.push_back(rows.back().desc);
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, runtime::PlainDesc({2, context.value(scale).dims[0]},
                                                     DataType::kF32, /*channels_last=*/false));
  ABSL_ASSIGN_OR_RETURN(auto concat, context.Create(desc));
  const Place both = context.plan().NewPlace(desc.dst);
  Bindings bindings = MultipleSources(rows);
  bindings.push_back({kArgDst, both.buffer});
  context.Emit(std::move(concat), std::move(bindings), "scale and shift as one tensor");
  return both;
}

namespace {

// Over the source or the addend, if one of them is dead and the other one elsewhere.
Place PlaceOfResult(const Place& src, const Place* addend, PlanBuilder& plan) {
  const bool apart = addend == nullptr || !plan.MayOverlap(src.buffer, addend->buffer);
  if (apart && plan.MayOverwrite(src)) return src;
  if (addend != nullptr && apart && plan.MayOverwrite(*addend)) return *addend;
  return plan.NewPlace(src.desc);
}

constexpr int kStatistics[] = {kArgMean, kArgVariance};

absl::Status NormalizeByGiven(const BatchNormalizationDesc& desc, const Place& src,
                              Bindings bindings, OperationContext& context) {
  for (size_t i : {0, 1}) {
    ABSL_ASSIGN_OR_RETURN(const Place given, context.RowMajor(context.src(3 + i)));
    bindings.push_back({kStatistics[i], given.buffer});
    context.plan().Consume(context.src(3 + i));
  }
  return context.EmitUnaryInPlace(context.Create(desc), src, std::move(bindings));
}

// The results that the step writes beside dst: mean, variance and, with relu, what it let through,
// whether anything reads that or not.
std::vector<Place> PlaceFurtherResults(const network::BatchNormalization& norm,
                                       const Primitive& primitive, Bindings* bindings,
                                       OperationContext& context) {
  std::vector<int> args(std::begin(kStatistics), std::end(kStatistics));
  if (norm.relu) args.push_back(kArgWorkspace);
  std::vector<Place> places;
  for (int arg : args) {
    places.push_back(context.plan().NewPlace(primitive.Desc(arg)));
    bindings->push_back({arg, places.back().buffer});
  }
  return places;
}

std::string RemarkOf(const network::BatchNormalization& norm) {
  return absl::StrCat(norm.adds ? "adds the branch before it" : "",
                      norm.adds && norm.relu ? ", " : "", norm.relu ? "and relu" : "");
}

absl::Status NormalizeByBatch(const network::BatchNormalization& norm, BatchNormalizationDesc desc,
                              const Place& src, Bindings bindings, OperationContext& context) {
  desc.prop_kind = PropKind::kForwardTraining;
  desc.use_global_stats = false;
  desc.fuse_relu = norm.relu;
  desc.relu_limit = norm.relu_limit;
  Place addend;
  if (norm.adds) {
    ABSL_ASSIGN_OR_RETURN(addend, context.InLayout(context.src(3), src.desc));
    bindings.push_back({kArgSrc1, addend.buffer});
    context.plan().Consume(context.src(3));
    desc.addend = src.desc;
  }
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc));
  const std::vector<Place> further = PlaceFurtherResults(norm, *primitive, &bindings, context);
  context.plan().Consume(context.src());
  bindings.push_back({kArgSrc, src.buffer});
  const Place dst = PlaceOfResult(src, norm.adds ? &addend : nullptr, context.plan());
  bindings.push_back({kArgDst, dst.buffer});
  context.Emit(std::move(primitive), std::move(bindings), RemarkOf(norm));
  const size_t results = 2 + (norm.saves_passed ? 1 : 0);
  for (size_t i = 0; i < results; ++i) context.plan().Bind(context.more_dst(i), further[i]);
  return context.BindResult(dst);
}

}  // namespace

// Keeps the layout of its source.
absl::Status LowerBatchNormalization(const network::BatchNormalization& norm,
                                     OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  ABSL_ASSIGN_OR_RETURN(const Place both,
                        PackScaleAndShift(context.src(1), context.src(2), context));
  for (size_t i : {1, 2}) context.plan().Consume(context.src(i));
  const BatchNormalizationDesc desc{.src = src.desc, .dst = src.desc, .epsilon = norm.epsilon};
  Bindings bindings = {{kArgWeights, both.buffer}};
  return norm.uses_given_statistics
             ? NormalizeByGiven(desc, src, std::move(bindings), context)
             : NormalizeByBatch(norm, desc, src, std::move(bindings), context);
}

}  // namespace tilewire::lowering
