// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/integer_layout.h"

#include <set>
#include <variant>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

template <typename... Params>
bool IsAnyOf(const network::Operation& operation) {
  return (std::holds_alternative<Params>(operation.params) || ...);
}

// Whether its result has the layout of its sources.
bool KeepsLayout(const network::Operation& operation) {
  return IsAnyOf<network::Quantize, network::Dequantize, network::IntegerSum, network::ScaleBytes,
                 network::Activation, network::Elementwise, network::Sum, network::Convert,
                 network::Concat>(operation);
}

bool HasWindows(const network::Operation& operation) {
  return IsAnyOf<network::Convolution, network::ComputedConvolution, network::Deconvolution,
                 network::ComputedDeconvolution, network::DynamicConvolution, network::Pooling,
                 network::MaxWindow, network::Interpolate>(operation);
}

// Finds readers of a value, and of what keeps its layout.
class Readers {
 public:
  explicit Readers(const network::Network& network) : network_(network) {}

  bool HaveWindows(ValueId value) {
    if (!seen_.insert(value).second) return false;
    for (const network::Operation& operation : network_.operations) {
      if (!absl::c_linear_search(operation.srcs, value)) continue;
      if (HasWindows(operation)) return true;
      if (KeepsLayout(operation) && HaveWindows(operation.dst)) return true;
    }
    return false;
  }

 private:
  const network::Network& network_;
  std::set<ValueId> seen_;
};

absl::StatusOr<bool> AreRowMajor(OperationContext& context) {
  for (const ValueId src : context.srcs()) {
    if (context.plan().IsUnplaced(src)) continue;
    ABSL_ASSIGN_OR_RETURN(const Place home, context.Home(src));
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc row_major, context.RowMajorDesc(src));
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc same_type,
                          row_major.WithDataType(home.desc.data_type()));
    if (home.desc != same_type) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<MemoryDesc> IntegerDesc(OperationContext& context, bool row_major) {
  const network::Value& value = context.dst_value();
  if (!row_major && !Readers(context.network()).HaveWindows(context.dst())) {
    ABSL_ASSIGN_OR_RETURN(row_major, AreRowMajor(context));
  }
  return runtime::PlainDesc(value.dims, value.type, /*channels_last=*/!row_major);
}

}  // namespace tilewire::lowering
