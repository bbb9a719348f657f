// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/merged_initializers.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"

namespace tilewire::reader {
namespace {

using network::Constant;
using network::ConstantPtr;

constexpr int64_t kFirstFreeInitializers = 4;  // IR version

// Whether it has elements of a type that is written.
bool IsWritten(const Constant& constant) {
  return constant.is_float && IsComputedInF32(constant.declared) &&
         constant.small == SmallType::kNone && !constant.is_sparse && constant.count() > 0;
}

bool IsOneNumber(absl::Span<const float> elements) {
  return absl::c_all_of(elements, [&](float element) { return element == elements[0]; });
}

bool IsIdentity(const onnx::NodeProto& node) {
  return node.op_type() == "Identity" && IsDefaultDomain(node.domain()) && node.input_size() == 1 &&
         node.output_size() == 1 && !node.output(0).empty();
}

// By name: the initializers that Identity nodes read and whose elements are one number, in memory.
absl::StatusOr<absl::flat_hash_map<std::string, ConstantPtr>> MergedIn(const OnnxFile& file) {
  absl::flat_hash_set<std::string> copied;
  for (const onnx::NodeProto& node : file.graph->node()) {
    if (IsIdentity(node)) copied.insert(node.input(0));
  }
  absl::flat_hash_map<std::string, ConstantPtr> merged;
  for (const ConstantPtr& constant : file.initializers) {
    if (!copied.contains(constant->name) || !IsWritten(*constant)) continue;
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr held, network::InMemory(constant));
    if (IsOneNumber(held->floats)) merged.emplace(held->name, held);
  }
  return merged;
}

}  // namespace

absl::StatusOr<std::vector<ConstantPtr>> TakeApart(OnnxFile* file) {
  std::vector<ConstantPtr> taken_apart;
  if (file->ir_version < kFirstFreeInitializers) return taken_apart;
  ABSL_ASSIGN_OR_RETURN(const auto merged, MergedIn(*file));
  absl::flat_hash_set<std::string> declared;  // what callers give or are given
  for (const auto& input : file->graph->input()) declared.insert(input.name());
  for (const auto& output : file->graph->output()) declared.insert(output.name());
  auto* nodes = file->graph->mutable_node();
  const auto becomes_one = [&](const onnx::NodeProto& node) {
    if (!IsIdentity(node) || declared.contains(node.output(0))) return false;
    const auto source = merged.find(node.input(0));
    if (source == merged.end() || declared.contains(node.input(0))) return false;
    auto copy = std::make_shared<Constant>(*source->second);
    copy->name = node.output(0);
    copy->stored = nullptr;
    taken_apart.push_back(std::move(copy));
    return true;
  };
  nodes->erase(std::remove_if(nodes->begin(), nodes->end(), becomes_one), nodes->end());
  absl::c_copy(taken_apart, std::back_inserter(file->initializers));
  return taken_apart;
}

std::string TakenApartText(const std::vector<ConstantPtr>& taken_apart) {
  if (taken_apart.empty()) return "";
  const bool is_one = taken_apart.size() == 1;
  return absl::StrCat(
      taken_apart.size(), is_one ? " initializer ('" : " initializers (the first is '",
      taken_apart[0]->name.substr(0, 200), is_one ? "') was" : "') were",
      " merged with others by the export, because all their elements are the same number: ",
      is_one ? "it is" : "they are", " trained and written on ", is_one ? "its" : "their", " own.");
}

}  // namespace tilewire::reader
