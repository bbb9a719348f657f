// SPDX-License-Identifier: Apache-2.0
//
// Every implementation of every primitive on one or more descriptors: many threads execute one
// primitive at once in user scratchpad mode, alone and on teams, and get the bits of a serial
// execution; and so does library mode (S01-S04).
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "engine/primitives/primitives.h"
#include "gtest/gtest.h"
#include "tests/engine/primitives/cases_taken.h"
#include "tests/engine/primitives/row_name.h"

namespace tilewire::testing {
namespace {

constexpr int kThreads = 4;
constexpr int kRepeats = 4;

MemoryDesc Any(Dims dims) { return MemoryDesc::CreateAny(std::move(dims), DataType::kF32).value(); }

MemoryDesc Plain(Dims dims) {
  const absl::string_view pattern = absl::string_view("abcdef").substr(0, dims.size());
  return MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, pattern).value();
}

MemoryDesc Blocked(Dims dims) {
  return MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, "aBcd16b").value();
}

struct ConcurrentCase {
  const char* why;
  OpDesc desc;
  bool post_ops = false;  // sum and relu
  Precision precision = Precision::kExact;
};

OpDesc Convolution(Dims weights, Dims src, Dims dst) {
  ConvolutionDesc desc;
  desc.weights = Any(std::move(weights));
  desc.src = Any(std::move(src));
  desc.bias = Plain({dst[1]});
  desc.dst = Any(std::move(dst));
  desc.strides = desc.padding_left = desc.padding_right = {1, 1};
  desc.dilations = {0, 0};
  return desc;
}

OpDesc Winograd(Dims weights, Dims src, Dims dst) {
  OpDesc desc = Convolution(std::move(weights), std::move(src), std::move(dst));
  std::get<ConvolutionDesc>(desc).algorithm = ConvolutionAlgorithm::kWinograd;
  return desc;
}

OpDesc Pooling(PoolingAlgorithm algorithm, const MemoryDesc& src, const MemoryDesc& dst) {
  PoolingDesc desc;
  desc.algorithm = algorithm;
  desc.src = src;
  desc.dst = dst;
  desc.kernel = {3, 3};
  desc.strides = {2, 2};
  desc.padding_left = desc.padding_right = {1, 1};
  return desc;
}

OpDesc InnerProduct(Dims src, Dims weights, Dims dst) {
  InnerProductDesc desc;
  desc.bias = Plain({dst[1]});
  desc.src = Any(std::move(src));
  desc.weights = Any(std::move(weights));
  desc.dst = Any(std::move(dst));
  return desc;
}

OpDesc Eltwise(const MemoryDesc& md) {
  EltwiseDesc desc;
  desc.op.function = EltwiseAlgorithm::kTanh;
  desc.src = desc.dst = md;
  return desc;
}

OpDesc Softmax(const MemoryDesc& md) {
  SoftmaxDesc desc;
  desc.src = desc.dst = md;
  return desc;
}

OpDesc Shuffle(const MemoryDesc& md) {
  ShuffleDesc desc;
  desc.src = desc.dst = md;
  desc.group_size = 4;
  return desc;
}

std::vector<ConcurrentCase> ConcurrentCases() {
  const Dims image = {2, 20, 18, 17};
  const Dims small = {2, 20, 9, 7};
  const Dims full = {2, 32, 9, 7};  // no padded tail
  return {
      {"conv with tails", Convolution({40, 20, 3, 3}, small, {2, 40, 9, 7})},
      {"conv with post-ops", Convolution({40, 20, 3, 3}, small, {2, 40, 9, 7}), true},
      {"winograd, blocks to each thread", Winograd({40, 20, 3, 3}, image, {2, 40, 18, 17}), true},
      {"winograd, threads share a block", Winograd({80, 520, 3, 3}, {1, 520, 9, 7}, {1, 80, 9, 7})},
      {"grouped conv", Convolution({2, 16, 16, 3, 3}, {2, 32, 9, 9}, {2, 32, 9, 9})},
      {"depthwise conv", Convolution({32, 1, 1, 3, 3}, {2, 32, 9, 9}, {2, 32, 9, 9})},
      {"conv by products of bf16", Convolution({40, 36, 3, 3}, {2, 36, 9, 7}, {2, 40, 9, 7}), true,
       Precision::kBf16},
      {"grouped conv by products of bf16",
       Convolution({2, 16, 16, 3, 3}, {2, 32, 9, 9}, {2, 32, 9, 9}), false, Precision::kBf16},
      {"max pooling", Pooling(PoolingAlgorithm::kMax, Blocked(image), Blocked({2, 20, 9, 9}))},
      {"plain average",
       Pooling(PoolingAlgorithm::kAvgExcludePadding, Plain(image), Plain({2, 20, 9, 9}))},
      {"softmax", Softmax(Plain({17, 1000}))},
      {"inner product with tails", InnerProduct({5, 300}, {77, 300}, {5, 77})},
      {"inner product with post-ops", InnerProduct({5, 300}, {77, 300}, {5, 77}), true},
      {"inner product by products of bf16", InnerProduct({5, 301}, {77, 301}, {5, 77}), true,
       Precision::kBf16},
      {"eltwise on a padded tail", Eltwise(Blocked(image))},
      {"sum", SumDesc{{1, 2}, {Blocked(image), Blocked(image)}, Blocked(image)}},
      {"concat", ConcatDesc{1, {Blocked(image), Blocked(image)}, Blocked({2, 40, 18, 17})}},
      {"concat of full blocks",
       ConcatDesc{1, {Blocked(full), Blocked(full)}, Blocked({2, 64, 9, 7})}},
      {"shuffle", Shuffle(Blocked(image))},
      {"reorder to blocks", ReorderDesc{Plain(image), Blocked(image)}},
      {"reorder from blocks", ReorderDesc{Blocked(image), Plain(image)}},
      {"winograd weights",
       ReorderDesc{Plain({40, 20, 3, 3}),
                   MemoryDesc::CreateWinograd({40, 20, 3, 3}, {4, 16, 2}).value()}},
  };
}

