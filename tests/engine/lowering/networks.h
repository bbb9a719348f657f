// SPDX-License-Identifier: Apache-2.0
//
// The networks of the tests of lowering, as a table: each exercises one thing that lowering can get
// wrong.
#ifndef TESTS_ENGINE_LOWERING_NETWORKS_H_
#define TESTS_ENGINE_LOWERING_NETWORKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/network/network.h"
#include "engine/onnx/onnx_model.h"

namespace tilewire::network {

struct NetworkCase {
  const char* name;
  Network (*make)(int64_t batch);
};

absl::Span<const NetworkCase> NetworkCases();
// The function that makes the case of this name, which must be one.
Network (*FindNetwork(absl::string_view name))(int64_t batch);

// The parts of the table, each in a file of its name.
absl::Span<const NetworkCase> ConvolutionNetworks();
absl::Span<const NetworkCase> ConcatNetworks();
absl::Span<const NetworkCase> MovingNetworks();
absl::Span<const NetworkCase> ElementNetworks();
absl::Span<const NetworkCase> ChannelNetworks();
absl::Span<const NetworkCase> QuantizedNetworks();
absl::Span<const NetworkCase> RecurrentNetworks();
absl::Span<const NetworkCase> GradientNetworks();
absl::Span<const NetworkCase> LossNetworks();

// Networks for tests of their own.
// Of 8-bit integers with scales of any size, each output one operation away from the input; steps
// of the outputs.
constexpr float kOrdinaryStep = 0.0153f;
Network QuantizedOrdinary(int64_t batch);

// Convolutions followed by a 2x2 maximum: as one operation (one of them Winograd's, at odd sizes,
// one 1x1, one too small for Winograd, one with more steps than a chain holds), and as two.
Network PooledConvolutions(int64_t batch);
Network ConvolutionsAndPoolings(int64_t batch);

// Losses with their gradients, as means over the batch.
Network MeanLosses(int64_t batch);

// Rows of a table of four; the request says which.
Network GatheredByTheRequest(int64_t batch);

// A model whose networks `make` builds; its signature leaves the batch open.
std::shared_ptr<const reader::OnnxModel> HandMadeModel(Network (*make)(int64_t batch));

}  // namespace tilewire::network

#endif  // TESTS_ENGINE_LOWERING_NETWORKS_H_
