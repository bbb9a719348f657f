// SPDX-License-Identifier: Apache-2.0
//
// A tensor is read in two steps. First its record: the small fields, and where its contents lie.
// Only when the record shows that the contents have exactly the size that the dims ask for is
// memory allocated, so that a few bytes cannot ask for gigabytes.
#include "engine/onnx/file/tensor_reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/aligned_buffer.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/numbers_in_file.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/file/stored_type.h"
#include "engine/onnx/file/tensor_record.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {

using network::Constant;
using network::ConstantPtr;
using network::MakeInts;
namespace {

using onnx::TensorProto;

// All runs, end to end.
absl::Status ReadRuns(const ByteSource& source, const std::vector<ElementRun>& runs,
                      std::byte* dst) {
  for (const ElementRun& run : runs) {
    if (run.stride == run.size) {
      ABSL_RETURN_IF_ERROR(source.Read(run.offset, run.count * run.size, dst));
      dst += run.count * run.size;
      continue;
    }
    std::string spaced((run.count - 1) * run.stride + run.size, '\0');
    ABSL_RETURN_IF_ERROR(source.Read(run.offset, spaced.size(), spaced.data()));
    for (int64_t i = 0; i < run.count; ++i, dst += run.size)
      memcpy(dst, spaced.data() + i * run.stride, run.size);
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<int64_t> Widen(const std::byte* bytes, int64_t count) {
  std::vector<int64_t> wide(count);
  for (int64_t i = 0; i < count; ++i) {
    T element;
    memcpy(&element, bytes + i * sizeof(T), sizeof(T));
    wide[i] = static_cast<int64_t>(element);
  }
  return wide;
}

std::vector<int64_t> WidenRaw(int type, const std::byte* bytes, int64_t count) {
  switch (type) {
    case TensorProto::INT8:
      return Widen<int8_t>(bytes, count);
    case TensorProto::UINT8:
    case TensorProto::BOOL:
      return Widen<uint8_t>(bytes, count);
    case TensorProto::INT16:
      return Widen<int16_t>(bytes, count);
    case TensorProto::UINT16:
      return Widen<uint16_t>(bytes, count);
    case TensorProto::INT32:
      return Widen<int32_t>(bytes, count);
    case TensorProto::UINT32:
      return Widen<uint32_t>(bytes, count);
    default:
      return Widen<int64_t>(bytes, count);
  }
}

network::HeldFloats FloatsIn(AlignedBuffer bytes, int64_t count) {
  auto owner = std::make_shared<const AlignedBuffer>(std::move(bytes));
  const auto* floats = reinterpret_cast<const float*>(owner->data());
  return {absl::MakeConstSpan(floats, count), std::move(owner)};
}

// The integers of 8 bits or fewer; kS32 stands for all others.
DataType IntegersOf(const StoredType& type) {
  return IsByte(type.held()) ? type.held() : DataType::kS32;
}

// Keeps the low 8 bits of typed contents, and 1 of truth values.
//   kUnimplemented  u64 beyond s64, which holds constants
absl::StatusOr<ConstantPtr> OfType(int type, const ConstantPtr& integers) {
  auto typed = std::make_shared<Constant>(*integers);
  typed->integers = EightBits(type);
  for (int64_t& element : typed->ints) {
    if (typed->integers == DataType::kU8) element = static_cast<uint8_t>(element);
    if (typed->integers == DataType::kS8) element = static_cast<int8_t>(element);
    if (type == TensorProto::BOOL) element = element != 0;
    if (type == TensorProto::UINT64 && element < 0) {
      return Unimplemented("tensor '", integers->name, "' holds ", static_cast<uint64_t>(element),
                           ", which is beyond s64");
    }
  }
  return typed;
}

absl::StatusOr<ConstantPtr> FromDoubles(const TensorRecord& record, int64_t count,
                                        const AlignedBuffer& bytes) {
  std::vector<double> doubles(count);
  if (count > 0) memcpy(doubles.data(), bytes.data(), count * sizeof(double));
  for (const double element : doubles) {
    if (std::isinf(static_cast<float>(element)) && !std::isinf(element)) {
      return Unimplemented("tensor '", record.name, "' holds ", element, ", which is beyond f32");
    }
  }
  return network::MakeDoubles(record.name, Dims(record.dims.begin(), record.dims.end()),
                              std::move(doubles));
}

// The bytes of typed contents that are bits: of f16 and bf16, and of 8 bits or fewer.
absl::StatusOr<AlignedBuffer> BytesOfBits(const TensorRecord& record, const StoredType& type) {
  const int64_t size = std::max(type.bits() / 8, 1);
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer bytes,
                        AlignedBuffer::Allocate(size * static_cast<int64_t>(record.ints.size())));
  std::byte* to = bytes.data();
  for (const int64_t bits : record.ints) {
    memcpy(to, &bits, size);
    to += size;
  }
  return bytes;
}

// Real numbers of at most 16 bits, integers of fewer than 8.
ConstantPtr FromBits(const TensorRecord& record, const StoredType& type, int64_t count,
                     const AlignedBuffer& bytes) {
  Dims dims(record.dims.begin(), record.dims.end());
  std::vector<float> numbers(count);
  type.Widen(bytes.data(), count, numbers.data());
  if (!IsIntegerType(type.held()))
    return network::MakeFloats(record.name, std::move(dims), std::move(numbers));
  auto integers = std::make_shared<Constant>(
      *MakeInts(record.name, std::move(dims), {numbers.begin(), numbers.end()}));
  integers->integers = type.held();
  return integers;
}

absl::StatusOr<ConstantPtr> FromBytes(const TensorRecord& record, const StoredType& type,
                                      int64_t count, AlignedBuffer bytes) {
  Dims dims(record.dims.begin(), record.dims.end());
  if (record.type == TensorProto::DOUBLE) return FromDoubles(record, count, bytes);
  if (type.is_bits()) return FromBits(record, type, count, bytes);
  if (record.type != TensorProto::FLOAT) {
    return OfType(record.type, MakeInts(record.name, std::move(dims),
                                        WidenRaw(record.type, bytes.data(), count)));
  }
  auto constant = std::make_shared<Constant>();
  constant->name = record.name;
  constant->dims = std::move(dims);
  constant->is_float = true;
  network::HeldFloats held = FloatsIn(std::move(bytes), count);
  constant->floats = held.values;
  constant->owner = std::move(held.owner);
  return constant;
}

// Leaves large weights in their file until they are packed, so that they are never in memory twice.
// Null for tensors that are better read at once.
absl::StatusOr<ConstantPtr> LeaveInFile(const TensorRecord& record, const StoredType& type,
                                        int64_t count, const ByteSource& source,
                                        const std::vector<ElementRun>& runs) {
  constexpr int64_t kSmallest = 16384;
  const bool is_float = !IsIntegerType(type.held()) && type.bits() <= 32;
  if (type.held() == DataType::kBool || (!is_float && IntegersOf(type) == DataType::kS32))
    return ConstantPtr();
  if (count < kSmallest || runs.size() != 1) return ConstantPtr();
  std::shared_ptr<const ByteSource> file = source.Keep();
  if (file == nullptr || runs[0].stride != runs[0].size) return ConstantPtr();
  auto constant = std::make_shared<Constant>();
  constant->name = record.name;
  constant->dims = Dims(record.dims.begin(), record.dims.end());
  constant->is_float = is_float;
  constant->integers = IntegersOf(type);
  ABSL_ASSIGN_OR_RETURN(constant->stored, NumbersInFile::Create(record.name, type, std::move(file),
                                                                runs[0].offset, count));
  return ConstantPtr(std::move(constant));
}

absl::StatusOr<ConstantPtr> ReadElements(TensorRecord record, const StoredType& type, int64_t count,
                                         const ByteSource& source) {
  ABSL_RETURN_IF_ERROR(CheckContents(record, count, type));
  if (!record.has_raw && type.is_bits()) {
    ABSL_ASSIGN_OR_RETURN(const AlignedBuffer bytes, BytesOfBits(record, type));
    return FromBits(record, type, count, bytes);
  }
  if (!record.has_raw && !IsFloatType(record.type)) {
    return OfType(record.type, MakeInts(record.name, Dims(record.dims.begin(), record.dims.end()),
                                        std::move(record.ints)));
  }
  const std::vector<ElementRun> runs =
      record.has_raw ? std::vector<ElementRun>{record.raw} : record.fixed;
  ABSL_ASSIGN_OR_RETURN(ConstantPtr stored, LeaveInFile(record, type, count, source, runs));
  if (stored != nullptr) return stored;
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer bytes, AlignedBuffer::Allocate(type.Bytes(count)));
  ABSL_RETURN_IF_ERROR(ReadRuns(source, runs, bytes.data()));
  return FromBytes(record, type, count, std::move(bytes));
}

}  // namespace

