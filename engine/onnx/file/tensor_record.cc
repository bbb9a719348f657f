// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/file/tensor_record.h"

#include <optional>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/dims.h"
#include "protos/onnx_subset.pb.h"

namespace tilewire::reader {
namespace {

using onnx::TensorProto;

constexpr int64_t kLongestName = 65536;

int64_t FixedCount(const TensorRecord& record) {
  int64_t count = 0;
  for (const ElementRun& run : record.fixed) count += run.count;
  return count;
}

absl::Status Invalid(const TensorRecord& record, absl::string_view what) {
  return InvalidArgument("tensor '", record.name, "': ", what);
}

// One element or a packed run of float_data or double_data. Unpacked elements that follow each
// other join one run.
absl::Status AppendFixed(const WireField& field, int64_t size, TensorRecord* record) {
  const WireType single = size == 4 ? WireType::kFixed32 : WireType::kFixed64;
  if (field.type == single) {
    const int64_t stride = field.offset - field.begin + size;
    if (!record->fixed.empty()) {
      ElementRun& last = record->fixed.back();
      if (last.stride == stride && last.offset + last.count * stride == field.offset) {
        ++last.count;
        return absl::OkStatus();
      }
    }
    record->fixed.push_back({field.offset, 1, size, stride});
    return absl::OkStatus();
  }
  if (field.type != WireType::kLengthDelimited || field.length % size != 0) {
    return Invalid(*record, "malformed floating-point contents");
  }
  record->fixed.push_back({field.offset, field.length / size, size, size});
  return absl::OkStatus();
}

absl::Status ReadExternalEntry(ByteWindow* window, const WireField& field, TensorRecord* record) {
  ABSL_ASSIGN_OR_RETURN(const std::string bytes, ReadString(window, field, kLongestName));
  onnx::StringStringEntryProto entry;
  if (!entry.ParseFromString(bytes)) return Invalid(*record, "malformed external_data");
  record->external_entries[entry.key()] = entry.value();
  return absl::OkStatus();
}

absl::Status ReadField(ByteWindow* window, const WireField& field, TensorRecord* record) {
  switch (field.number) {
    case TensorProto::kDimsFieldNumber:
      return AppendVarints(window, field, &record->dims);
    case TensorProto::kDataTypeFieldNumber:
      record->type = static_cast<int>(field.varint);
      return absl::OkStatus();
    case TensorProto::kFloatDataFieldNumber:
      return AppendFixed(field, 4, record);
    case TensorProto::kDoubleDataFieldNumber:
      return AppendFixed(field, 8, record);
    case TensorProto::kInt32DataFieldNumber:
    case TensorProto::kInt64DataFieldNumber:
    case TensorProto::kUint64DataFieldNumber:
      record->int_fields.push_back(field);
      return AppendVarints(window, field, &record->ints);
    case TensorProto::kNameFieldNumber: {
      ABSL_ASSIGN_OR_RETURN(record->name, ReadString(window, field, kLongestName));
      return absl::OkStatus();
    }
    case TensorProto::kRawDataFieldNumber:
      if (field.type != WireType::kLengthDelimited) return Invalid(*record, "malformed raw_data");
      record->has_raw = true;
      record->raw = {field.offset, field.length, 1, 1};
      return absl::OkStatus();
    case TensorProto::kExternalDataFieldNumber:
      return ReadExternalEntry(window, field, record);
    case TensorProto::kDataLocationFieldNumber:
      record->external = field.varint == TensorProto::EXTERNAL;
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace

absl::StatusOr<TensorRecord> ReadTensorRecord(ByteWindow* window, int64_t begin, int64_t end) {
  TensorRecord record;
  WireCursor cursor(window, begin, end);
  while (!cursor.done()) {
    ABSL_ASSIGN_OR_RETURN(const WireField field, cursor.Next());
    ABSL_RETURN_IF_ERROR(ReadField(window, field, &record));
  }
  return record;
}

bool IsFloatType(int type) { return type == TensorProto::FLOAT || type == TensorProto::DOUBLE; }

absl::StatusOr<int64_t> CheckedCount(const TensorRecord& record) {
  if (record.dims.size() > kMaxRank)
    return Invalid(record, absl::StrCat("rank ", record.dims.size(), " is over 12"));
  for (int64_t dim : record.dims) {
    if (dim < 0) return Invalid(record, absl::StrCat("negative dimension ", dim));
  }
  const std::optional<int64_t> count = CheckedProduct(record.dims);
  if (!count || !CheckedMul(*count, sizeof(double))) return Invalid(record, "dims overflow");
  return *count;
}

absl::Status CheckContents(const TensorRecord& record, int64_t count, const StoredType& type) {
  const int64_t fixed = FixedCount(record);
  const int64_t ints = static_cast<int64_t>(record.ints.size());
  if (record.has_raw) {
    if (fixed != 0 || ints != 0) return Invalid(record, "both raw and typed contents");
    if (record.raw.count != type.Bytes(count)) {
      return Invalid(record, absl::StrCat("raw_data of ", record.raw.count,
                                          " bytes where the dims ask for ", type.Bytes(count)));
    }
    return absl::OkStatus();
  }
  const int64_t right = IsFloatType(record.type) ? fixed : ints;
  const int64_t wrong = IsFloatType(record.type) ? ints : fixed;
  const int64_t wanted = type.bits() < 8 ? type.Bytes(count) : count;  // typed contents are packed
  if (right != wanted || wrong != 0) {
    return Invalid(record, absl::StrCat(right, " elements where the dims ask for ", wanted));
  }
  for (const ElementRun& run : record.fixed) {
    if (8 * run.size != type.bits())
      return Invalid(record, "contents of another floating-point type");
  }
  return absl::OkStatus();
}

absl::Status LocateExternal(int64_t expected_bytes, const ByteSource& source,
                            TensorRecord* record) {
  if (record->has_raw || !record->fixed.empty() || !record->ints.empty()) {
    return Invalid(*record, "both external and own contents");
  }
  int64_t offset = 0, length = expected_bytes;
  for (const auto& [key, value] : record->external_entries) {
    int64_t* number = key == "offset" ? &offset : key == "length" ? &length : nullptr;
    if (number != nullptr && (!absl::SimpleAtoi(value, number) || *number < 0)) {
      return Invalid(*record, absl::StrCat("external data with ", key, " '", value, "'"));
    }
  }
  if (offset > source.size() || length > source.size() - offset) {
    return Invalid(*record, "external data beyond the end of its file");
  }
  record->has_raw = true;
  record->raw = {offset, length, 1, 1};
  return absl::OkStatus();
}

}  // namespace tilewire::reader
