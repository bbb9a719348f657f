// SPDX-License-Identifier: Apache-2.0
//
// Where each element of a tensor lives. A blocked layout cuts some dimensions into blocks:
//
//   offset(i) = offset0 + sum over d of (i_d / B_d) * strides[d]
//                       + position of the (i_d % B_d) in the inner block
//
// where B_d is the product of the inner blocks on dimension d, and the inner block is dense: its
// blocks follow each other, outermost first, as in `inner_blocks()`. Strides count elements,
// between outer blocks. Sizes that are not multiples of the block are rounded up in
// `padded_dims()`; the padded tail holds zeros before and after every primitive. `SizeBytes()` is
// the only way to learn a size in bytes.
//
// s8 weights may carry their compensation after the elements, and a bound: see MemoryExtra.
//
// Immutable value type; compares by meaning of every field.
// Source: MKL-DNN 1.0, "Understanding Memory Formats"; tests/engine/rows.txt A03 to A07.
#ifndef ENGINE_MEMORY_MEMORY_DESC_H_
#define ENGINE_MEMORY_MEMORY_DESC_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/data_type.h"
#include "engine/memory/dims.h"
#include "engine/memory/format_tag.h"
#include "engine/memory/inner_block.h"
#include "engine/memory/plane_layout.h"
#include "engine/memory/winograd_layout.h"

namespace tilewire {

enum class FormatKind : uint8_t {
  kUndef = 0,  // the zero descriptor: no tensor
  kAny,        // the primitive chooses; has no strides and no size
  kBlocked,
  kWinograd,   // opaque: weights transformed for Winograd's convolution; only a reorder writes it
  kPlanes,     // opaque: weights split into planes of bf16; only a reorder writes it
  kWorkspace,  // opaque: what forward saved for backward; only such a pair of primitives knows it
};

// Data after the elements (tests/engine/rows.txt A06). A reorder to a descriptor with compensation
// writes, on the next 4-byte boundary, one s32 for each index of the (padded) dimensions whose bit
// is set in `compensation_mask`, row-major:
//
//   -128 * (sum of the weights with this index)
//
// It undoes the 128 that convolutions and inner products with products of u8 and s8 add to every
// element of an s8 source. MKL-DNN's other flag, scale_adjust, has no use here: without VNNI
// products are formed of 16-bit factors, or of weights that kBounded keeps small, and never
// saturate.
//
// With kBounded no element's magnitude is above `bound`. A reorder to such a descriptor looks at
// the elements, and its execution refuses those that break it.
struct MemoryExtra {
  static constexpr uint32_t kCompensationConvS8S8 = 1;
  static constexpr uint32_t kBounded = 2;
  uint32_t flags = 0;
  int compensation_mask = 0;
  int bound = 0;
  bool operator==(const MemoryExtra&) const = default;
};

class MemoryDesc {
 public:
  // The zero descriptor: rank 0, size 0.
  MemoryDesc() = default;

  // All factories:
  //   kInvalidArgument  rank 0 or over kMaxRank, a negative size, a tag of another rank, the type
  //                     kUndef, or a size in bytes that overflows; the message names the value
  // A dimension of size 0 is legal: such a tensor has no element.
  static absl::StatusOr<MemoryDesc> Create(Dims dims, DataType type, FormatTag tag);
  // Any strides >= 0 (0 repeats an element and is legal for inputs); strides[i] in elements.
  static absl::StatusOr<MemoryDesc> CreateStrided(Dims dims, DataType type, Dims strides);
  // A pattern of letters, as in format_tag.h.
  static absl::StatusOr<MemoryDesc> CreatePattern(Dims dims, DataType type,
                                                  absl::string_view pattern);
  static absl::StatusOr<MemoryDesc> CreateAny(Dims dims, DataType type);
  // Transformed f32 weights, or planes of them; `dims` are those of the weights themselves,
  // [O,I,3,3].
  static absl::StatusOr<MemoryDesc> CreateWinograd(Dims dims, const WinogradLayout& layout);
  // f32 weights as planes: those of what `numbers`, dense in blocks of 16 outputs, holds in the
  // order [matrix][16 outputs][16 channels][tap][channel of 16][output of 16].
  static absl::StatusOr<MemoryDesc> CreatePlanes(const MemoryDesc& numbers,
                                                 const PlaneLayout& layout);

  // A workspace, which a primitive that runs forward for training saves for its backward alone: one
  // dimension of u8. Workspaces of one `tag` are alike: it is a hash of the format's name and of
  // all that the bytes depend on.
  static absl::StatusOr<MemoryDesc> CreateWorkspace(int64_t bytes, uint64_t tag);

  // A view of a part of this tensor. On a blocked dimension the offset must be a multiple of the
  // block, and the size too unless the part ends where the tensor ends. kInvalidArgument otherwise.
  absl::StatusOr<MemoryDesc> SubMemory(const Dims& dims, const Dims& offsets) const;

