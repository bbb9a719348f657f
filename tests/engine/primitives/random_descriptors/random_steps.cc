// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_steps.h"

#include <algorithm>
#include <vector>

#include "engine/base/status_macros.h"

namespace tilewire::testing {
namespace {

using Function = functions::Elementwise::Function;

Dims SizesOfAnyRank(TensorMaker& make) {
  Random& random = make.random();
  return RandomSizes(random, Chance(random, 50) ? 4 : static_cast<int>(random.Integer(1, 6)));
}

// An axis of `dims`, or in spoiled cases one that they lack. Whether it is one is in `valid`.
int AxisOf(TensorMaker& make, const Dims& dims, bool* valid) {
  const int64_t rank = static_cast<int64_t>(dims.size());
  const int64_t axis =
      std::clamp<int64_t>(make.Number(make.random().Integer(0, rank - 1)), -100, 100);
  *valid = axis >= 0 && axis < rank;
  return static_cast<int>(axis);
}

// Sizes on both sides of an operation that changes one axis; `valid` as above.
struct AxisChange {
  Dims src, dst;
  int axis;
  bool valid = false;
};

AxisChange ChangeOfAxis(TensorMaker& make) {
  AxisChange change;
  change.dst = change.src = SizesOfAnyRank(make);
  change.axis = AxisOf(make, change.src, &change.valid);
  return change;
}

template <typename Desc>
absl::Status FillChange(TensorMaker& make, const AxisChange& change, Desc* desc) {
  desc->axis = change.axis;
  ABSL_ASSIGN_OR_RETURN(desc->src, make.Typed(change.src, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc->dst, make.Typed(change.dst, DataType::kF32));
  return absl::OkStatus();
}

// A list of `count` indices into `size` elements: all, one run with a step, or many runs. Some name
// no element.
std::vector<IndexRun> RandomRuns(TensorMaker& make, int64_t size, int64_t count) {
  Random& random = make.random();
  if (size == count && Chance(random, 40)) return {};
  std::vector<IndexRun> runs;
  while (count > 0) {
    const int64_t length = Chance(random, 60) ? count : random.Integer(1, count);
    const int64_t start = random.Integer(-1, std::max<int64_t>(size, 0));
    runs.push_back({make.Number(start), make.Number(Pick(random, {-2, -1, 0, 1, 1, 1, 2, 3})),
                    make.Number(length)});
    count -= length;
  }
  return runs;
}

DataType ByteType(Random& random) { return Pick(random, {DataType::kU8, DataType::kS8}); }

std::vector<float> Reals(TensorMaker& make, int64_t count) {
  std::vector<float> reals(static_cast<size_t>(std::clamp<int64_t>(count, 0, 100000)));
  for (float& real : reals) real = make.Real();
  return reals;
}

std::vector<int32_t> ZeroPoints(TensorMaker& make, int64_t count) {
  std::vector<int32_t> points(static_cast<size_t>(std::clamp<int64_t>(count, 0, 100000)));
  for (int32_t& point : points) {
    point = static_cast<int32_t>(make.Number(make.random().Integer(0, 127)));
  }
  return points;
}

}  // namespace

absl::StatusOr<OpDesc> RandomSelect(TensorMaker& make) {
  SelectDesc desc;
  const Dims src = SizesOfAnyRank(make);
  Dims dst = src;
  for (size_t d = 0; d < dst.size(); ++d) {
    if (Chance(make.random(), 50)) dst[d] = RandomSize(make.random());
    desc.from.push_back(RandomRuns(make, src[d], dst[d]));
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dst, desc.src.data_type()));
  desc.fill = Chance(make.random(), 50) ? 0 : make.Real();
  return desc;
}

absl::StatusOr<OpDesc> RandomGather(TensorMaker& make) {
  GatherDesc desc;
  const Dims src = SizesOfAnyRank(make);
  bool valid = false;
  desc.axis = AxisOf(make, src, &valid);
  const Dims indices = RandomSizes(make.random(), static_cast<int>(make.random().Integer(1, 3)));
  Dims dst = src;
  if (valid) {
    dst.erase(dst.begin() + desc.axis);
    dst.insert(dst.begin() + desc.axis, indices.begin(), indices.end());
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(src));
  ABSL_ASSIGN_OR_RETURN(desc.indices, make.Typed(indices, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dst, desc.src.data_type()));
  return desc;
}

absl::StatusOr<OpDesc> RandomGatherChannels(TensorMaker& make) {
  Random& random = make.random();
  GatherChannelsDesc desc;
  Dims dims = RandomSizes(random, static_cast<int>(random.Integer(2, 5)));
  const int64_t tensors = random.Integer(1, 4);
  for (int64_t i = 0; i < tensors; ++i) {
    dims[1] = RandomSize(random);
    ABSL_ASSIGN_OR_RETURN(MemoryDesc src, make.Src(dims));
    desc.srcs.push_back(std::move(src));
  }
  dims[1] = RandomSize(random);
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dims, desc.srcs[0].data_type()));
  const bool in_order = Chance(random, 50);
  for (int64_t c = 0; c < dims[1]; ++c) {
    const int64_t tensor = in_order ? c * tensors / dims[1] : random.Integer(0, tensors - 1);
    const MemoryDesc& src = desc.srcs[static_cast<size_t>(tensor)];
    const int64_t size = src.rank() > 1 ? std::max<int64_t>(src.dim(1), 1) : 1;
    const int64_t channel = in_order ? c % size : random.Integer(0, size - 1);
    desc.channels.push_back(
        {static_cast<int>(std::clamp<int64_t>(make.Number(tensor), -9, 9)), make.Number(channel)});
  }
  return desc;
}