absl::StatusOr<const ByteSource*> TensorReader::External(const std::string& location) {
  if (model_path_.empty())
    return Unimplemented("external data of a tensor that is not an initializer");
  std::shared_ptr<const ByteSource>& source = external_[location];
  if (source == nullptr) {
    ABSL_ASSIGN_OR_RETURN(source, OpenFileBeside(model_path_, location));
  }
  return source.get();
}

absl::StatusOr<ConstantPtr> TensorReader::Read(ByteWindow* window, int64_t begin, int64_t end) {
  ABSL_ASSIGN_OR_RETURN(TensorRecord record, ReadTensorRecord(window, begin, end));
  const std::optional<StoredType> type = StoredType::Of(record.type);
  if (!type) {
    return Unimplemented("tensor '", record.name, "' has ONNX element type ",
                         ElementTypeText(record.type), ", which is not supported");
  }
  ABSL_ASSIGN_OR_RETURN(const int64_t count, CheckedCount(record));
  const ByteSource* source = &window->source();
  if (record.external) {
    ABSL_ASSIGN_OR_RETURN(source, External(record.external_entries["location"]));
    ABSL_RETURN_IF_ERROR(LocateExternal(type->Bytes(count), *source, &record));
  }
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr held,
                        ReadElements(std::move(record), *type, count, *source));
  auto constant = std::make_shared<Constant>(*held);
  constant->declared = type->held();
  constant->small = type->type().small();
  return ConstantPtr(std::move(constant));
}

