// SPDX-License-Identifier: Apache-2.0
//
// The source is a sequence of elements; its index is a counter with one digit per dimension,
// the fastest first. The offset of an element in dst is a sum over digits, so a run (all values
// of the fastest digit) is written relative to the offset of the slower ones. Digits that are one
// in dst too (h and w of nchw -> nChw16c) are merged first, which makes runs long. Where the only
// block of dst is the innermost one of a dimension, the zeros of the padded tail are written
// together with the last element before them, while its cache line is at hand; otherwise before the
// first piece.
#include "engine/primitives/reorder/streaming_reorder.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/memory/zero_padding.h"

namespace tilewire {
namespace {

struct Digit {
  int64_t size = 1;
  int64_t block = 1;
  int64_t stride = 0;                      // between blocks
  absl::InlinedVector<int64_t, 16> inner;  // offset of each index inside a block
  bool dense = false;                      // inner[i] == i
  int64_t tail = 0;                        // elements after the last one to be zeroed with it

  int64_t Offset(int64_t i) const {
    return block == 1 ? i * stride : i / block * stride + inner[i % block];
  }
};

Digit MakeDigit(const MemoryDesc& dst, int d) {
  Digit digit{dst.dim(d), dst.BlockSize(d), dst.stride(d), {}, true, 0};
  Dims index(dst.rank(), 0);
  for (int64_t i = 0; i < digit.block; ++i) {
    index[d] = i;
    digit.inner.push_back(dst.Offset(index) - dst.offset0());
    digit.dense = digit.dense && digit.inner.back() == i;
  }
  if (digit.block > 1 && dst.inner_blocks().size() == 1) {
    digit.tail = dst.padded_dims()[d] - dst.dim(d);
  }
  return digit;
}

using Digits = absl::InlinedVector<Digit, 4>;

// Fastest first; at least two digits, none of size 1 beyond that.
Digits MakeDigits(const MemoryDesc& src, const MemoryDesc& dst) {
  absl::InlinedVector<int, 6> order(src.rank());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return src.stride(a) != src.stride(b) ? src.stride(a) < src.stride(b) : a < b;
  });
  Digits digits;
  for (int d : order) {
    if (dst.padded_dims()[d] == 1) continue;
    Digit digit = MakeDigit(dst, d);
    if (!digits.empty() && digit.block == 1 && digits.back().block == 1 &&
        digit.stride == digits.back().stride * digits.back().size) {
      digits.back().size *= digit.size;
    } else {
      digits.push_back(std::move(digit));
    }
  }
  while (digits.size() < 2) digits.push_back({});
  return digits;
}

template <typename Element>
class Streaming final : public StreamingReorder {
 public:
  Streaming(const MemoryDesc& src, const MemoryDesc& dst, void* dst_data)
      : dst_(static_cast<Element*>(dst_data) + dst.offset0()),
        digits_(MakeDigits(src, dst)),
        index_(digits_.size(), 0),
        total_bytes_(src.ElementCount() * static_cast<int64_t>(sizeof(Element))) {
    if (dst.inner_blocks().size() > 1) ZeroPadding(dst, dst_data);
  }

  absl::Status Append(absl::string_view piece) override {
    if (static_cast<int64_t>(piece.size()) > total_bytes_ - received_bytes_) {
      return InvalidArgument("more bytes than the ", total_bytes_, " of the tensor");
    }
    received_bytes_ += static_cast<int64_t>(piece.size());
    if (carried_ > 0) {
      const size_t missing = std::min(sizeof(Element) - carried_, piece.size());
      std::memcpy(carry_ + carried_, piece.data(), missing);
      carried_ += missing;
      piece.remove_prefix(missing);
      if (carried_ < sizeof(Element)) return absl::OkStatus();
      Copy(carry_, 1);
    }
    Copy(piece.data(), static_cast<int64_t>(piece.size() / sizeof(Element)));
    carried_ = piece.size() % sizeof(Element);
    std::memcpy(carry_, piece.data() + piece.size() - carried_, carried_);
    return absl::OkStatus();
  }

  absl::Status Finish() override {
    if (received_bytes_ == total_bytes_) return absl::OkStatus();
    return InvalidArgument(received_bytes_, " bytes of the ", total_bytes_, " of the tensor");
  }

 private:
  void Copy(const char* from, int64_t count) {
    while (count > 0) {
      const int64_t run = digits_[0].size;
      if (index_[0] == 0 && count >= run) {
        const int64_t runs = std::min(count / run, digits_[1].size - index_[1]);
        CopyRuns(from, runs);
        from += runs * run * sizeof(Element);
        count -= runs * run;
        Advance(1, runs);
      } else {
        const int64_t length = std::min(run - index_[0], count);
        CopySpan(from, Base(2) + digits_[1].Offset(index_[1]), index_[0], length, TailAfterEach());
        from += length * sizeof(Element);
        count -= length;
        Advance(0, length);
      }
    }
  }