  // The same layout for another type or order.
  absl::StatusOr<MemoryDesc> WithDataType(DataType type) const;
  // Logical dimension i of the result is dimension order[i] of this one; no byte moves.
  absl::StatusOr<MemoryDesc> Permuted(absl::Span<const int> order) const;
  // The same dims, type and blocks; strides as in strides(), and offset 0. kInvalidArgument for
  // what has no strides, and as in CreateStrided().
  absl::StatusOr<MemoryDesc> WithStrides(Dims strides) const;
  // kInvalidArgument  not s8 in a blocked layout, a mask of other dimensions, or there is
  //                   compensation already
  absl::StatusOr<MemoryDesc> WithCompensation(int mask) const;
  // kInvalidArgument  neither `any` nor a blocked layout of s8, or a bound that is not 1 to 127
  absl::StatusOr<MemoryDesc> WithBound(int bound) const;
  MemoryDesc WithoutBound() const;
  MemoryDesc WithoutExtra() const;

  int rank() const { return static_cast<int>(dims_.size()); }
  const Dims& dims() const { return dims_; }
  int64_t dim(int i) const { return dims_[i]; }
  const Dims& padded_dims() const { return padded_dims_; }
  const Dims& strides() const { return strides_; }  // elements, between outer blocks
  int64_t stride(int i) const { return strides_[i]; }
  const InnerBlocks& inner_blocks() const { return inner_blocks_; }
  int64_t offset0() const { return offset0_; }  // elements before element (0,...,0)
  DataType data_type() const { return data_type_; }
  FormatKind format_kind() const { return format_kind_; }
  const WinogradLayout& winograd() const { return winograd_; }  // of FormatKind::kWinograd
  const PlaneLayout& planes() const { return planes_; }         // of FormatKind::kPlanes
  uint64_t workspace_tag() const { return workspace_tag_; }     // of FormatKind::kWorkspace
  // The plain descriptor that planes, also Winograd's, are split from; any other descriptor itself.
  MemoryDesc Unsplit() const;
  const MemoryExtra& extra() const { return extra_; }
  bool HasCompensation() const { return extra_.flags & MemoryExtra::kCompensationConvS8S8; }
  bool IsBounded() const { return extra_.flags & MemoryExtra::kBounded; }

  bool IsZero() const { return format_kind_ == FormatKind::kUndef; }
  bool IsAny() const { return format_kind_ == FormatKind::kAny; }
  // Nothing but the primitive that asked for it reads the layout.
  bool IsOpaque() const { return format_kind_ >= FormatKind::kWinograd; }
  bool IsPlain() const { return format_kind_ == FormatKind::kBlocked && inner_blocks_.empty(); }
  bool HasPadding() const { return dims_ != padded_dims_; }
  // Every physical element from offset0 on belongs to the (padded) tensor exactly once.
  bool IsDense() const;
  // Two elements with different indices share an address: legal to read, not to write.
  // Also true for huge layouts (over 2^24 elements) whose dimensions interleave.
  bool Overlaps() const;
  // The layout is the one that `tag` (of the same rank) gives these dims.
  bool Matches(FormatTag tag) const;
  // The first tag of format_tags.inc that matches, else kUndef.
  FormatTag Tag() const;
  // B_d: the product of the inner blocks on dimension d, 1 for none.
  int64_t BlockSize(int d) const;

  int64_t ElementCount() const;        // of the logical tensor
  int64_t PaddedElementCount() const;  // of the padded tensor
  // From the start of the buffer to the end of the last element (and of the compensation), padding
  // and offset0 included; 0 if no element.
  int64_t SizeBytes() const;
  // From the start of the buffer to the first s32 of the compensation, and how many there are.
  int64_t CompensationOffsetBytes() const;
  int64_t CompensationCount() const;
  // Element offset of a logical (or padded) index, offset0 included.
  int64_t Offset(absl::Span<const int64_t> index) const;

  // "f32:2x17x5x5:nChw16c", or with strides where no tag matches; for messages, logs and verbose
  // lines.
  std::string ToString() const;
  // Appends canonical bytes: equal descriptors, and no others, append equal bytes.
  void AppendKey(std::string* key) const;

  bool operator==(const MemoryDesc& other) const = default;

 private:
  absl::Status PadToBlocks();      // padded_dims_ from dims_ and inner_blocks_
  absl::Status CheckSize() const;  // no size, index or stride overflows

  Dims dims_;
  Dims padded_dims_;
  Dims strides_;
  InnerBlocks inner_blocks_;
  int64_t offset0_ = 0;
  DataType data_type_ = DataType::kUndef;
  FormatKind format_kind_ = FormatKind::kUndef;
  WinogradLayout winograd_;
  PlaneLayout planes_;
  uint64_t workspace_tag_ = 0;
  MemoryExtra extra_;
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_MEMORY_DESC_H_
