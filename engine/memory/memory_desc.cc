// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/memory_desc.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout_pattern.h"
#include "engine/memory/workspace_tag.h"

namespace tilewire {
namespace {

absl::Status Invalid(absl::string_view what, const Dims& dims, absl::string_view why) {
  return InvalidArgument(what, " ", DimsToString(dims), ": ", why);
}

absl::Status CheckDims(const Dims& dims, DataType type) {
  if (dims.empty() || dims.size() > kMaxRank) {
    return InvalidArgument("rank ", dims.size(), " is not in 1..", kMaxRank);
  }
  for (int64_t dim : dims) {
    if (dim < 0) return Invalid("shape", dims, "a negative size");
  }
  if (SizeOf(type) == 0) return Invalid("shape", dims, "the data type is undefined");
  return absl::OkStatus();
}

int64_t InnerSize(const InnerBlocks& blocks) {
  int64_t size = 1;
  for (const InnerBlock& block : blocks) size *= block.size;
  return size;
}

// A dimension cut into outer blocks: how many, and how far apart.
struct Outer {
  int64_t count;
  int64_t stride;
};

using Outers = absl::InlinedVector<Outer, 6>;

// The outer dimensions of more than one block, nearest first.
Outers OuterByStride(const MemoryDesc& desc) {
  Outers outers;
  for (int d = 0; d < desc.rank(); ++d) {
    const int64_t count = desc.padded_dims()[d] / desc.BlockSize(d);
    if (count > 1) outers.push_back({count, desc.stride(d)});
  }
  std::sort(outers.begin(), outers.end(),
            [](const Outer& a, const Outer& b) { return a.stride < b.stride; });
  return outers;
}

// Elements from the first to the last one that a non-empty tensor touches, both included.
int64_t SpanElements(const MemoryDesc& desc) {
  int64_t span = InnerSize(desc.inner_blocks());
  for (const Outer& outer : OuterByStride(desc)) span += (outer.count - 1) * outer.stride;
  return span;
}

// Marks every block of a layout whose dimensions interleave and looks for one that is hit twice.
bool BlocksCollide(const Outers& outers, int64_t inner_size, int64_t span) {
  std::vector<bool> taken(span, false);
  std::vector<int64_t> index(outers.size(), 0);
  int64_t offset = 0;
  while (true) {
    for (int64_t i = offset; i < offset + inner_size; ++i) {
      if (taken[i]) return true;
      taken[i] = true;
    }
    size_t d = 0;
    for (; d < outers.size(); ++d) {
      offset += outers[d].stride;
      if (++index[d] < outers[d].count) break;
      offset -= outers[d].count * outers[d].stride;
      index[d] = 0;
    }
    if (d == outers.size()) return false;
  }
}

}  // namespace

absl::StatusOr<MemoryDesc> MemoryDesc::Create(Dims dims, DataType type, FormatTag tag) {
  if (tag == FormatTag::kAny) return CreateAny(std::move(dims), type);
  if (tag == FormatTag::kUndef) {
    return InvalidArgument("the format tag is undefined");
  }
  if (FormatTagRank(tag) != static_cast<int>(dims.size())) {
    return Invalid(
        "shape", dims,
        absl::StrCat("format tag '", FormatTagName(tag), "' is for rank ", FormatTagRank(tag)));
  }
  return CreatePattern(std::move(dims), type, FormatTagPattern(tag));
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreatePattern(Dims dims, DataType type,
                                                     absl::string_view pattern) {
  ABSL_RETURN_IF_ERROR(CheckDims(dims, type));
  ABSL_ASSIGN_OR_RETURN(PatternParts layout, PatternParts::Parse(pattern));
  if (layout.order.size() != dims.size()) {
    return Invalid("shape", dims,
                   absl::StrCat("layout '", pattern, "' is for rank ", layout.order.size()));
  }
  MemoryDesc desc;
  desc.dims_ = std::move(dims);
  desc.data_type_ = type;
  desc.format_kind_ = FormatKind::kBlocked;
  desc.inner_blocks_ = std::move(layout.blocks);
  ABSL_RETURN_IF_ERROR(desc.PadToBlocks());
  desc.strides_.resize(desc.dims_.size());
  int64_t stride = InnerSize(desc.inner_blocks_);
  for (auto d = layout.order.rbegin(); d != layout.order.rend(); ++d) {
    desc.strides_[*d] = stride;
    const int64_t count = std::max<int64_t>(1, desc.padded_dims_[*d] / desc.BlockSize(*d));
    const std::optional<int64_t> next = CheckedMul(stride, count);
    if (!next) return Invalid("shape", desc.dims_, "the size overflows");
    stride = *next;
  }
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreateStrided(Dims dims, DataType type, Dims strides) {
  ABSL_RETURN_IF_ERROR(CheckDims(dims, type));
  MemoryDesc desc;
  desc.dims_ = std::move(dims);
  desc.padded_dims_ = desc.dims_;
  desc.data_type_ = type;
  desc.format_kind_ = FormatKind::kBlocked;
  return desc.WithStrides(std::move(strides));
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreateAny(Dims dims, DataType type) {
  ABSL_RETURN_IF_ERROR(CheckDims(dims, type));
  MemoryDesc desc;
  desc.dims_ = std::move(dims);
  desc.padded_dims_ = desc.dims_;
  desc.data_type_ = type;
  desc.format_kind_ = FormatKind::kAny;
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreateWinograd(Dims dims, const WinogradLayout& layout) {
  ABSL_RETURN_IF_ERROR(CheckDims(dims, DataType::kF32));
  if (dims.size() != 4 || dims[0] < 1 || dims[1] < 1 || dims[2] != 3 || dims[3] != 3) {
    return Invalid("shape", dims, "Winograd's layout is for weights [O,I,3,3]");
  }
  if ((layout.tile != 2 && layout.tile != 4) || layout.lanes < 1 || layout.panel_blocks < 1) {
    return Invalid("shape", dims, absl::StrCat("no Winograd layout has tile ", layout.tile));
  }
  const bool has_plane_panels = layout.lanes == kPlaneLanes && layout.panel_blocks == kPlaneBlocks;
  if (layout.planes < 0 || layout.planes > 3 || (layout.planes > 0 && !has_plane_panels))
    return Invalid("shape", dims, absl::StrCat("no Winograd layout has planes ", layout.planes));
  // Rounding up both sides to a block adds less than a factor of (1 + lanes)^2, of channels of
  // planes to a step and of outputs to a group as much again as 4.
  const int64_t block = layout.lanes + 1;
  if (!CheckedProduct({dims[0], dims[1], block, block, layout.points(), int64_t{32}})) {
    return Invalid("shape", dims, "the size overflows");
  }
  MemoryDesc desc;
  desc.dims_ = std::move(dims);
  desc.padded_dims_ = desc.dims_;
  desc.data_type_ = DataType::kF32;
  desc.format_kind_ = FormatKind::kWinograd;
  desc.winograd_ = layout;
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreatePlanes(const MemoryDesc& numbers,
                                                    const PlaneLayout& layout) {
  const InnerBlocks& blocks = numbers.inner_blocks();
  const bool has_outputs = !blocks.empty() && blocks.back().size == kPlaneLanes;
  if (numbers.data_type() != DataType::kF32 || numbers.offset0() != 0 || !numbers.IsDense() ||
      !has_outputs || numbers.ElementCount() == 0) {
    return Invalid("shape", numbers.dims(), "planes are split of dense f32 in blocks of outputs");
  }
  const auto count = CheckedProduct(
      {layout.matrices, layout.Blocks(), layout.taps, layout.channels, int64_t{kPlaneLanes}});
  if (layout.planes < 1 || layout.planes > 3 || count != numbers.PaddedElementCount())
    return Invalid("shape", numbers.dims(), "planes of other sizes");
  // Channels and outputs are each rounded up to 32, and the bytes of groups are fewer than those.
  if (!CheckedProduct({*count, kPlaneStep, kPlaneBlocks, int64_t{16}}))
    return Invalid("shape", numbers.dims(), "the size overflows");
  MemoryDesc desc = numbers;
  desc.format_kind_ = FormatKind::kPlanes;
  desc.planes_ = layout;
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::CreateWorkspace(int64_t bytes, uint64_t tag) {
  MemoryDesc desc;
  desc.dims_ = {bytes};
  desc.padded_dims_ = desc.dims_;
  desc.data_type_ = DataType::kU8;
  desc.format_kind_ = FormatKind::kWorkspace;
  desc.workspace_tag_ = tag;
  ABSL_RETURN_IF_ERROR(CheckDims(desc.dims_, desc.data_type_));
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

MemoryDesc MemoryDesc::Unsplit() const {
  MemoryDesc desc = *this;
  desc.winograd_.planes = 0;
  if (format_kind_ != FormatKind::kPlanes) return desc;
  desc.format_kind_ = FormatKind::kBlocked;
  desc.planes_ = {};
  return desc;
}

absl::Status MemoryDesc::PadToBlocks() {
  padded_dims_.resize(dims_.size());
  for (int d = 0; d < rank(); ++d) {
    const int64_t block = BlockSize(d);
    const std::optional<int64_t> reach = CheckedAdd(dims_[d], block - 1);
    if (!reach) return Invalid("shape", dims_, "the padded size overflows");
    padded_dims_[d] = *reach / block * block;
  }
  return absl::OkStatus();
}

// After this check no sum or product of an index, size or stride in this file overflows.
absl::Status MemoryDesc::CheckSize() const {
  const std::optional<int64_t> count = CheckedProduct(padded_dims_);
  if (!count || !CheckedMul(*count, SizeOf(data_type_))) {
    return Invalid("shape", dims_, "the size in bytes overflows");
  }
  std::optional<int64_t> end = CheckedAdd(offset0_, InnerSize(inner_blocks_));
  for (int d = 0; d < rank() && end && !strides_.empty(); ++d) {
    const int64_t blocks = padded_dims_[d] / BlockSize(d);
    const std::optional<int64_t> reach = CheckedMul(std::max<int64_t>(0, blocks - 1), strides_[d]);
    // The stride of a single block is not used, but primitives turn it into bytes like all others.
    const bool fits = reach && CheckedMul(strides_[d], SizeOf(data_type_));
    end = fits ? CheckedAdd(*end, *reach) : std::nullopt;
  }
  // The compensation takes less than four bytes per element, and three to its boundary.
  if (end && HasCompensation()) end = CheckedMul(*end, 8);
  if (!end || !CheckedMul(*end, SizeOf(data_type_))) {
    return Invalid(
        "shape", dims_,
        absl::StrCat("with strides ", DimsToString(strides_), " the size in bytes overflows"));
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryDesc> MemoryDesc::SubMemory(const Dims& dims, const Dims& offsets) const {
  if (format_kind_ != FormatKind::kBlocked || extra_.flags != 0) {
    return InvalidArgument(ToString(), " has no layout to take a part of");
  }
  if (dims.size() != dims_.size() || offsets.size() != dims_.size()) {
    return Invalid(
        "part", dims,
        absl::StrCat("offsets ", DimsToString(offsets), " of ", ToString(), ": ranks differ"));
  }
  MemoryDesc part = *this;
  part.dims_ = dims;
  for (int d = 0; d < rank(); ++d) {
    const int64_t block = BlockSize(d);
    if (dims[d] < 0 || offsets[d] < 0 || dims[d] > dims_[d] || offsets[d] > dims_[d] - dims[d]) {
      return Invalid("part", dims,
                     absl::StrCat("at ", DimsToString(offsets), " leaves ", ToString()));
    }
    const bool reaches_end = offsets[d] + dims[d] == dims_[d];
    if (offsets[d] % block != 0 || (dims[d] % block != 0 && !reaches_end)) {
      return Invalid("part", dims,
                     absl::StrCat("at ", DimsToString(offsets), " of ", ToString(),
                                  " cuts a block of dimension ", d));
    }
    // An offset at the very end belongs to a part without elements.
    if (offsets[d] < dims_[d]) part.offset0_ += offsets[d] / block * strides_[d];
  }
  ABSL_RETURN_IF_ERROR(part.PadToBlocks());
  ABSL_RETURN_IF_ERROR(part.CheckSize());
  return part;
}

absl::StatusOr<MemoryDesc> MemoryDesc::WithDataType(DataType type) const {
  if (IsZero()) return InvalidArgument("the zero descriptor has no data type");
  if (IsOpaque() && type != data_type_) {
    return InvalidArgument(ToString(), " is of ", DataTypeName(data_type_));
  }
  ABSL_RETURN_IF_ERROR(CheckDims(dims_, type));
  MemoryDesc desc = WithoutExtra();
  desc.data_type_ = type;
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::Permuted(absl::Span<const int> order) const {
  if (IsOpaque()) return InvalidArgument(ToString(), " has no other order");
  if (order.size() != dims_.size()) {
    return InvalidArgument("an order of ", order.size(), " dimensions for ", ToString());
  }
  std::vector<int> inverse(order.size(), -1);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || order[i] >= rank() || inverse[order[i]] != -1) {
      return InvalidArgument("[", absl::StrJoin(order, ","), "] is not a permutation");
    }
    inverse[order[i]] = static_cast<int>(i);
  }
  MemoryDesc desc = WithoutExtra();
  for (int i = 0; i < rank(); ++i) {
    desc.dims_[i] = dims_[order[i]];
    desc.padded_dims_[i] = padded_dims_[order[i]];
    if (!strides_.empty()) desc.strides_[i] = strides_[order[i]];
  }
  for (InnerBlock& block : desc.inner_blocks_) block.dim = inverse[block.dim];
  return desc;
}

absl::StatusOr<MemoryDesc> MemoryDesc::WithStrides(Dims strides) const {
  if (format_kind_ != FormatKind::kBlocked) {
    return InvalidArgument(ToString(), " has no strides");
  }
  if (strides.size() != dims_.size()) {
    return Invalid("strides", strides,
                   absl::StrCat("shape ", DimsToString(dims_), " has another rank"));
  }
  for (int64_t stride : strides) {
    if (stride < 0) return Invalid("strides", strides, "a negative stride");
  }
  MemoryDesc desc = WithoutExtra();
  desc.strides_ = std::move(strides);
  desc.offset0_ = 0;
  ABSL_RETURN_IF_ERROR(desc.CheckSize());
  return desc;
}

bool MemoryDesc::IsDense() const {
  if (format_kind_ != FormatKind::kBlocked) return false;
  if (ElementCount() == 0) return true;
  return SpanElements(*this) == PaddedElementCount() && !Overlaps();
}

bool MemoryDesc::Overlaps() const {
  if (format_kind_ != FormatKind::kBlocked || ElementCount() == 0) return false;
  const Outers outers = OuterByStride(*this);
  const int64_t inner_size = InnerSize(inner_blocks_);
  int64_t span = inner_size;
  bool nested = true;
  for (const Outer& outer : outers) {
    nested = nested && outer.stride >= span;
    span += (outer.count - 1) * outer.stride;
  }
  if (nested) return false;
  if (span < PaddedElementCount()) return true;
  // For dimensions that interleave the exact answer takes a walk; if it would be long, "yes" is
  // safe.
  constexpr int64_t kLongWalk = int64_t{1} << 24;
  return span > kLongWalk || BlocksCollide(outers, inner_size, span);
}

bool MemoryDesc::Matches(FormatTag tag) const {
  if (format_kind_ != FormatKind::kBlocked || FormatTagRank(tag) != rank()) return false;
  absl::StatusOr<MemoryDesc> tagged = CreatePattern(dims_, data_type_, FormatTagPattern(tag));
  if (!tagged.ok() || tagged->inner_blocks_ != inner_blocks_) return false;
  for (int d = 0; d < rank(); ++d) {
    // The stride of a dimension of one block is never used.
    if (padded_dims_[d] > BlockSize(d) && tagged->strides_[d] != strides_[d]) return false;
  }
  return true;
}

FormatTag MemoryDesc::Tag() const {
  if (format_kind_ == FormatKind::kAny) return FormatTag::kAny;
  FormatTag loose = FormatTag::kUndef;
  for (const FormatTagRow& row : FormatTags()) {
    if (!Matches(row.tag)) continue;
    if (CreatePattern(dims_, data_type_, row.pattern)->strides_ == strides_) return row.tag;
    if (loose == FormatTag::kUndef) loose = row.tag;
  }
  return loose;
}

int64_t MemoryDesc::BlockSize(int d) const {
  int64_t size = 1;
  for (const InnerBlock& block : inner_blocks_) {
    if (block.dim == d) size *= block.size;
  }
  return size;
}

int64_t MemoryDesc::ElementCount() const { return IsZero() ? 0 : *CheckedProduct(dims_); }

int64_t MemoryDesc::PaddedElementCount() const {
  return IsZero() ? 0 : *CheckedProduct(padded_dims_);
}

int64_t MemoryDesc::SizeBytes() const {
  if (format_kind_ == FormatKind::kWinograd) return winograd_.SizeBytes(dims_[0], dims_[1]);
  if (format_kind_ == FormatKind::kPlanes) return planes_.SizeBytes();
  if (format_kind_ == FormatKind::kWorkspace) return dims_[0];
  if (format_kind_ != FormatKind::kBlocked || ElementCount() == 0) return 0;
  if (HasCompensation()) return CompensationOffsetBytes() + CompensationCount() * 4;
  return (offset0_ + SpanElements(*this)) * SizeOf(data_type_);
}

int64_t MemoryDesc::CompensationOffsetBytes() const {
  return RoundUp((offset0_ + SpanElements(*this)) * SizeOf(data_type_), 4);
}

int64_t MemoryDesc::Offset(absl::Span<const int64_t> index) const {
  absl::InlinedVector<int64_t, kMaxRank> rest(index.begin(), index.end());
  int64_t offset = offset0_;
  int64_t inner_stride = 1;
  for (auto block = inner_blocks_.rbegin(); block != inner_blocks_.rend(); ++block) {
    offset += rest[block->dim] % block->size * inner_stride;
    rest[block->dim] /= block->size;
    inner_stride *= block->size;
  }
  for (int d = 0; d < rank(); ++d) offset += rest[d] * strides_[d];
  return offset;
}

std::string MemoryDesc::ToString() const {
  if (IsZero()) return "undef";
  std::string text = absl::StrCat(DataTypeName(data_type_), ":", absl::StrJoin(dims_, "x"), ":");
  const FormatTag tag = Tag();
  if (format_kind_ == FormatKind::kWinograd) {
    absl::StrAppend(&text, "winograd_", winograd_.tile, "x3");
    if (winograd_.planes > 0) absl::StrAppend(&text, "_planes_", winograd_.planes);
  } else if (format_kind_ == FormatKind::kPlanes) {
    absl::StrAppend(&text, "planes_", planes_.planes);
  } else if (format_kind_ == FormatKind::kWorkspace) {
    absl::StrAppend(&text, WorkspaceTagName(workspace_tag_));
  } else if (tag != FormatTag::kUndef) {
    absl::StrAppend(&text, FormatTagName(tag));
  } else {
    absl::StrAppend(&text, "strides", DimsToString(strides_));
    for (const InnerBlock& block : inner_blocks_) {
      absl::StrAppend(&text, block.size, std::string(1, static_cast<char>('a' + block.dim)));
    }
  }
  if (offset0_ != 0) absl::StrAppend(&text, ":offset", offset0_);
  if (HasCompensation()) absl::StrAppend(&text, ":compensation", extra_.compensation_mask);
  if (IsBounded()) absl::StrAppend(&text, ":within", extra_.bound);
  return text;
}

void MemoryDesc::AppendKey(std::string* key) const {
  const auto append = [key](int64_t value) {
    key->append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  append(static_cast<int64_t>(format_kind_) | static_cast<int64_t>(data_type_) << 8 |
         int64_t{rank()} << 16 | static_cast<int64_t>(inner_blocks_.size()) << 24);
  append(offset0_);
  append(static_cast<int64_t>(extra_.flags) | int64_t{extra_.compensation_mask} << 32 |
         int64_t{extra_.bound} << 48);
  // padded_dims_ follows from the rest.
  for (int64_t dim : dims_) append(dim);
  for (int64_t stride : strides_) append(stride);
  for (const InnerBlock& block : inner_blocks_) {
    append(block.dim);
    append(block.size);
  }
  if (format_kind_ == FormatKind::kWinograd) {
    for (int value : {winograd_.tile, winograd_.lanes, winograd_.panel_blocks, winograd_.planes})
      append(value);
  } else if (format_kind_ == FormatKind::kPlanes) {
    append(planes_.planes);
    for (int64_t size : {planes_.matrices, planes_.outputs, planes_.taps, planes_.channels})
      append(size);
  } else if (format_kind_ == FormatKind::kWorkspace) {
    append(static_cast<int64_t>(workspace_tag_));
  }
}

}  // namespace tilewire
