// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/few_outputs_generator.h"

#include <cstddef>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/jit/tail_mask.h"
#include "engine/kernels/elements/lane_sums.h"

namespace tilewire::convolution {
namespace {

class FewOutputsGenerator final : public TapLoopGenerator {
 public:
  FewOutputsGenerator(absl::string_view name, const DirectConfig& config, int tail_channels)
      : TapLoopGenerator(name, config.epilogue, config.loops, offsetof(DirectArgs, loops)),
        has_bias_(config.epilogue.bias),
        has_slopes_(config.epilogue.post_ops.Slopes() != nullptr),
        tail_channels_(tail_channels),
        tail_(this, unit_, {.spare = rax, .opmask = k3, .vector = unit_.registers() - 1}),
        epilogue_(this, EpilogueOfLaneSums(unit_, pixels_, config.epilogue.post_ops),
                  {.dst = src_,
                   .bias = weights_,
                   .spare = rax,
                   .scratch = unit_.RegistersFrom(1),
                   .slopes = weights_}) {
    TILEWIRE_CHECK(pixels_ <= unit_.lanes(), "a lane for each pixel");
  }

 private:
  Xbyak::Xmm Spare() const { return Vector(unit_.lanes()); }

  void Emit() override {
    Preamble();
    ReserveStack();
    ZeroSums();
    LoadPointers(offsetof(DirectArgs, src), offsetof(DirectArgs, weights));
    if (tail_channels_ > 0) tail_.Set(tail_channels_);
    ReduceBlocks();
    Finish();
    ReleaseStack();
    Postamble();
    epilogue_.EmitTables();
    if (tail_channels_ > 0) tail_.EmitTable();
  }

  // The taps are emitted once for the full blocks, if there are any, and once for the last one.
  void BeginTaps(int /*channels*/, int /*unroll*/) override {
    in_tail_ = tail_channels_ > 0 && (begun_ || !loops_.full_blocks);
    begun_ = true;
  }

  int InstructionsOfChannel(int pixels) const override { return 1 + pixels; }

  // A channel is a block of channels. What lies after the last one of src may be anything.
  void ReduceChannel(const TapRun& run, int /*channel*/) override {
    vmovups(Weights(0), ptr[WeightsOf(0)]);
    for (int pixel = run.first_pixel; pixel < run.end_pixel; ++pixel) {
      const Xbyak::Address src = ptr[src_ + static_cast<int>(pixel * loops_.src_pixel)];
      if (in_tail_) {
        const Xbyak::Xmm loaded = Vector(pixels_ + 1);
        tail_.Load(loaded, src);
        vfmadd231ps(Sum(0, pixel), Weights(0), loaded);
      } else {
        vfmadd231ps(Sum(0, pixel), Weights(0), src);
      }
    }
  }

  void Finish() {
    for (int i = pixels_; i < unit_.lanes(); ++i) unit_.Zero(this, Vector(i));
    EmitLaneSums(this, unit_, Spare());
    if (has_bias_) {
      mov(weights_, Argument(offsetof(DirectArgs, bias)));
      vbroadcastss(Spare(), ptr[weights_]);
      vaddps(Vector(0), Vector(0), Spare());
    }
    if (has_slopes_) mov(weights_, Argument(offsetof(DirectArgs, slopes)));
    mov(src_, Argument(offsetof(DirectArgs, dst)));
    epilogue_.ApplyPostOps(/*skip_sum=*/false);
    epilogue_.Store();
  }

  const bool has_bias_, has_slopes_;
  const int tail_channels_;  // of the last input block, if it is not full
  bool begun_ = false, in_tail_ = false;
  jit::TailMask tail_;
  AccumulatorEpilogue epilogue_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateFewOutputs(absl::string_view name,
                                                                         const DirectConfig& config,
                                                                         int tail_channels) {
  ABSL_ASSIGN_OR_RETURN(std::unique_ptr<const jit::Generator> generator,
                        jit::Compile<FewOutputsGenerator>(name, config, tail_channels));
  return generator;
}

}  // namespace tilewire::convolution
