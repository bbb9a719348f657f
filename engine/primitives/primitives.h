// SPDX-License-Identifier: Apache-2.0
//
// Any primitive: what the cache, the facade and the wire need to treat all of them alike. The list
// itself is primitive_list.inc.
#ifndef ENGINE_PRIMITIVES_PRIMITIVES_H_
#define ENGINE_PRIMITIVES_PRIMITIVES_H_

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/primitives/attention/attention.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/concat/concat.h"
#include "engine/primitives/convert/convert.h"
#include "engine/primitives/convolution/convolution.h"
#include "engine/primitives/deconvolution/deconvolution.h"
#include "engine/primitives/elementwise/elementwise.h"
#include "engine/primitives/eltwise/eltwise.h"
#include "engine/primitives/gather/gather.h"
#include "engine/primitives/gather_channels/gather_channels.h"
#include "engine/primitives/inner_product/inner_product.h"
#include "engine/primitives/integer_sum/integer_sum.h"
#include "engine/primitives/interpolate/interpolate.h"
#include "engine/primitives/layer_normalization/layer_normalization.h"
#include "engine/primitives/loss/loss.h"
#include "engine/primitives/lrn/lrn.h"
#include "engine/primitives/matmul/matmul.h"
#include "engine/primitives/max_window/max_window.h"
#include "engine/primitives/pooling/pooling.h"
#include "engine/primitives/prelu/prelu.h"
#include "engine/primitives/quantization_range/quantization_range.h"
#include "engine/primitives/quantize/quantize.h"
#include "engine/primitives/reduction/reduction.h"
#include "engine/primitives/reorder/reorder.h"
#include "engine/primitives/resampling/resampling.h"
#include "engine/primitives/rnn/rnn.h"
#include "engine/primitives/roi_align/roi_align.h"
#include "engine/primitives/select/select.h"
#include "engine/primitives/shuffle/shuffle.h"
#include "engine/primitives/softmax/softmax.h"
#include "engine/primitives/sum/sum.h"
#include "engine/primitives/top_k/top_k.h"

namespace tilewire {

namespace primitive_list {
template <typename Nothing, typename... Descs>
struct AnyOf {
  using Variant = std::variant<Descs...>;
};
}  // namespace primitive_list

// A descriptor of any primitive. The order is PrimitiveKind's.
using OpDesc = primitive_list::AnyOf<void
#define TILEWIRE_PRIMITIVE(Name, name) , Name##Desc
#include "engine/primitives/primitive_list.inc"
#undef TILEWIRE_PRIMITIVE
                                     >::Variant;

PrimitiveKind KindOf(const OpDesc& desc);

// Dispatches to the primitive's Create...(); the errors are those of its header.
absl::StatusOr<std::shared_ptr<const Primitive>> CreatePrimitive(const OpDesc& desc,
                                                                 const Attributes& attributes,
                                                                 const CreateOptions& options);

// The canonical bytes of kind, descriptor, attributes and options: equal requests, and no others,
// give equal bytes.
std::string PrimitiveKey(const OpDesc& desc, const Attributes& attributes,
                         const CreateOptions& options);

struct ImplementationRow : ImplementationFacts {
  PrimitiveKind kind;
  bool has_cost = false;  // which decides among its neighbours (row_runs.h)
};
// Every implementation of every primitive, best first within a primitive.
std::vector<ImplementationRow> AllImplementations();

// The types that an implementation reads (src; activations), found by trying typical descriptors of
// each (probes.h), whether or not this CPU has what it needs. Costs a few creations.
std::vector<DataType> TypesOf(const ImplementationRow& row);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PRIMITIVES_H_
