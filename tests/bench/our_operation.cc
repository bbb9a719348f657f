// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "engine/primitives/primitives.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/gradients/layer_gradients.h"
#include "tests/bench/model_operations.h"
#include "tests/bench/operation.h"

namespace tilewire::bench {
namespace {

MemoryDesc Any(Dims dims, DataType type = DataType::kF32) {
  return *MemoryDesc::CreateAny(std::move(dims), type);
}
MemoryDesc Tagged(Dims dims, absl::string_view pattern) {
  return *MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, pattern);
}

// Descriptors of one operation; activations are in the blocked layout of the instruction set.
class Descriptors {
 public:
  Descriptors(const Operation& operation, cpu::Isa max_isa)
      : op_(operation), blocked_(max_isa.Includes(cpu::Isa::kAvx512) ? "aBcd16b" : "aBcd8b") {}

  OpDesc Make() const {
    if (absl::EndsWith(op_.kind, "convolution")) return Convolution();
    if (op_.kind == "max" || op_.kind == "avg") return Pooling();
    if (op_.kind == "lrn") return LrnDesc{.src = Image(), .dst = Image()};
    if (op_.kind == "softmax") {
      const MemoryDesc md = Tagged({op_.at("n"), op_.at("c")}, "ab");
      return SoftmaxDesc{.src = md, .dst = md, .axis = 1};
    }
    if (op_.kind == "shuffle") {
      const int64_t groups = op_.at("g");
      return ShuffleDesc{
          .src = Image(), .dst = Image(), .axis = 1, .group_size = op_.at("c") / groups};
    }
    if (op_.kind == "sum") {
      const int64_t sources = op_.at("m");
      return SumDesc{.scales = std::vector<float>(sources, 1.0f),
                     .srcs = std::vector<MemoryDesc>(sources, Image()),
                     .dst = Image()};
    }
    if (op_.kind == "concat") return Concat();
    if (absl::EndsWith(op_.kind, "inner_product")) return InnerProduct();
    if (absl::EndsWith(op_.kind, "matmul")) return Matmul();
    if (absl::StrContains(op_.kind, "_to_")) return Reorder();
    if (std::optional<OpDesc> desc = ModelDescriptor(op_, blocked_)) return *std::move(desc);
    return Eltwise();
  }

 private:
  Dims ImageDims(int64_t channels) const {
    return {op_.at("n"), channels, op_.at("in"), op_.at("in")};
  }
  MemoryDesc Image() const { return Tagged(ImageDims(op_.at("c")), blocked_); }

  DataType Activation() const { return op_.IsInteger() ? DataType::kU8 : DataType::kF32; }
  DataType Weight() const { return op_.IsInteger() ? DataType::kS8 : DataType::kF32; }

  OpDesc Convolution() const {
    const int64_t g = op_.at("g"), k = op_.at("k"), o = op_.at("o"), c = op_.at("c");
    ConvolutionDesc desc;
    desc.src = Any(ImageDims(c), Activation());
    desc.weights = Any(g > 1 ? Dims{g, o / g, c / g, k, k} : Dims{o, c, k, k}, Weight());
    desc.bias = Any({o});
    desc.dst = Any({op_.at("n"), o, op_.out(), op_.out()}, Activation());
    desc.strides = {op_.at("s"), op_.at("s")};
    desc.dilations = {0, 0};
    desc.padding_left = desc.padding_right = {op_.at("p"), op_.at("p")};
    return desc;
  }

  OpDesc Pooling() const {
    PoolingDesc desc;
    desc.algorithm =
        op_.kind == "max" ? PoolingAlgorithm::kMax : PoolingAlgorithm::kAvgExcludePadding;
    desc.src = Image();
    desc.dst = Any({op_.at("n"), op_.at("c"), op_.out(), op_.out()});
    desc.kernel = {op_.at("k"), op_.at("k")};
    desc.strides = {op_.at("s"), op_.at("s")};
    desc.padding_left = desc.padding_right = {op_.at("p"), op_.at("p")};
    return desc;
  }

  OpDesc Concat() const {
    ConcatDesc desc;
    int64_t total = 0;
    for (const char* size : {"c1", "c2", "c3", "c4"}) {
      desc.srcs.push_back(Tagged(ImageDims(op_.at(size)), blocked_));
      total += op_.at(size);
    }
    desc.dst = Tagged(ImageDims(total), blocked_);
    return desc;
  }