absl::StatusOr<ConstantPtr> TensorReader::ReadSparse(ByteWindow* window, int64_t begin,
                                                     int64_t end) {
  ConstantPtr parts[2];  // values, indices
  std::vector<int64_t> dims;
  WireCursor cursor(window, begin, end);
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
    if (field.number == onnx::SparseTensorProto::kDimsFieldNumber) {
      ABSL_RETURN_IF_ERROR(AppendVarints(window, field, &dims));
      continue;
    }
    const int part = field.number - onnx::SparseTensorProto::kValuesFieldNumber;
    if (part != 0 && part != 1) continue;
    if (field.type != WireType::kLengthDelimited)
      return InvalidArgument("not a model: malformed sparse tensor");
    ABSL_ASSIGN_OR_RETURN(parts[part], Read(window, field.offset, field.offset + field.length));
  }
  if (parts[0] == nullptr || parts[1] == nullptr)
    return InvalidArgument("a sparse tensor without values or indices");
  return MakeDense(parts[0], parts[1], Dims(dims.begin(), dims.end()), &room_for_sparse_);
}

absl::StatusOr<ConstantPtr> ReadTensor(const onnx::TensorProto& tensor) {
  const std::string bytes = tensor.SerializeAsString();
  MemorySource source(bytes);
  ByteWindow window(&source);
  return TensorReader("").Read(&window, 0, source.size());
}

absl::StatusOr<ConstantPtr> ReadTensor(const onnx::SparseTensorProto& tensor) {
  const std::string bytes = tensor.SerializeAsString();
  MemorySource source(bytes);
  ByteWindow window(&source);
  return TensorReader("", kMostSparseInNode).ReadSparse(&window, 0, source.size());
}

absl::Status TensorReader::CheckUnchanged() {
  for (const auto& [location, source] : external_) ABSL_RETURN_IF_ERROR(source->CheckUnchanged());
  return absl::OkStatus();
}

}  // namespace tilewire::reader