absl::StatusOr<OpDesc> RandomQuantize(TensorMaker& make) {
  Random& random = make.random();
  QuantizeDesc desc;
  const Dims dims = SizesOfAnyRank(make);
  const bool to_bytes = Chance(random, 50);
  const DataType bytes = ByteType(random);
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Typed(dims, to_bytes ? DataType::kF32 : bytes));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dims, to_bytes ? bytes : DataType::kF32));
  bool valid = false;
  desc.axis = AxisOf(make, dims, &valid);
  const int64_t count = valid && Chance(random, 50) ? dims[desc.axis] : 1;
  desc.scales = Reals(make, make.Number(count));
  desc.zero_points = ZeroPoints(make, make.Number(count));
  return desc;
}

absl::StatusOr<OpDesc> RandomIntegerSum(TensorMaker& make) {
  Random& random = make.random();
  IntegerSumDesc desc;
  const Dims dims = SizesOfAnyRank(make);
  const int64_t count = random.Integer(Chance(random, 5) ? 0 : 1, 5);
  for (int64_t i = 0; i < count; ++i) {
    ABSL_ASSIGN_OR_RETURN(MemoryDesc src, make.Typed(dims, ByteType(random)));
    desc.srcs.push_back(std::move(src));
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dims, ByteType(random)));
  desc.scales = Reals(make, make.Number(count));
  desc.zero_points = ZeroPoints(make, make.Number(count));
  desc.dst_scale = make.Real();
  desc.dst_zero_point = ZeroPoints(make, 1)[0];
  desc.relu = Chance(random, 50);
  return desc;
}

absl::StatusOr<OpDesc> RandomInterpolate(TensorMaker& make) {
  Random& random = make.random();
  InterpolateDesc desc;
  AxisChange change = ChangeOfAxis(make);
  if (change.valid) change.dst[change.axis] = RandomSize(random);
  const int64_t outputs = change.valid ? change.dst[change.axis] : 1;
  const int64_t inputs = change.valid ? change.src[change.axis] : 1;
  const int64_t taps = random.Integer(1, 5);
  desc.taps = make.Number(taps);
  desc.weights = Reals(make, make.Number(outputs * taps));
  for (int64_t i = 0; i < outputs * taps; ++i) {
    desc.indices.push_back(make.Number(random.Integer(0, std::max<int64_t>(inputs - 1, 0))));
  }
  ABSL_RETURN_IF_ERROR(FillChange(make, change, &desc));
  return desc;
}

absl::StatusOr<OpDesc> RandomMaxWindow(TensorMaker& make) {
  Random& random = make.random();
  MaxWindowDesc desc;
  desc.result = Pick(random, {MaxWindowResult::kElement, MaxWindowResult::kIndex,
                              MaxWindowResult::kColumnMajorIndex});
  const Dims src = RandomSizes(random, static_cast<int>(random.Integer(3, 5)));
  Dims dst = src;
  for (size_t d = 2; d < src.size(); ++d) {
    if (Chance(random, 50)) dst[d] = RandomSize(random);
    desc.kernel.push_back(make.Number(random.Integer(1, 5)));
    desc.strides.push_back(make.Number(random.Integer(1, 3)));
    desc.dilations.push_back(make.Number(random.Integer(0, 2)));
    desc.padding_left.push_back(make.Number(random.Integer(0, 3)));
  }
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Typed(src, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dst, DataType::kF32));
  return desc;
}

absl::StatusOr<OpDesc> RandomTopK(TensorMaker& make) {
  Random& random = make.random();
  TopKDesc desc;
  AxisChange change = ChangeOfAxis(make);
  if (change.valid) {
    const int64_t most = std::max<int64_t>(change.src[change.axis], 0);
    change.dst[change.axis] = make.Number(random.Integer(0, most));
  }
  ABSL_RETURN_IF_ERROR(FillChange(make, change, &desc));
  desc.largest = Chance(random, 50);
  desc.indices = Chance(random, 50);
  desc.last_of_equals = Chance(random, 50);
  return desc;
}

