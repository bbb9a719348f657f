// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <utility>

#include "engine/memory/layout.h"
#include "engine/primitives/primitives.h"
#include "tests/bench/filled_arguments.h"
#include "tests/bench/gradients/layer_gradients.h"

namespace tilewire::bench {
namespace {

// A gradient, and what is run once before it, if it reads what that saves.
struct Problem {
  std::optional<OpDesc> forward;
  OpDesc backward;
};

// Activations are in the blocked layout of the instruction set.
class Problems {
 public:
  Problems(const Operation& operation, cpu::Isa max_isa)
      : op_(operation), max_isa_(max_isa), kind_(LayerOf(operation)) {}

  Problem Make() const {
    if (kind_ == "max" || kind_ == "avg") return Pooling();
    if (kind_ == "batch_normalization") return BatchNormalization();
    if (kind_ == "layer_normalization") return LayerNormalization();
    if (kind_ == "lrn") return {std::nullopt, Lrn()};
    if (kind_ == "relu") return {std::nullopt, Relu()};
    if (kind_ == "prelu") return {std::nullopt, Prelu()};
    if (kind_ == "add") return {std::nullopt, Binary(BinaryAlgorithm::kAdd)};
    if (kind_ == "multiply") return {std::nullopt, Binary(BinaryAlgorithm::kMul)};
    return {std::nullopt, InnerProduct()};
  }

 private:
  static MemoryDesc Open(Dims dims) {
    return *MemoryDesc::CreateAny(std::move(dims), DataType::kF32);
  }
  MemoryDesc Image(int64_t size) const {
    const absl::string_view blocked = max_isa_.Includes(cpu::Isa::kAvx512) ? "aBcd16b" : "aBcd8b";
    return *MemoryDesc::CreatePattern({op_.at("n"), op_.at("c"), size, size}, DataType::kF32,
                                      blocked);
  }
  MemoryDesc Image() const { return Image(op_.at("in")); }

  Problem Pooling() const {
    PoolingDesc desc;
    desc.algorithm = kind_ == "max" ? PoolingAlgorithm::kMax : PoolingAlgorithm::kAvgExcludePadding;
    desc.src = Image();
    desc.dst = Image(op_.out());
    desc.kernel = {op_.at("k"), op_.at("k")};
    desc.strides = {op_.at("s"), op_.at("s")};
    desc.padding_left = desc.padding_right = {op_.at("p"), op_.at("p")};
    PoolingDesc forward = desc;
    forward.prop_kind = PropKind::kForwardTraining;
    desc.prop_kind = PropKind::kBackwardData;
    if (kind_ != "max") return {std::nullopt, desc};
    const auto saving = CreatePooling(forward, {}, {.max_isa = max_isa_});
    if (saving.ok()) desc.workspace = (*saving)->Desc(kArgWorkspace);
    return {forward, desc};
  }

  Problem BatchNormalization() const {
    BatchNormalizationDesc forward;
    forward.prop_kind = PropKind::kForwardTraining;
    forward.src = forward.dst = Image();
    forward.use_global_stats = false;
    BatchNormalizationDesc backward = forward;
    backward.prop_kind = PropKind::kBackward;
    backward.dst = MemoryDesc();
    backward.diff_src = backward.diff_dst = backward.src;
    return {forward, backward};
  }

  // Over n rows.
  Problem LayerNormalization() const {
    LayerNormalizationDesc forward;
    forward.prop_kind = PropKind::kForwardTraining;
    forward.src = forward.dst =
        *MemoryDesc::CreatePattern({op_.at("n"), op_.at("c")}, DataType::kF32, "ab");
    LayerNormalizationDesc backward = forward;
    backward.prop_kind = PropKind::kBackward;
    backward.dst = MemoryDesc();
    backward.diff_src = backward.diff_dst = backward.src;
    return {forward, backward};
  }

