// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/attributes.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/key_bytes.h"

namespace tilewire {
namespace {

bool IsFinite(const PostOp& op) {
  if (std::holds_alternative<MaxPoolingPostOp>(op)) return true;
  if (const auto* sum = std::get_if<SumPostOp>(&op)) return std::isfinite(sum->scale);
  if (const auto* prelu = std::get_if<PReluPostOp>(&op)) {
    return std::all_of(prelu->slopes.begin(), prelu->slopes.end(),
                       [](float slope) { return std::isfinite(slope); });
  }
  if (const auto* mask = std::get_if<MaskPostOp>(&op)) return std::isfinite(mask->alpha);
  const auto& eltwise = std::get<EltwisePostOp>(op);
  return std::isfinite(eltwise.scale) && std::isfinite(eltwise.op.alpha) &&
         std::isfinite(eltwise.op.beta);
}

std::string ToString(const PostOp& op) {
  if (std::holds_alternative<MaxPoolingPostOp>(op)) {
    return absl::StrCat("max_pooling:", MaxPoolingPostOp::kSize, "x", MaxPoolingPostOp::kSize);
  }
  if (const auto* sum = std::get_if<SumPostOp>(&op)) return absl::StrCat("sum:", sum->scale);
  if (const auto* prelu = std::get_if<PReluPostOp>(&op))
    return absl::StrCat("prelu:", prelu->slopes.size());
  if (const auto* mask = std::get_if<MaskPostOp>(&op)) return absl::StrCat("mask:", mask->alpha);
  const auto& eltwise = std::get<EltwisePostOp>(op);
  std::string text = absl::StrCat(AlgorithmName(eltwise.op.function), ":", eltwise.op.alpha);
  if (eltwise.op.beta != 0) absl::StrAppend(&text, ":", eltwise.op.beta);
  if (eltwise.scale != 1) absl::StrAppend(&text, "*", eltwise.scale);
  return text;
}

void AppendKey(const PostOp& op, std::string* key) {
  AppendBytes(static_cast<uint8_t>(op.index()), key);
  if (std::holds_alternative<MaxPoolingPostOp>(op)) return;
  if (const auto* sum = std::get_if<SumPostOp>(&op)) return AppendBytes(sum->scale, key);
  if (const auto* prelu = std::get_if<PReluPostOp>(&op)) {
    AppendBytes(static_cast<uint64_t>(prelu->slopes.size()), key);
    for (float slope : prelu->slopes) AppendBytes(slope, key);
    return;
  }
  if (const auto* mask = std::get_if<MaskPostOp>(&op)) return AppendBytes(mask->alpha, key);
  const auto& eltwise = std::get<EltwisePostOp>(op);
  AppendBytes(eltwise.op.function, key);
  AppendBytes(eltwise.op.alpha, key);
  AppendBytes(eltwise.op.beta, key);
  AppendBytes(eltwise.scale, key);
}

}  // namespace

absl::Status PostOps::Append(const PostOp& op) {
  if (entries_.size() >= kCapacity) {
    return InvalidArgument("a chain holds at most ", kCapacity, " post-ops");
  }
  if (HasMaxPooling()) {
    return InvalidArgument("post-op ", tilewire::ToString(op),
                           " follows a max pooling, which comes last");
  }
  if (Mask() != nullptr) {
    return InvalidArgument("post-op ", tilewire::ToString(op), " follows a mask, which comes last");
  }
  if (Slopes() != nullptr && std::holds_alternative<PReluPostOp>(op))
    return InvalidArgument("a chain holds at most one prelu");
  if (const auto* eltwise = std::get_if<EltwisePostOp>(&op)) {
    ABSL_RETURN_IF_ERROR(functions::CheckHasCode("post-op", eltwise->op.function));
  }
  if (!IsFinite(op)) {
    return InvalidArgument("post-op ", tilewire::ToString(op), ": its numbers must be finite");
  }
  entries_.push_back(op);
  return absl::OkStatus();
}

bool PostOps::HasSum() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const PostOp& op) { return std::holds_alternative<SumPostOp>(op); });
}

bool PostOps::HasMaxPooling() const {
  return !entries_.empty() && std::holds_alternative<MaxPoolingPostOp>(entries_.back());
}

const std::vector<float>* PostOps::Slopes() const {
  for (const PostOp& op : entries_)
    if (const auto* prelu = std::get_if<PReluPostOp>(&op)) return &prelu->slopes;
  return nullptr;
}

const MaskPostOp* PostOps::Mask() const {
  return entries_.empty() ? nullptr : std::get_if<MaskPostOp>(&entries_.back());
}

PostOps PostOps::WithoutMaxPooling() const {
  PostOps rest = *this;
  if (HasMaxPooling()) rest.entries_.pop_back();
  return rest;
}

std::string PostOps::ToString() const {
  std::string text;
  for (const PostOp& op : entries_) {
    absl::StrAppend(&text, text.empty() ? "" : ";", tilewire::ToString(op));
  }
  return text;
}

std::string Attributes::ToString() const {
  std::string text;
  if (!post_ops.empty()) absl::StrAppend(&text, "post_ops:", post_ops.ToString(), " ");
  if (!output_scales.IsDefault()) {
    absl::StrAppend(&text, "scales:mask:", output_scales.mask, " ");
  }
  if (precision != Precision::kExact) {
    absl::StrAppend(&text, "precision:", PrecisionName(precision), " ");
  }
  const bool user = scratchpad_mode == ScratchpadMode::kUser;
  return absl::StrCat(text, "scratchpad:", user ? "user" : "library");
}

void Attributes::AppendKey(std::string* key) const {
  AppendBytes(static_cast<uint8_t>(post_ops.entries().size()), key);
  for (const PostOp& op : post_ops.entries()) tilewire::AppendKey(op, key);
  AppendBytes(output_scales.mask, key);
  AppendBytes(static_cast<uint64_t>(output_scales.scales.size()), key);
  for (float scale : output_scales.scales) AppendBytes(scale, key);
  AppendBytes(scratchpad_mode, key);
  AppendBytes(precision, key);
}

}  // namespace tilewire