absl::StatusOr<OpDesc> RandomElementwise(TensorMaker& make) {
  Random& random = make.random();
  ElementwiseDesc desc;
  desc.function.function = static_cast<Function>(random.Integer(0, functions::kFunctionCount - 1));
  desc.function.alpha = make.Real();
  desc.function.beta = make.Real();
  const Dims dims = SizesOfAnyRank(make);
  const int64_t arity = functions::ArityOf(desc.function.function);
  for (int64_t n = Chance(random, 95) ? arity : random.Integer(0, 4); n > 0; --n) {
    Dims src = dims;
    for (int64_t& dim : src) dim = Chance(random, 80) ? dim : 1;
    ABSL_ASSIGN_OR_RETURN(MemoryDesc tensor, make.Typed(src, DataType::kF32));
    desc.srcs.push_back(std::move(tensor));
  }
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Typed(dims, DataType::kF32));
  return desc;
}

// Each of the tensors that may be left out is, in half of the cases.
absl::StatusOr<OpDesc> RandomRnn(TensorMaker& make) {
  Random& random = make.random();
  RnnDesc desc;
  desc.prop_kind = make.Propagation();
  desc.cell = static_cast<RnnCell>(random.Integer(0, 3));
  desc.direction = static_cast<RnnDirection>(random.Integer(0, 3));
  desc.couples_gates = Chance(random, 10);
  desc.clip = Chance(random, 30) ? make.Real() : 0;
  const int64_t directions = functions::DirectionsOf(desc.direction);
  for (int64_t n = make.Number(directions * functions::ActivationsOf(desc.cell)); n > 0 && n < 9;
       --n)
    desc.activations.push_back(make.Eltwise());
  const int64_t steps = random.Integer(0, 6), sequences = random.Integer(0, 5);
  const int64_t inputs = random.Integer(0, 40), states = random.Integer(0, 40);
  const int64_t gates = functions::GatesOf(desc.cell);
  const auto fill = [&](MemoryDesc* tensor, const Dims& dims, int percent,
                        DataType type = DataType::kF32) -> absl::Status {
    if (!Chance(random, percent)) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(*tensor, make.Typed(dims, type));
    return absl::OkStatus();
  };
  const Dims state = {1, directions, sequences, states};
  const Dims result = {steps, sequences, states * functions::StatesPerResult(desc.direction)};
  const int with_memory = desc.cell == RnnCell::kLstm ? 50 : 2;
  ABSL_RETURN_IF_ERROR(fill(&desc.src_layer, {steps, sequences, inputs}, 100));
  ABSL_RETURN_IF_ERROR(fill(&desc.weights_layer, {1, directions, inputs, gates, states}, 100));
  ABSL_RETURN_IF_ERROR(fill(&desc.weights_iter, {1, directions, states, gates, states}, 100));
  ABSL_RETURN_IF_ERROR(fill(&desc.dst_layer, result, 100));
  ABSL_RETURN_IF_ERROR(
      fill(&desc.bias, {1, directions, functions::BiasGatesOf(desc.cell), states}, 50));
  ABSL_RETURN_IF_ERROR(fill(&desc.src_iter, state, 50));
  ABSL_RETURN_IF_ERROR(fill(&desc.dst_iter, state, 50));
  ABSL_RETURN_IF_ERROR(fill(&desc.src_iter_c, state, with_memory));
  ABSL_RETURN_IF_ERROR(fill(&desc.dst_iter_c, state, with_memory));
  ABSL_RETURN_IF_ERROR(fill(&desc.weights_peephole, {1, directions, 3, states}, with_memory));
  ABSL_RETURN_IF_ERROR(fill(&desc.sequence_lengths, {sequences}, 30, DataType::kS32));
  return desc;
}

absl::StatusOr<OpDesc> RandomRoiAlign(TensorMaker& make) {
  Random& random = make.random();
  RoiAlignDesc desc;
  desc.takes_maximum = Chance(random, 50);
  desc.aligned = Chance(random, 50);
  desc.scale = make.Real();
  desc.samples_per_bin = make.Number(random.Integer(0, 3));
  const Dims src = RandomSizes(random, 4);
  const int64_t regions = random.Integer(0, 5);
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Typed(src, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.rois, make.Typed({regions, 4}, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.batches, make.Typed({regions}, DataType::kS64));
  ABSL_ASSIGN_OR_RETURN(
      desc.dst,
      make.Typed({regions, src[1], RandomSize(random), RandomSize(random)}, DataType::kF32));
  return desc;
}

}  // namespace tilewire::testing
