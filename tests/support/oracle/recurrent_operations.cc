// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "tests/support/oracle/operations.h"
#include "tests/support/rnn_formula.h"

namespace tilewire::testing {
namespace {

using Role = network::Rnn::Role;

void SetSource(Role role, Elements elements, RnnSources<double>* sources) {
  using Sources = RnnSources<double>;
  static constexpr Elements Sources::*kMembers[] = {
      &Sources::layer,    &Sources::weights_layer, &Sources::weights_iter, &Sources::bias,
      &Sources::peephole, &Sources::iter,          &Sources::iter_c};
  if (role == Role::kSequenceLengths) {
    sources->lengths.assign(elements.begin(), elements.end());
  } else {
    sources->*kMembers[static_cast<int>(role)] = std::move(elements);
  }
}

// [D,N,H] as [N,D,H], after what is there.
void AppendStates(const Elements& states, const RnnProblem& problem, Elements* dst) {
  const int64_t directions = functions::DirectionsOf(problem.direction);
  for (int64_t n = 0; n < problem.sequences; ++n) {
    for (int64_t d = 0; d < directions; ++d) {
      const auto begin = states.begin() + (d * problem.sequences + n) * problem.states;
      dst->insert(dst->end(), begin, begin + problem.states);
    }
  }
}

}  // namespace

Elements Compute(const network::Rnn& rnn, const Operands& operands) {
  RnnSources<double> sources;
  Dims layer;
  for (size_t i = 0; i < rnn.roles.size(); ++i) {
    SetSource(rnn.roles[i], operands.srcs[i].elements, &sources);
    if (rnn.roles[i] == Role::kLayer) layer = operands.srcs[i].dims;
  }
  for (const auto& [role, weights] : rnn.known) {
    const network::HeldFloats held = network::LoadElements(weights).value();
    SetSource(role, {held.values.begin(), held.values.end()}, &sources);
  }
  const int64_t states = operands.dst[2] / functions::DirectionsOf(rnn.direction);
  const RnnProblem problem{rnn.cell, rnn.direction, rnn.activations, rnn.clip, rnn.couples_gates,
                           layer[0], layer[1],      layer[2],        states};
  RnnResults<double> results = RnnFormula<double>(problem, sources).Run();
  if (rnn.gives_iter) AppendStates(results.iter, problem, &results.layer);
  if (rnn.gives_iter_c) AppendStates(results.iter_c, problem, &results.layer);
  return results.layer;
}

}  // namespace tilewire::testing
