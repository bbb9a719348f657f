// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/numbers_in_file.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

// Sums are taken over pieces, so that a check needs no more memory than one.
constexpr int64_t kPieceBytes = int64_t{1} << 20;

// The sum of what came before and of `count` bytes, cut into pieces. It differs between processes.
size_t Summed(size_t sum, const std::byte* bytes, int64_t count) {
  for (int64_t at = 0; at < count; at += kPieceBytes) {
    const auto* piece = reinterpret_cast<const char*>(bytes + at);
    sum = absl::HashOf(sum, absl::string_view(piece, std::min(kPieceBytes, count - at)));
  }
  return sum;
}

}  // namespace

NumbersInFile::NumbersInFile(std::string name, StoredType type,
                             std::shared_ptr<const ByteSource> source, int64_t offset,
                             int64_t count)
    : name_(std::move(name)),
      type_(type),
      source_(std::move(source)),
      offset_(offset),
      count_(count) {}

absl::StatusOr<std::shared_ptr<const NumbersInFile>> NumbersInFile::Create(
    std::string name, StoredType type, std::shared_ptr<const ByteSource> source, int64_t offset,
    int64_t count) {
  auto numbers = std::shared_ptr<NumbersInFile>(
      new NumbersInFile(std::move(name), type, std::move(source), offset, count));
  ABSL_ASSIGN_OR_RETURN(numbers->sum_, numbers->ReadSum());
  return numbers;
}

absl::StatusOr<network::HeldFloats> NumbersInFile::Load() const {
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(count_ * sizeof(float)));
  // The file's bytes are read to the end of the buffer, and widened from its beginning.
  std::byte* to = buffer.data() + count_ * sizeof(float) - bytes();
  ABSL_RETURN_IF_ERROR(ReadTo(to));
  type_.Widen(to, count_, reinterpret_cast<float*>(buffer.data()));
  auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
  const auto* values = reinterpret_cast<const float*>(owner->data());
  return network::HeldFloats{absl::MakeConstSpan(values, count_), std::move(owner)};
}

absl::StatusOr<network::HeldBytes> NumbersInFile::LoadBytes() const {
  if (!IsByte(type_.held())) return network::StoredNumbers::LoadBytes();
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(count_));
  std::byte* to = buffer.data() + count_ - bytes();
  ABSL_RETURN_IF_ERROR(ReadTo(to));
  if (type_.bits() < 8) type_.Widen(to, count_, reinterpret_cast<int8_t*>(buffer.data()));
  auto owner = std::make_shared<const AlignedBuffer>(std::move(buffer));
  const auto* values = reinterpret_cast<const int8_t*>(owner->data());
  return network::HeldBytes{absl::MakeConstSpan(values, count_), std::move(owner)};
}

absl::Status NumbersInFile::Check() const {
  if (source_->CheckUnchanged().ok()) return absl::OkStatus();
  const absl::StatusOr<size_t> sum = ReadSum();
  if (!sum.ok()) return Changed(sum.status().message());
  return *sum == sum_ ? absl::OkStatus() : Changed("the file was written to");
}

absl::StatusOr<size_t> NumbersInFile::ReadSum() const {
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer piece,
                        AlignedBuffer::Allocate(std::min(kPieceBytes, bytes())));
  size_t sum = 0;
  for (int64_t at = 0; at < bytes(); at += kPieceBytes) {
    const int64_t count = std::min(kPieceBytes, bytes() - at);
    ABSL_RETURN_IF_ERROR(source_->Read(offset_ + at, count, piece.data()));
    sum = Summed(sum, piece.data(), count);
  }
  return sum;
}

absl::Status NumbersInFile::ReadTo(std::byte* to) const {
  const absl::Status read = source_->Read(offset_, bytes(), to);
  if (!read.ok()) return Changed(read.message());
  return Summed(0, to, bytes()) == sum_ ? absl::OkStatus() : Changed("the file was written to");
}

absl::Status NumbersInFile::Changed(absl::string_view how) const {
  return absl::FailedPreconditionError(
      absl::StrCat("tensor '", name_, "': ", how, "; the model has to be loaded again"));
}

}  // namespace tilewire::reader
