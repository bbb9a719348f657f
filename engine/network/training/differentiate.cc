// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/differentiate.h"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/network/operation_rows.h"
#include "engine/network/training/gradient_context.h"
#include "engine/network/training/gradients/gradients.h"
#include "engine/network/training/merged_gradients.h"
#include "engine/network/value_uses.h"

namespace tilewire::network {
namespace {

// Whether small changes of source i change the result: not where it chooses, or where the result is
// a truth value or an index.
bool IsContinuousIn(const Operation& operation, size_t i) {
  if (const auto* elementwise = std::get_if<Elementwise>(&operation.params))
    return !functions::IsPredicate(elementwise->function) &&
           (elementwise->function != Function::kWhere || i > 0);
  if (const auto* top = std::get_if<TopK>(&operation.params)) return !top->indices;
  if (const auto* window = std::get_if<MaxWindow>(&operation.params))
    return window->result == MaxWindow::Result::kElement;
  return !std::holds_alternative<Gather>(operation.params) || i == 0;
}

// Appends the gradients of the sources of an operation of one kind. The operation is a copy, since
// the network grows.
template <typename Params>
struct GradientRow {
  static absl::Status Append(const Operation& operation, GradientContext& context) {
    const Params& params = std::get<Params>(operation.params);
    if constexpr (requires { AppendGradients(params, context); }) {
      return AppendGradients(params, context);
    } else {
      return Unimplemented("what computes with integers, and losses, have no gradient here");
    }
  }
  static constexpr auto kRow = &GradientRow::Append;
};

// One call of Differentiate().
class Differentiation {
 public:
  explicit Differentiation(const Network& forward)
      : network_(forward),
        forward_operations_(forward.operations.size()),
        is_wanted_(forward.values.size(), false),
        contributions_(forward.values.size()) {}

  absl::StatusOr<std::vector<ValueId>> Run(absl::Span<const GradientSeed> seeds,
                                           absl::Span<const ValueId> by) {
    FindWanted(seeds, by);
    for (const GradientSeed& seed : seeds) {
      if (is_wanted_[seed.value]) contributions_[seed.value].push_back(seed.gradient);
    }
    for (size_t i = forward_operations_; i-- > 0;) ABSL_RETURN_IF_ERROR(Visit(i));
    if (!refusals_.empty()) return absl::UnimplementedError(refusals_);
    std::vector<ValueId> gradients;
    for (ValueId value : by) {
      ABSL_ASSIGN_OR_RETURN(gradients.emplace_back(), GradientOf(value));
    }
    ExchangeTransposedGradients(forward_operations_, gradients, &network_);
    ExchangePooledRelus(forward_operations_, gradients, &network_);
    DropUnread(gradients);
    return gradients;
  }

  Network Take() && { return std::move(network_); }

 private:
  bool IsReal(ValueId value) const { return network_.values[value].type == DataType::kF32; }

  // Per value: whether one of `by` leads to it.
  std::vector<bool> ReachedFrom(absl::Span<const ValueId> by) const {
    std::vector<bool> reached(network_.values.size(), false);
    for (ValueId value : by) reached[value] = IsReal(value);
    for (const Operation& operation : network_.operations) {
      for (size_t i = 0; i < operation.srcs.size(); ++i) {
        if (!reached[operation.srcs[i]] || !IsContinuousIn(operation, i)) continue;
        reached[operation.dst] = reached[operation.dst] || IsReal(operation.dst);
        for (ValueId more : operation.more_dsts) reached[more] = reached[more] || IsReal(more);
      }
    }
    return reached;
  }

  // Values on a way from one of `by` to a seed.
  void FindWanted(absl::Span<const GradientSeed> seeds, absl::Span<const ValueId> by) {
    const std::vector<bool> reached = ReachedFrom(by);
    std::vector<bool> leads(network_.values.size(), false);
    for (const GradientSeed& seed : seeds) leads[seed.value] = true;
    for (size_t op = forward_operations_; op-- > 0;) {
      const Operation& operation = network_.operations[op];
      const bool is_on_way =
          leads[operation.dst] ||
          absl::c_any_of(operation.more_dsts, [&leads](ValueId more) { return leads[more]; });
      for (size_t i = 0; is_on_way && i < operation.srcs.size(); ++i)
        if (IsContinuousIn(operation, i)) leads[operation.srcs[i]] = true;
    }
    for (size_t value = 0; value < leads.size(); ++value)
      is_wanted_[value] = leads[value] && reached[value];
  }

