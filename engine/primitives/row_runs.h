// SPDX-License-Identifier: Apache-2.0
//
// The order in which a search asks the rows of a table. Rows with a cost that follow each other in
// the table are a run: those of them that take the descriptor are candidates together, the cheapest
// first, and the first in the table of equally cheap ones. A row without a cost is a run by itself.
// Runs come in the order of the table. So costs decide between neighbours only, and a row without
// one keeps its place: before all that follow it, after all before it. A run ends, too, where
// vectors become narrower: rows of AVX2 are asked after all of AVX-512.
//
// Rows are compared by their estimated cycles times their handicap (ImplementationTraits).
#ifndef ENGINE_PRIMITIVES_ROW_RUNS_H_
#define ENGINE_PRIMITIVES_ROW_RUNS_H_

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "engine/cpu/isa.h"

namespace tilewire {

template <typename Desc>
struct Implementation;  // implementation.h

// A row that takes a descriptor.
template <typename Desc>
struct Candidate {
  const Implementation<Desc>* row = nullptr;
  Desc resolved;
  double cycles = 0;  // 0 where the row has no cost

  double Compared() const { return cycles * row->traits.handicap; }
};

// Visits the runs in which a row takes the descriptor until `take`, which gets the candidates of a
// run in their order, says that the search has ended. `ask` answers for each row of the table in
// turn whether it takes the descriptor.
template <typename Desc>
void VisitRuns(absl::Span<const Implementation<Desc>> table,
               absl::FunctionRef<std::optional<Candidate<Desc>>(const Implementation<Desc>&)> ask,
               absl::FunctionRef<bool(absl::Span<const Candidate<Desc>>)> take) {
  std::vector<Candidate<Desc>> run;
  const auto ends = [&run, take] {
    std::stable_sort(run.begin(), run.end(),
                     [](const auto& a, const auto& b) { return a.Compared() < b.Compared(); });
    const bool ended = !run.empty() && take(run);
    run.clear();
    return ended;
  };
  for (const Implementation<Desc>& row : table) {
    const bool is_narrower = !run.empty() && run.back().row->isa.Includes(cpu::Isa::kAvx512) &&
                             !row.isa.Includes(cpu::Isa::kAvx512);
    if ((row.cost == nullptr || is_narrower) && ends()) return;
    std::optional<Candidate<Desc>> candidate = ask(row);
    if (candidate) run.push_back(*std::move(candidate));
    if (row.cost == nullptr && ends()) return;
  }
  ends();
}

// The first candidate of the first run.
template <typename Desc>
std::optional<Candidate<Desc>> FirstCandidate(
    absl::Span<const Implementation<Desc>> table,
    absl::FunctionRef<std::optional<Candidate<Desc>>(const Implementation<Desc>&)> ask) {
  std::optional<Candidate<Desc>> first;
  VisitRuns<Desc>(table, ask, [&first](absl::Span<const Candidate<Desc>> run) {
    first = run.front();
    return true;
  });
  return first;
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ROW_RUNS_H_
