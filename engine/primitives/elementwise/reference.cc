// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts and types, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/memory/element_types.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/elementwise/implementations.h"
#include "engine/primitives/elementwise/number_functions.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::elementwise {
namespace {

absl::Status RequireTypes(const ElementwiseDesc& desc) {
  const DataType type = NumberTypeOf(desc);
  const bool is_integer = IsIntegerType(type);
  const DataType truth_type = TruthTypeOf(desc);
  bool fits = is_integer || type == DataType::kF64 || type == DataType::kF32;
  fits = fits && (truth_type == DataType::kF32 || truth_type == DataType::kU8);
  for (size_t s = 0; s < desc.srcs.size(); ++s) {
    const bool is_condition = desc.function.function == Function::kWhere && s == 0;
    fits = fits && desc.srcs[s].data_type() == (is_condition ? truth_type : type);
  }
  const bool gives_truth = functions::IsPredicate(desc.function.function);
  fits = fits && desc.dst.data_type() == (gives_truth ? truth_type : type);
  if (!fits) {
    ABSL_RETURN_IF_ERROR(RequireF32(desc.dst));
    for (const MemoryDesc& src : desc.srcs) ABSL_RETURN_IF_ERROR(RequireF32(src));
  }
  const bool is_defined = is_integer ? functions::TakesIntegers(desc.function.function)
                                     : !functions::IsBitwise(desc.function.function);
  if (is_defined) return absl::OkStatus();
  return Unimplemented("the function is not defined for ", DataTypeName(type));
}

template <typename T>
void Compute(const ElementwiseDesc& desc, const ReferencePiece& piece) {
  const bool has_condition = desc.function.function == Function::kWhere;
  const bool gives_truth = functions::IsPredicate(desc.function.function);
  const DataType truth_type = TruthTypeOf(desc);
  piece.ForEach([&](const Dims& index) {
    T x[3] = {};
    for (size_t s = 0; s < desc.srcs.size(); ++s) {
      const MemoryDesc& src = desc.srcs[s];
      const int arg = kArgMultipleSrc + static_cast<int>(s);
      const int64_t at = src.Offset(BroadcastIndex(src.dims(), index));
      const bool is_condition = has_condition && s == 0;
      x[s] = is_condition ? static_cast<T>(TruthAt(truth_type, piece.Get<const std::byte>(arg), at))
                          : piece.Get<const T>(arg)[at];
    }
    const T result = EvaluateNumbers(desc.function, x);
    const int64_t to = desc.dst.Offset(index);
    if (gives_truth) {
      SetTruthAt(truth_type, piece.Get<std::byte>(kArgDst), to, result != 0);
    } else {
      piece.Get<T>(kArgDst)[to] = result;
    }
  });
}

}  // namespace

absl::StatusOr<ElementwiseDesc> ResolveReference(const Request<ElementwiseDesc>& request) {
  const ElementwiseDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireTypes(desc));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrPlain(desc.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<ElementwiseDesc>& request) {
  const ElementwiseDesc& desc = request.desc;
  const DataType type = NumberTypeOf(desc);
  const auto compute = [desc, type](const ReferencePiece& piece) {
    if (type == DataType::kF32) return Compute<float>(desc, piece);
    VisitIntegerOrDouble(type, [&](auto number) { Compute<decltype(number)>(desc, piece); });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims()}, compute);
}

}  // namespace tilewire::elementwise
