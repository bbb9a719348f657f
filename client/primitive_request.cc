// SPDX-License-Identifier: Apache-2.0
#include "client/primitive_request.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/primitive_text.h"

namespace tilewire::client {
namespace {

// Servers of earlier versions do not say which arguments are written: forward, it is by number.
bool IsOutput(const v1::CreateResponse& created, const v1::ArgumentDesc& argument) {
  for (const v1::ArgumentDesc& any : created.arguments()) {
    if (any.written()) return argument.written();
  }
  const int number = argument.argument();
  return (number >= v1::ARGUMENT_DST && number <= v1::ARGUMENT_DST_ITER_C) ||
         number == v1::ARGUMENT_DIFF_SRC;
}

v1::MemoryDesc Plain(const v1::MemoryDesc& desc) {
  v1::MemoryDesc plain;
  *plain.mutable_dims() = desc.dims();
  plain.set_type(desc.type());
  return plain;
}

// Where a primitive packs weights in fewer bits than were described, they are sent as f32.
v1::DataType TypeAsSent(const v1::ArgumentDesc& argument, bool less_exactly) {
  const bool rounds = less_exactly && argument.argument() == v1::ARGUMENT_WEIGHTS &&
                      argument.desc().type() == v1::DATA_TYPE_BF16;
  return rounds ? v1::DATA_TYPE_F32 : argument.desc().type();
}

// In the layout that the caller named for a tensor of the same rank; plain and dense otherwise.
v1::MemoryDesc AsSent(const v1::MemoryDesc* described, const v1::MemoryDesc& chosen) {
  v1::MemoryDesc sent = Plain(chosen);
  if (described != nullptr && described->dims_size() == chosen.dims_size() &&
      (described->tag() == "nhwc" || described->tag() == "nchw"))
    sent.set_tag(described->tag());
  return sent;
}

int64_t ElementsOf(const v1::MemoryDesc& desc) {
  int64_t count = 1;
  for (const int64_t size : desc.dims()) count *= size;
  return count;
}

// Random bits for `count` elements, the same for the same count.
class RandomBits {
 public:
  explicit RandomBits(int64_t count) : state_(2 * count + 1) {}
  uint64_t Next() { return state_ = state_ * 6364136223846793005u + 1442695040888963407u; }

 private:
  uint64_t state_;
};

template <typename T>
void Append(T number, std::string* bytes) {
  bytes->append(reinterpret_cast<const char*>(&number), sizeof(number));
}

// f32 in [-1, 1), small integers in the integer types.
absl::StatusOr<std::string> Values(const v1::MemoryDesc& desc) {
  const int64_t count = ElementsOf(desc);
  RandomBits random(count);
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    if (desc.type() == v1::DATA_TYPE_F32) {
      Append(static_cast<float>(random.Next() >> 40) * 0x1p-23f - 1, &bytes);
    } else if (desc.type() == v1::DATA_TYPE_BF16) {  // the upper half of an f32
      const float value = static_cast<float>(random.Next() >> 40) * 0x1p-23f - 1;
      Append(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16), &bytes);
    } else if (desc.type() == v1::DATA_TYPE_S32) {
      Append(static_cast<int32_t>(random.Next() >> 60), &bytes);
    } else if (desc.type() == v1::DATA_TYPE_S8 || desc.type() == v1::DATA_TYPE_U8) {
      bytes.push_back(static_cast<char>(random.Next() >> 60));
    } else {
      return absl::UnimplementedError(absl::StrCat("no random values for ", ToText(desc)));
    }
  }
  return bytes;
}

// Numbers in [0, size).
std::string Indices(const v1::MemoryDesc& desc, int64_t size) {
  const int64_t count = ElementsOf(desc);
  RandomBits random(count);
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<int64_t>((random.Next() >> 33) % size);
    if (desc.type() == v1::DATA_TYPE_S64) {
      Append(index, &bytes);
    } else if (desc.type() == v1::DATA_TYPE_F32) {  // whole numbers as far as it has all of them
      Append(static_cast<float>(std::min<int64_t>(index, 1 << 24)), &bytes);
    } else {
      Append(static_cast<int32_t>(index), &bytes);
    }
  }
  return bytes;
}