  OpDesc InnerProduct() const {
    const int64_t n = op_.at("n"), c = op_.at("c"), o = op_.at("o");
    InnerProductDesc desc;
    desc.src = Any({n, c}, Activation());
    desc.weights = Any({o, c}, Weight());
    desc.bias = Any({o});
    desc.dst = Any({n, o}, Activation());
    return desc;
  }

  OpDesc Matmul() const {
    const int64_t n = op_.at("n"), m = op_.at("m"), c = op_.at("c"), o = op_.at("o");
    MatmulDesc desc;
    desc.src = Any({n, m, c}, Activation());
    desc.weights =
        *MemoryDesc::CreatePattern({n, c, o}, Weight(), op_.at("t") != 0 ? "acb" : "abc");
    desc.dst = Any({n, m, o}, Activation());
    return desc;
  }

  OpDesc Reorder() const {
    const bool nchw = absl::StrContains(op_.kind, "nchw");
    const MemoryDesc plain = Tagged(ImageDims(op_.at("c")), nchw ? "abcd" : "acdb");
    if (absl::EndsWith(op_.kind, "_to_blocked")) return ReorderDesc{plain, Image()};
    return ReorderDesc{Image(), plain};
  }

  OpDesc Eltwise() const {
    for (int i = 0; i < functions::kRealFunctionCount; ++i) {
      const auto algorithm = static_cast<EltwiseAlgorithm>(i);
      if (functions::AlgorithmName(algorithm) != op_.kind) continue;
      return EltwiseDesc{.op = {.function = algorithm, .alpha = 0.5f, .beta = 0.25f},
                         .src = Image(),
                         .dst = Image()};
    }
    std::fprintf(stderr, "%s: no operation '%s'\n", op_.name.c_str(), op_.kind.c_str());
    std::exit(1);
  }

  const Operation& op_;
  const absl::string_view blocked_;
};

class OurOperation final : public RunnableOperation {
 public:
  // `reference`: by the reference row of its table.
  OurOperation(const Operation& operation, cpu::Isa max_isa, bool reference) {
    Attributes attributes;
    attributes.scratchpad_mode = ScratchpadMode::kUser;
    if (absl::EndsWith(operation.kind, "convolution")) {
      (void)attributes.post_ops.Append(EltwisePostOp{});
    }
    if (operation.IsInteger()) {
      attributes.output_scales = {2, std::vector<float>(operation.at("o"), 1e-3f)};
      if (absl::EndsWith(operation.kind, "matmul")) attributes.output_scales = {0, {1e-3f}};
    }
    const OpDesc desc = Descriptors(operation, max_isa).Make();
    auto primitive =
        CreatePrimitive(desc, attributes, {.max_isa = max_isa, .reference_only = reference});
    if (!primitive.ok()) {
      std::fprintf(stderr, "%s: %s\n", operation.name.c_str(),
                   primitive.status().ToString().c_str());
      std::exit(1);
    }
    primitive_ = *std::move(primitive);
    for (const ArgDesc& arg : primitive_->info().args) arguments_.Add(arg.arg, arg.desc);
    arguments_.Add(kArgScratchpad, primitive_->ScratchpadDesc());
  }

  void Run() override {
    if (!primitive_->Execute(arguments_.args(), threading::Team::Serial()).ok()) std::exit(1);
  }
  std::string name() const override { return std::string(primitive_->name()); }
  int64_t MovedBytes() const override {
    if (primitive_->kind() != PrimitiveKind::kShuffle &&
        primitive_->kind() != PrimitiveKind::kReorder) {
      return 0;
    }
    return (primitive_->Desc(kArgSrc).SizeBytes() + primitive_->Desc(kArgDst).SizeBytes()) / 2;
  }

 private:
  std::shared_ptr<const Primitive> primitive_;
  FilledArguments arguments_;
};

}  // namespace

std::unique_ptr<RunnableOperation> MakeOurs(const Operation& operation, cpu::Isa max_isa) {
  if (IsOfTraining(operation)) return MakeOurGradient(operation, max_isa);
  return std::make_unique<OurOperation>(operation, max_isa, /*reference=*/false);
}

std::unique_ptr<RunnableOperation> MakePeer(const Operation& operation, cpu::Isa max_isa) {
  if (HasNoPeer(operation)) return MakeOurGradient(operation, max_isa, /*reference=*/true);
  if (IsOfTraining(operation)) return MakeOneDnnGradient(operation);
  if (!ModelDescriptor(operation, "aBcd8b")) return MakeOneDnn(operation);
  return std::make_unique<OurOperation>(operation, max_isa, /*reference=*/true);
}

}  // namespace tilewire::bench