  // All contributions to the gradient together: their sum, or the parts of a value that was split.
  absl::StatusOr<ValueId> GradientOf(ValueId value) {
    std::vector<ValueId>& parts = contributions_[value];
    if (parts.empty()) return kNoValue;
    const Dims dims = network_.values[value].dims;
    for (ValueId part : parts) {
      if (network_.values[part].dims == dims && IsReal(part)) continue;
      return Internal("the gradient of '", network_.values[value].name, "' ", DimsToString(dims),
                      " has the dims ", DimsToString(network_.values[part].dims));
    }
    if (parts.size() == 1) return parts[0];
    const std::string name = absl::StrCat("gradient of ", network_.values[value].name);
    const auto whole = static_cast<ValueId>(network_.values.size());
    const std::optional<Pieces> pieces = PiecesOf(parts, forward_operations_, network_);
    network_.values.push_back({name, DataType::kF32, dims});
    if (pieces) {
      network_.operations.push_back({name, Concat{pieces->axis}, pieces->values, whole});
    } else {
      network_.operations.push_back({name, Sum{}, parts, whole});
    }
    parts = {whole};
    return whole;
  }

  // Removes appended operations whose results nothing reads.
  void DropUnread(const std::vector<ValueId>& gradients) {
    std::vector<Operation>& operations = network_.operations;
    std::vector<int> uses = ValueUses(network_);
    for (ValueId gradient : gradients)
      if (gradient != kNoValue) ++uses[gradient];
    const auto is_read = [&uses](ValueId value) { return uses[value] > 0; };
    for (size_t i = operations.size(); i-- > forward_operations_;) {
      const Operation& operation = operations[i];
      if (is_read(operation.dst) || absl::c_any_of(operation.more_dsts, is_read)) continue;
      AddUses(operation, -1, &uses);
      operations.erase(operations.begin() + static_cast<int64_t>(i));
    }
  }

  // Appends the gradients of the operation's sources.
  absl::Status Visit(size_t index) {
    const Operation& operation = network_.operations[index];
    const ValueId dst = operation.dst;
    if (absl::c_any_of(operation.more_dsts,
                       [this](ValueId more) { return !contributions_[more].empty(); })) {
      Refuse(index, "has no gradient by way of its further results");
      return absl::OkStatus();
    }
    const bool is_on_way =
        !contributions_[dst].empty() &&
        absl::c_any_of(operation.srcs, [this](ValueId src) { return is_wanted_[src]; });
    if (!is_on_way) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(const ValueId gradient, GradientOf(dst));
    const Operation copy = network_.operations[index];
    GradientContext context(&network_, index, gradient, is_wanted_, &contributions_);
    const absl::Status status = RowOf<GradientRow>(copy)(copy, context);
    if (absl::IsUnimplemented(status)) {
      Refuse(index, status.message());
      return absl::OkStatus();
    }
    return status;
  }

  // Goes on as if there were gradients, so that the operations before are seen, too.
  void Refuse(size_t index, absl::string_view reason) {
    const Operation& operation = network_.operations[index];
    absl::StrAppend(&refusals_, refusals_.empty() ? "" : "; ", "node '",
                    operation.name.substr(0, 200), "': ", reason);
    for (ValueId src : operation.srcs) {
      if (is_wanted_[src] && contributions_[src].empty()) contributions_[src] = {src};
    }
  }

  Network network_;
  const size_t forward_operations_;
  std::vector<bool> is_wanted_;                      // per forward value
  std::vector<std::vector<ValueId>> contributions_;  // per forward value
  std::string refusals_;
};

}  // namespace

absl::StatusOr<std::vector<ValueId>> Differentiate(absl::Span<const GradientSeed> seeds,
                                                   absl::Span<const ValueId> by, Network* network) {
  Differentiation differentiation(*network);
  ABSL_ASSIGN_OR_RETURN(std::vector<ValueId> gradients, differentiation.Run(seeds, by));
  *network = std::move(differentiation).Take();
  return gradients;
}

}  // namespace tilewire::network
