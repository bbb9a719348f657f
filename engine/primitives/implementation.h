// SPDX-License-Identifier: Apache-2.0
//
// The table of a primitive's implementations, best first. Dispatch, tests, benchmarks and the
// printed list all read the same table: an implementation that is not in it does not exist. Tables
// are written as row_table.h says.
#ifndef ENGINE_PRIMITIVES_IMPLEMENTATION_H_
#define ENGINE_PRIMITIVES_IMPLEMENTATION_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/cpu/isa.h"
#include "engine/cpu/machine.h"
#include "engine/jit/dump_record.h"
#include "engine/primitives/primitive.h"
#include "engine/primitives/problem_text.h"
#include "engine/primitives/row_runs.h"

namespace tilewire {

struct CreateOptions {
  cpu::Isa max_isa = cpu::BestIsa();          // no implementation that needs more is tried
  absl::string_view only;                     // if not empty: this implementation or none
  bool reference_only = false;                // the reference or none
  cpu::Machine machine = cpu::ThisMachine();  // that costs are estimated for
};

// A validated descriptor, with the attributes and the facts of the row that is asked, so that one
// function serves the rows of several instruction sets; and the machine that costs are estimated
// for. It refers to all four.
template <typename Desc>
struct Request {
  const Desc& desc;
  const Attributes& attributes;
  const ImplementationFacts& facts;
  const cpu::Machine& machine = cpu::ThisMachine();

  // The same of another descriptor, which lives as long as what is returned.
  Request With(const Desc& other) const { return {other, attributes, facts, machine}; }
  Request With(Desc&&) const = delete;
};

// A row: its facts and its functions.
template <typename Desc>
struct Implementation : ImplementationFacts {
  // The descriptor with every `any` replaced by what this implementation wants, or kUnimplemented
  // with the reason for which it refuses.
  absl::StatusOr<Desc> (*resolve)(const Request<Desc>& request);
  // Creates from what `resolve` returned. kResourceExhausted, or kUnimplemented for what only
  // generation shows.
  absl::StatusOr<std::unique_ptr<Primitive>> (*create)(const Request<Desc>& resolved);
  // Estimated cycles of one core for one image, from what `resolve` returned; null where there is
  // no estimate. Decides between neighbours of the table: see row_runs.h. A pure function of the
  // shape of an image and of the machine: results may depend on neither the batch nor the moment.
  double (*cost)(const Request<Desc>& resolved) = nullptr;

  ImplementationFacts FactsUnder(cpu::Isa max_isa) const {
    ImplementationFacts facts = *this;
    if (traits.runs_another) facts.isa = max_isa;
    return facts;
  }
};

// Why the row does not serve the propagation with the attributes, whatever the rest of the
// descriptor; "" if it may.
std::string WhyNotWith(const ImplementationFacts& row, PropKind prop_kind,
                       const Attributes& attributes);

// The row's answer to a request.
//   kUnimplemented  it refuses
template <typename Desc>
absl::StatusOr<Candidate<Desc>> Ask(const Implementation<Desc>& row, const Request<Desc>& request) {
  ABSL_ASSIGN_OR_RETURN(Desc resolved, row.resolve(request));
  const double cycles = row.cost == nullptr ? 0 : row.cost(request.With(resolved));
  return Candidate<Desc>{&row, std::move(resolved), cycles};
}

// The search of a table for the row that serves a descriptor: what it needs no descriptor's type
// for. Rows are offered in the order of row_runs.h.
class RowSearch {
 public:
  // `has_other_types`: a tensor has a type beyond MKL-DNN's, which most generated code does not
  // know.
  RowSearch(CreationRecord record, PropKind prop_kind, bool has_other_types,
            const Attributes& attributes, const CreateOptions& options)
      : record_(std::move(record)),
        prop_kind_(prop_kind),
        has_other_types_(has_other_types),
        attributes_(attributes),
        options_(options) {}

  // Whether the row's functions are to be asked. Notes the reason where the row cannot serve.
  bool Admits(const ImplementationFacts& row);
  void Refuse(const ImplementationFacts& row, absl::string_view reason, bool by_descriptor = false);
  // Whether what the row created ends the search: a primitive or an error does, kUnimplemented is
  // one more refusal. `cycles`: its cost, 0 if it has none.
  bool Ends(const ImplementationFacts& row, double cycles,
            absl::StatusOr<std::unique_ptr<Primitive>> created);
  // The row would have been asked after the one that ended the search.
  void RefuseSlower(const ImplementationFacts& row, double cycles);