using Bytes = std::vector<char>;

// The buffers of one execution, filled alike for each: plain random numbers, reordered to each
// argument's layout so that padded tails are zero.
class Buffers {
 public:
  explicit Buffers(const Primitive& primitive) {
    for (const ArgDesc& entry : primitive.info().args) {
      buffers_[entry.arg] = AlignedBuffer::Allocate(entry.desc.SizeBytes()).value();
      Fill(entry.desc, entry.arg, buffers_[entry.arg].data());
      args_.Set(entry.arg, buffers_[entry.arg].data());
    }
    scratchpad_ = AlignedBuffer::Allocate(primitive.ScratchpadDesc().SizeBytes()).value();
    args_.Set(kArgScratchpad, scratchpad_.data());
  }

  const ExecuteArgs& args() const { return args_; }

  Bytes Output() const {
    const AlignedBuffer& dst = buffers_.at(kArgDst);
    const auto* begin = reinterpret_cast<const char*>(dst.data());
    return Bytes(begin, begin + dst.size());
  }

 private:
  static void Fill(const MemoryDesc& desc, int seed, void* bytes) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(desc.ElementCount());
    for (float& value : values) value = uniform(random);
    const ReorderDesc reorder = {Plain(desc.dims()), desc};
    const bool blocked = desc.format_kind() == FormatKind::kBlocked;
    const auto primitive = CreateReorder(reorder, {}, {.reference_only = blocked});
    ASSERT_TRUE(primitive.ok()) << primitive.status();
    ExecuteArgs args;
    args.Set(kArgSrc, values.data()).Set(kArgDst, bytes);
    ASSERT_TRUE((*primitive)->Execute(args, threading::Team::Serial()).ok());
  }

  std::map<int, AlignedBuffer> buffers_;
  AlignedBuffer scratchpad_;
  ExecuteArgs args_;
};

Bytes Execute(const Primitive& primitive, const threading::Team& team) {
  const Buffers buffers(primitive);
  const absl::Status status = primitive.Execute(buffers.args(), team);
  EXPECT_TRUE(status.ok()) << status;
  return buffers.Output();
}

Attributes AttributesOf(const ConcurrentCase& c, ScratchpadMode mode) {
  Attributes attributes;
  attributes.scratchpad_mode = mode;
  attributes.precision = c.precision;
  if (c.post_ops) {
    EXPECT_TRUE(attributes.post_ops.Append(SumPostOp{}).ok());
    EXPECT_TRUE(attributes.post_ops.Append(EltwisePostOp{}).ok());
  }
  return attributes;
}

void ExpectSerialBitsFromThreads(const Primitive& primitive, const Bytes& serial) {
  threading::Arena arena(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const threading::Team team = t % 2 == 0 ? threading::Team::Serial() : threading::Team(&arena);
      for (int i = 0; i < kRepeats; ++i) EXPECT_TRUE(Execute(primitive, team) == serial);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

class ImplementationTest : public ::testing::TestWithParam<ImplementationRow> {};

TEST_P(ImplementationTest, ManyThreadsAtOnceGiveTheSerialBits) {
  if (!cpu::Supports(GetParam().isa)) GTEST_SKIP() << "CPU lacks " << cpu::IsaName(GetParam().isa);
  int created = 0;
  const CreateOptions options = {.only = GetParam().name};
  for (const ConcurrentCase& c : ConcurrentCases()) {
    if (KindOf(c.desc) != GetParam().kind) continue;
    SCOPED_TRACE(c.why);
    const auto user = CreatePrimitive(c.desc, AttributesOf(c, ScratchpadMode::kUser), options);
    const auto library =
        CreatePrimitive(c.desc, AttributesOf(c, ScratchpadMode::kLibrary), options);
    ASSERT_EQ(user.status().code(), library.status().code()) << "S01: success depends on the mode";
    if (!GetParam().traits.runs_another) CountCase(GetParam().name, user.ok());
    if (absl::IsUnimplemented(user.status())) continue;
    ASSERT_TRUE(user.ok()) << user.status();
    EXPECT_EQ((*user)->MemoryConsumptionBytes(), 0);
    EXPECT_EQ((*user)->ScratchpadDesc().SizeBytes(), (*library)->MemoryConsumptionBytes());
    const Bytes serial = Execute(**user, threading::Team::Serial());
    EXPECT_TRUE(Execute(**library, threading::Team::Serial()) == serial);
    ExpectSerialBitsFromThreads(**user, serial);
    ++created;
  }
  if (created == 0) GTEST_SKIP() << "takes none of these descriptors";
}

INSTANTIATE_TEST_SUITE_P(AllImplementations, ImplementationTest,
                         ::testing::ValuesIn(AllImplementations()), RowName<ImplementationRow>);

}  // namespace
}  // namespace tilewire::testing