absl::StatusOr<std::string> InputValues(const v1::PrimitiveDesc& desc, int argument,
                                        const v1::MemoryDesc& tensor) {
  const v1::Gather& gather = desc.gather();
  if (desc.has_gather() && argument == v1::ARGUMENT_INDICES)
    return Indices(tensor, std::max<int64_t>(1, gather.src().dims(gather.axis())));
  return Values(tensor);
}

const v1::MemoryDesc* DescribedSrc(const v1::PrimitiveDesc& desc) {
  switch (desc.operation_case()) {
    case v1::PrimitiveDesc::kConvolution:
      return &desc.convolution().src();
    case v1::PrimitiveDesc::kInnerProduct:
      return &desc.inner_product().src();
    case v1::PrimitiveDesc::kPooling:
      return &desc.pooling().src();
    case v1::PrimitiveDesc::kEltwise:
      return &desc.eltwise().src();
    case v1::PrimitiveDesc::kSoftmax:
      return &desc.softmax().src();
    case v1::PrimitiveDesc::kShuffle:
      return &desc.shuffle().src();
    case v1::PrimitiveDesc::kReorder:
      return &desc.reorder().src();
    case v1::PrimitiveDesc::kDeconvolution:
      return &desc.deconvolution().src();
    case v1::PrimitiveDesc::kLrn:
      return &desc.lrn().src();
    case v1::PrimitiveDesc::kBinary:
      return &desc.binary().src0();
    case v1::PrimitiveDesc::kBatchNormalization:
      return &desc.batch_normalization().src();
    case v1::PrimitiveDesc::kResampling:
      return &desc.resampling().src();
    case v1::PrimitiveDesc::kGather:
      return &desc.gather().src();
    case v1::PrimitiveDesc::kPrelu:
      return &desc.prelu().src();
    default:
      return nullptr;
  }
}

bool HasSumPostOp(const v1::PrimitiveDesc& desc) {
  for (const v1::PostOp& op : desc.attributes().post_ops()) {
    if (op.has_sum()) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<v1::ExecuteRequest> MakeExecuteRequest(const v1::PrimitiveDesc& desc,
                                                      const v1::CreateResponse& created) {
  v1::ExecuteRequest request;
  request.set_id(created.id());
  for (const v1::ArgumentDesc& argument : created.arguments()) {
    if (IsOutput(created, argument)) {
      v1::WantedOutput* output = request.add_outputs();
      output->set_argument(argument.argument());
      // A reorder is all about how the destination lies in memory: it is taken as written.
      if (!desc.has_reorder()) *output->mutable_desc() = Plain(argument.desc());
      if (!HasSumPostOp(desc)) continue;
    }
    // Arguments arrive once, unless a sum post-op reads the destination and Create names it as an
    // input too.
    bool given = false;
    for (const v1::Tensor& input : request.inputs())
      given = given || input.argument() == argument.argument();
    if (given) continue;
    v1::Tensor* input = request.add_inputs();
    input->set_argument(argument.argument());
    const bool is_src =
        argument.argument() == v1::ARGUMENT_SRC || argument.argument() == v1::ARGUMENT_DIFF_DST;
    *input->mutable_desc() = AsSent(is_src ? DescribedSrc(desc) : nullptr, argument.desc());
    const bool less_exactly = desc.attributes().precision() != v1::PRECISION_EXACT;
    input->mutable_desc()->set_type(TypeAsSent(argument, less_exactly));
    absl::StatusOr<std::string> values = InputValues(desc, argument.argument(), input->desc());
    if (!values.ok()) return values.status();
    input->set_content(*std::move(values));
  }
  return request;
}

}  // namespace tilewire::client