  OpDesc Lrn() const {
    LrnDesc desc;
    desc.prop_kind = PropKind::kBackwardData;
    desc.src = desc.diff_src = desc.diff_dst = Image();
    return desc;
  }

  OpDesc Relu() const {
    EltwiseDesc desc;
    desc.prop_kind = PropKind::kBackwardData;
    desc.src = desc.diff_src = desc.diff_dst = Image();
    return desc;
  }

  // The second tensor of a binary function, or the slopes of a prelu.
  MemoryDesc Shared() const {
    const int64_t size = IsPerPixel(op_) ? op_.at("in") : 1;
    return Open({1, IsPerChannel(op_) ? op_.at("c") : 1, size, size});
  }
  MemoryDesc ImageInItsLayout() const {
    if (op_.at("layout") == kBlocked) return Image();
    return *MemoryDesc::CreatePattern(Image().dims(), DataType::kF32,
                                      op_.at("layout") == kNchw ? "abcd" : "acdb");
  }

  OpDesc Prelu() const {
    PreluDesc desc;
    desc.prop_kind = PropKind::kBackward;
    desc.src = desc.diff_src = desc.diff_dst = ImageInItsLayout();
    desc.weights = Shared();
    return desc;
  }

  OpDesc Binary(BinaryAlgorithm algorithm) const {
    BinaryDesc desc;
    desc.algorithm = algorithm;
    desc.prop_kind = PropKind::kBackwardData;
    desc.src0 = desc.dst = desc.diff_src0 = desc.diff_dst = ImageInItsLayout();
    desc.src1 = desc.diff_src1 = *OrLayoutOf(Shared(), desc.src0);
    return desc;
  }

  OpDesc InnerProduct() const {
    const int64_t n = op_.at("n"), c = op_.at("c"), o = op_.at("o");
    const bool of_src = kind_ == "of_src_of_inner_product";
    InnerProductDesc desc;
    desc.prop_kind = of_src ? PropKind::kBackwardData : PropKind::kBackwardWeights;
    desc.src = Open({n, c});
    desc.weights = Open({o, c});
    if (!of_src) desc.bias = Open({o});
    desc.dst = Open({n, o});
    return desc;
  }

  const Operation& op_;
  const cpu::Isa max_isa_;
  const std::string kind_;
};

class OurGradientOfLayer final : public RunnableOperation {
 public:
  OurGradientOfLayer(const Operation& operation, cpu::Isa max_isa, bool reference)
      : options_{.max_isa = max_isa, .reference_only = reference} {
    const Problem problem = Problems(operation, max_isa).Make();
    if (problem.forward) {
      Create(operation, *problem.forward);
      if (IsForwardForTraining(operation)) return;
      Run();
    }
    Create(operation, problem.backward);
  }

  void Run() override {
    if (!primitive_->Execute(arguments_.args(), threading::Team::Serial()).ok()) std::exit(1);
  }
  std::string name() const override { return std::string(primitive_->name()); }

 private:
  // Arguments that an earlier primitive had keep their contents.
  void Create(const Operation& operation, const OpDesc& desc) {
    auto primitive = CreatePrimitive(desc, {}, options_);
    if (!primitive.ok()) {
      std::fprintf(stderr, "%s: %s\n", operation.name.c_str(),
                   primitive.status().ToString().c_str());
      std::exit(1);
    }
    primitive_ = *std::move(primitive);
    for (const ArgDesc& arg : primitive_->info().args) {
      if (arguments_.args().Find(arg.arg) == nullptr) arguments_.Add(arg.arg, arg.desc);
    }
  }

  const CreateOptions options_;
  std::shared_ptr<const Primitive> primitive_;
  FilledArguments arguments_;
};

}  // namespace

std::unique_ptr<RunnableOperation> MakeOurGradient(const Operation& operation, cpu::Isa max_isa,
                                                   bool reference) {
  return std::make_unique<OurGradientOfLayer>(operation, max_isa, reference);
}

}  // namespace tilewire::bench
