// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/lowering/networks.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"

namespace tilewire::network {
namespace {

class HandMade : public reader::OnnxModel {
 public:
  explicit HandMade(Network (*make)(int64_t)) : make_(make) {
    const Network network = make(1);
    for (ValueId id : network.inputs) inputs_.push_back(Signature(network.values[id]));
    for (ValueId id : network.outputs) outputs_.push_back(Signature(network.values[id]));
  }
  const std::vector<TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<TensorSpec>& outputs() const override { return outputs_; }
  int64_t weights_bytes() const override { return 0; }
  absl::StatusOr<Network> Specialize(absl::Span<const Dims> dims,
                                     absl::Span<const std::string>) const override {
    return make_(dims[0][0]);
  }
  std::vector<ConstantPtr> Trainable() const override { return {}; }
  absl::StatusOr<Network> SpecializeForTraining(absl::Span<const Dims>,
                                                const reader::TrainingPurpose&) const override {
    return Unimplemented("a network made by hand has no parameters");
  }
  absl::Status Write(const std::string&, absl::Span<const reader::NewElements>,
                     const reader::Metadata&) const override {
    return Unimplemented("a network made by hand has no file");
  }
  absl::Status CheckPlaces(const std::string&) const override { return absl::OkStatus(); }

 private:
  static TensorSpec Signature(const Value& value) {
    TensorSpec signature{value.name, value.type, value.dims};
    signature.dims[0] = -1;
    return signature;
  }

  Network (*const make_)(int64_t);
  std::vector<TensorSpec> inputs_, outputs_;
};

}  // namespace

absl::Span<const NetworkCase> NetworkCases() {
  static const auto* const kAll = [] {
    auto* all = new std::vector<NetworkCase>;
    for (const auto cases : {ConvolutionNetworks(), ConcatNetworks(), MovingNetworks(),
                             ElementNetworks(), ChannelNetworks(), QuantizedNetworks(),
                             RecurrentNetworks(), GradientNetworks(), LossNetworks()})
      all->insert(all->end(), cases.begin(), cases.end());
    return all;
  }();
  return *kAll;
}

Network (*FindNetwork(absl::string_view name))(int64_t batch) {
  const auto cases = NetworkCases();
  const auto found = std::find_if(cases.begin(), cases.end(),
                                  [&](const NetworkCase& one) { return one.name == name; });
  TILEWIRE_CHECK(found != cases.end(), "a case has the name");
  return found->make;
}

std::shared_ptr<const reader::OnnxModel> HandMadeModel(Network (*make)(int64_t batch)) {
  return std::make_shared<HandMade>(make);
}

}  // namespace tilewire::network