  // The primitive or the error that ended the search.
  //   kUnimplemented    no row took the descriptor: the message lists why each refused
  //   kInvalidArgument  options.only names no implementation
  absl::StatusOr<std::shared_ptr<const Primitive>> Result() &&;

 private:
  CreationRecord record_;
  const PropKind prop_kind_;
  const bool has_other_types_;
  const Attributes& attributes_;
  const CreateOptions& options_;
  const jit::DumpRecord dumps_;  // of what is compiled during the search
  bool named_ = false;           // a row is one that the options ask for
  absl::string_view last_;       // the row that ended the search
  std::unique_ptr<Primitive> primitive_;
  absl::Status error_;
};

// Declares ResolveDense() and CreateDense(), the functions of a row, for the name Dense; or one of
// the two, where rows share the other.
#define TILEWIRE_RESOLVE(Desc, Name) \
  absl::StatusOr<Desc> Resolve##Name(const Request<Desc>& request)
#define TILEWIRE_CREATE(Desc, Name) \
  absl::StatusOr<std::unique_ptr<Primitive>> Create##Name(const Request<Desc>& resolved)
#define TILEWIRE_ROW(Desc, Name) \
  TILEWIRE_RESOLVE(Desc, Name);  \
  TILEWIRE_CREATE(Desc, Name)
#define TILEWIRE_COST(Desc, Name) double Cost##Name(const Request<Desc>& resolved)

// Declares what a primitive offers beside its descriptor, for the name Sum:
//
//   Sum##Implementations  its table, best first; tests and benchmarks run every row
//   Sum##Probes(type)     typical descriptors that read `type`: see probes.h
//   Create##Sum           by the row that serves the descriptor. Besides what the primitive's
//                         header names:
//                           kUnimplemented      none does; the message lists why each refused
//                           kResourceExhausted  memory
#define TILEWIRE_PRIMITIVE_FUNCTIONS(Name)                              \
  absl::Span<const Implementation<Name##Desc>> Name##Implementations(); \
  std::vector<Name##Desc> Name##Probes(DataType type);                  \
  absl::StatusOr<std::shared_ptr<const Primitive>> Create##Name(        \
      const Name##Desc& desc, const Attributes& attributes, const CreateOptions& options)

// The implementation that serves the descriptor: the first that is created, in the order of
// row_runs.h. Its info() says why those before it and beside it did not.
//   kUnimplemented      none does: the message lists why each refused
//   kInvalidArgument    options.only names no implementation
//   kResourceExhausted  memory (code pages, library scratchpad)
template <typename Desc>
absl::StatusOr<std::shared_ptr<const Primitive>> CreateFirst(
    absl::Span<const Implementation<Desc>> table, const Desc& desc, const Attributes& attributes,
    const CreateOptions& options) {
  bool has_other_types = false;
  VisitTensors(desc, [&](const MemoryDesc& tensor) {
    has_other_types |= tensor.data_type() > DataType::kU8;
  });
  RowSearch search({std::string(PropText(desc)), ProblemText(desc), "", {}}, PropKindOf(desc),
                   has_other_types, attributes, options);
  const auto ask = [&](const Implementation<Desc>& row) -> std::optional<Candidate<Desc>> {
    if (!search.Admits(row)) return std::nullopt;
    const ImplementationFacts facts = row.FactsUnder(options.max_isa);
    absl::StatusOr<Candidate<Desc>> candidate =
        Ask(row, {desc, attributes, facts, options.machine});
    if (candidate.ok()) return *std::move(candidate);
    search.Refuse(row, candidate.status().message(), /*by_descriptor=*/true);
    return std::nullopt;
  };
  VisitRuns<Desc>(table, ask, [&](absl::Span<const Candidate<Desc>> run) {
    bool ended = false;
    for (const auto& [row, resolved, cycles] : run) {
      const ImplementationFacts facts = row->FactsUnder(options.max_isa);
      if (ended) {
        search.RefuseSlower(*row, cycles);
      } else {
        ended =
            search.Ends(*row, cycles, row->create({resolved, attributes, facts, options.machine}));
      }
    }
    return ended;
  });
  return std::move(search).Result();
}

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_IMPLEMENTATION_H_