  void CopyRuns(const char* from, int64_t runs) {
    const int64_t run = digits_[0].size;
    const int64_t base = Base(2);
    if (digits_[0].block > 1 && digits_[0].dense && run == 3 && digits_[1].block == 1) {
      // Colour images as they mostly come: the block of a pixel is three elements and zeros.
      Element* to = dst_ + base + digits_[1].Offset(index_[1]);
      if (digits_[0].block == 16 && digits_[0].tail == 13) return CopyPixels<16>(from, runs, to);
      if (digits_[0].block == 8 && digits_[0].tail == 5) return CopyPixels<8>(from, runs, to);
    }
    for (int64_t i = 0; i < runs; ++i) {
      const bool last = index_[1] + i == digits_[1].size - 1;
      const int64_t tail = digits_[1].tail > 0 && last ? digits_[1].tail : OuterTail();
      CopySpan(from, base + digits_[1].Offset(index_[1] + i), 0, run, tail);
      from += run * sizeof(Element);
    }
  }

  template <int kBlock>
  void CopyPixels(const char* from, int64_t pixels, Element* to) {
    for (int64_t i = 0; i < pixels; ++i, from += 3 * sizeof(Element), to += digits_[1].stride) {
      std::memset(to, 0, kBlock * sizeof(Element));
      std::memcpy(to, from, 3 * sizeof(Element));
    }
  }

  // Indices [first, first + length) of the run at `base`, `tail` zeros after each.
  void CopySpan(const char* from, int64_t base, int64_t first, int64_t length, int64_t tail) {
    const Digit& run = digits_[0];
    Element* to = dst_ + base;
    if (run.block > 1) {
      for (int64_t i = first; i < first + length;) {
        const int64_t chunk =
            run.dense ? std::min(run.block - i % run.block, first + length - i) : 1;
        std::memcpy(to + run.Offset(i), from, chunk * sizeof(Element));
        from += chunk * sizeof(Element);
        i += chunk;
      }
      if (run.tail > 0 && first + length == run.size) {
        std::memset(to + run.Offset(run.size - 1) + 1, 0, run.tail * sizeof(Element));
      }
    } else if (run.stride == 1) {
      std::memcpy(to + first, from, length * sizeof(Element));
    } else {
      Scatter(from, to + first * run.stride, length, tail);
    }
  }

  void Scatter(const char* from, Element* to, int64_t length, int64_t tail) {
    const int64_t stride = digits_[0].stride;
    for (int64_t i = 0; i < length; ++i, from += sizeof(Element), to += stride) {
      std::memcpy(to, from, sizeof(Element));
      if (tail > 0) std::memset(to + 1, 0, tail * sizeof(Element));
    }
  }

  // The offset of the digits from `digit` on.
  int64_t Base(size_t digit) const {
    int64_t base = 0;
    for (size_t d = digit; d < digits_.size(); ++d) base += digits_[d].Offset(index_[d]);
    return base;
  }

  // Zeros that follow each element of the current run: not 0 where a slower digit is blocked and
  // is at its end.
  int64_t TailAfterEach() const {
    return digits_[1].tail > 0 && index_[1] == digits_[1].size - 1 ? digits_[1].tail : OuterTail();
  }
  int64_t OuterTail() const {
    for (size_t d = 2; d < digits_.size(); ++d) {
      if (digits_[d].tail > 0 && index_[d] == digits_[d].size - 1) return digits_[d].tail;
    }
    return 0;
  }

  void Advance(size_t digit, int64_t by) {
    index_[digit] += by;
    for (size_t d = digit; d + 1 < digits_.size() && index_[d] == digits_[d].size; ++d) {
      index_[d] = 0;
      ++index_[d + 1];
    }
  }

  Element* const dst_;
  const Digits digits_;
  Dims index_;
  const int64_t total_bytes_;
  int64_t received_bytes_ = 0;
  char carry_[sizeof(Element)];  // the beginning of an element that a piece cut
  size_t carried_ = 0;
};

absl::Status ValidateStreaming(const MemoryDesc& src, const MemoryDesc& dst) {
  if (!src.IsPlain() || !src.IsDense() || src.offset0() != 0) {
    return InvalidArgument("streaming reorder: src ", src.ToString(), " is not plain and dense");
  }
  if (dst.IsOpaque()) {
    return Unimplemented("streaming reorder: dst is transformed, not copied");
  }
  if (dst.HasCompensation()) {
    return Unimplemented("streaming reorder: dst carries sums of all elements");
  }
  if (dst.IsBounded()) {
    return Unimplemented("streaming reorder: dst is bounded, and its elements are not looked at");
  }
  if (dst.format_kind() != FormatKind::kBlocked || dst.Overlaps()) {
    return InvalidArgument("streaming reorder: dst ", dst.ToString(), " has no layout to write");
  }
  if (src.dims() != dst.dims()) {
    return InvalidArgument("streaming reorder: shapes differ: src ", DimsToString(src.dims()),
                           ", dst ", DimsToString(dst.dims()));
  }
  if (src.data_type() != dst.data_type()) {
    return Unimplemented("streaming reorder from ", DataTypeName(src.data_type()), " to ",
                         DataTypeName(dst.data_type()));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<StreamingReorder>> StreamingReorder::Create(const MemoryDesc& src,
                                                                           const MemoryDesc& dst,
                                                                           void* dst_data) {
  if (absl::Status status = ValidateStreaming(src, dst); !status.ok()) return status;
  return VisitBytes(src.data_type(), [&](auto element) -> std::unique_ptr<StreamingReorder> {
    return std::make_unique<Streaming<decltype(element)>>(src, dst, dst_data);
  });
}

}  // namespace tilewire
