// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other, in its type; sums
// of 8-bit integers modulo 2^32.
#include "engine/base/status_macros.h"
#include "engine/kernels/elements/element_conversion.h"
#include "engine/kernels/tiles/scalar_epilogue.h"
#include "engine/memory/element_types.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/matmul/implementations.h"
#include "engine/primitives/matmul/typed_rows.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::matmul {
namespace {

// Immutable.
class Formula {
 public:
  explicit Formula(const MatmulDesc& desc)
      : desc_(desc),
        k_(desc.src.dim(desc.src.rank() - 1)),
        src_(desc.src),
        weights_(desc.weights),
        bias_(desc.bias) {}

  // An element of f32.
  float Value(const ReferencePiece& piece, const Dims& index) const {
    const float sum = Sum<float>(piece, index);
    if (desc_.bias.IsZero()) return sum;
    return sum +
           piece.Get<const float>(kArgBias)[bias_.Offset(BroadcastIndex(desc_.bias.dims(), index))];
  }

  // The sum of products of elements that T holds, without bias.
  template <typename T>
  T Sum(const ReferencePiece& piece, const Dims& index) const {
    SumOf<T> sum = 0;
    ForEachProduct(index, [&](int64_t src, int64_t weights) {
      sum += static_cast<SumOf<T>>(piece.Get<const T>(kArgSrc)[src]) *
             piece.Get<const T>(kArgWeights)[weights];
    });
    return static_cast<T>(sum);
  }

  // The sum of products of 8-bit integers, less their zero points.
  int32_t IntegerSum(const ReferencePiece& piece, const Dims& index) const {
    int src_zero = desc_.src_zero_point, weights_zero = desc_.weights_zero_point;
    if (!desc_.range.IsZero()) {
      src_zero = static_cast<int>(RangeOf(piece, kArgQuantizationRange, desc_.range)[1]);
      weights_zero = static_cast<int>(RangeOf(piece, kArgWeightsRange, desc_.weights_range)[1]);
    }
    const auto element = [](const MemoryDesc& md, const uint8_t* bytes, int64_t offset) {
      return md.data_type() == DataType::kS8 ? static_cast<int8_t>(bytes[offset]) : bytes[offset];
    };
    uint32_t sum = 0;
    ForEachProduct(index, [&](int64_t src, int64_t weights) {
      const int a = element(desc_.src, piece.Get<const uint8_t>(kArgSrc), src);
      const int b = element(desc_.weights, piece.Get<const uint8_t>(kArgWeights), weights);
      sum += static_cast<uint32_t>((a - src_zero) * (b - weights_zero));
    });
    return static_cast<int32_t>(sum);
  }

  // The scale of run time; 1 without ranges.
  float Step(const ReferencePiece& piece) const {
    if (desc_.range.IsZero()) return 1;
    return RangeOf(piece, kArgQuantizationRange, desc_.range)[0] *
           RangeOf(piece, kArgWeightsRange, desc_.weights_range)[0];
  }

 private:
  static const float* RangeOf(const ReferencePiece& piece, int arg, const MemoryDesc& range) {
    return piece.Get<const float>(arg) + range.offset0();
  }

  // Calls visit() with the places of the factors of each product of an element of dst.
  template <typename Visit>
  void ForEachProduct(const Dims& index, const Visit& visit) const {
    if (k_ == 0) return;
    const int last = desc_.dst.rank() - 1;
    Dims row = index, column = index;
    row[last] = column[last - 1] = 0;
    const int64_t src_offset = src_.Offset(BroadcastIndex(desc_.src.dims(), row));
    const int64_t weights_offset = weights_.Offset(BroadcastIndex(desc_.weights.dims(), column));
    ForEachOperation(k_, [&](int64_t k) {
      visit(src_offset + src_.At(last, k), weights_offset + weights_.At(last - 1, k));
    });
  }

  const MatmulDesc desc_;
  const int64_t k_;
  const SeparableOffsets src_, weights_, bias_;
};

// The formula that the loop runs for each piece.
auto OfReals(const MatmulDesc& desc, const Attributes& attributes) {
  return [formula = Formula(desc), post_ops = attributes.post_ops,
          dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      float& result = piece.Get<float>(kArgDst)[dst.Offset(index)];
      result = ApplyPostOps(post_ops, formula.Value(piece, index), result);
    });
  };
}

auto OfOneType(const MatmulDesc& desc) {
  return [formula = Formula(desc), dst = SeparableOffsets(desc.dst),
          type = desc.dst.data_type()](const ReferencePiece& piece) {
    VisitIntegerOrDouble(type, [&](auto element) {
      using T = decltype(element);
      piece.ForEach([&](const Dims& index) {
        piece.Get<T>(kArgDst)[dst.Offset(index)] = formula.template Sum<T>(piece, index);
      });
    });
  };
}

auto OfIntegers(const MatmulDesc& desc, const Attributes& attributes) {
  const ScalarEpilogue epilogue{attributes, DataType::kUndef, desc.dst.data_type()};
  return [formula = Formula(desc), epilogue, keeps_sums = KeepsSums(desc, attributes),
          has_ranges = !desc.range.IsZero(),
          dst = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const int32_t sum = formula.IntegerSum(piece, index);
      const int64_t to = dst.Offset(index);
      void* const results = piece.Find(kArgDst);
      if (keeps_sums) {
        piece.Get<int32_t>(kArgDst)[to] = sum;
      } else if (has_ranges) {
        const bool adds = epilogue.attributes.post_ops.HasSum();
        const float before = adds ? LoadElement(epilogue.dst_type, results, to) : 0;
        const float value = epilogue.ScaledValue(static_cast<float>(sum), formula.Step(piece), 0,
                                                 nullptr, 0, before);
        StoreElement(epilogue.dst_type, value, results, to);
      } else {
        epilogue.Store(static_cast<float>(sum), 0, nullptr, 0, results, to);
      }
    });
  };
}

}  // namespace

absl::StatusOr<MatmulDesc> ResolveReference(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  if (IsInteger(desc)) {
    ABSL_RETURN_IF_ERROR(RequireInteger(desc, request.attributes));
    return WithPlainTensors(desc);
  }
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(request.attributes));
  if (!RequireTyped(desc, request.attributes).ok())
    ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  return WithPlainTensors(desc);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<MatmulDesc>& request) {
  const MatmulDesc& desc = request.desc;
  const int64_t k = desc.src.dim(desc.src.rank() - 1);
  ReferenceLoop loop{desc.dst.dims(), {k}};
  PrimitiveInfo info = InfoOf(request);
  const auto create = [&](auto compute) {
    return CreateReferencePrimitive(std::move(info), std::move(loop), std::move(compute));
  };
  if (IsInteger(desc)) return create(OfIntegers(desc, request.attributes));
  if (desc.dst.data_type() != DataType::kF32) return create(OfOneType(desc));
  return create(OfReals(desc, request.attributes));
}

}  // namespace tilewire::matmul
