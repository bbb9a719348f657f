// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {

// The parameters' gradients are sums that the gradient of src takes anyway.
absl::Status AppendGradients(const BatchNormalization& norm, GradientContext& context) {
  const bool given = norm.uses_given_statistics;
  const ValueId mean = given ? context.src(3) : context.more_dst(0);
  const ValueId variance = given ? context.src(4) : context.more_dst(1);
  if (given && (context.Wants(3) || context.Wants(4)))
    return absl::UnimplementedError("statistics that are given have no gradients");
  const bool by_parameters = context.Wants(1) || context.Wants(2);
  const ValueId by_src =
      context.Append(BatchNormalizationGradient{norm, by_parameters},
                     {context.gradient(), context.src(0), context.src(1), mean, variance},
                     context.dims(context.src()));
  for (size_t i : {1, 2}) {
    if (!by_parameters) break;
    const ValueId by_parameter = context.AppendResult(context.dims(context.src(i)));
    if (context.Wants(i)) context.Add(i, by_parameter);
  }
  if (context.Wants(0)) context.Add(0, by_src);
  return absl::OkStatus();
}

}  // namespace tilewire::network
