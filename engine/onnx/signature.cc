// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/signature.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/deciding_inputs.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/specialization.h"
#include "engine/onnx/stages/assumed_stages.h"

namespace tilewire::reader {
namespace {

constexpr int64_t kOpen = -1;

// Sizes that stand in for open dimensions: the first dimension of an input, and all others. An
// output dimension that differs between two probes is open. Images come first; then what tokens,
// features and samples of audio have.
struct Probe {
  int64_t batch, other;
};
constexpr Probe kProbes[] = {{1, 224}, {2, 256}, {1, 32},    {2, 64},    {1, 512}, {2, 640},
                             {1, 16},  {2, 24},  {1, 8},     {2, 12},    {1, 100}, {2, 120},
                             {1, 1},   {2, 2},   {1, 16000}, {2, 32000}, {1, 77},  {2, 3000},
                             {8, 8},   {16, 16}, {32, 32},   {64, 64}};
// So many tell which uses of operators are refused, whatever the sizes are.
constexpr int kProbesOfOperators = 4;
// Ranks that stand in for an open one.
constexpr int kRanks[] = {4, 2, 3, 1};
constexpr int kNoRank[] = {0};  // all are known

// Tries the probes on one model.
class Inference {
 public:
  Inference(const ModelGraph& graph, const std::vector<Operand>& folded)
      : graph_(graph), folded_(folded) {
    for (const DeclaredTensor& input : graph.inputs) {
      TensorSpec& spec = signature_.inputs.emplace_back(SpecOf(input));
      any_rank_ = any_rank_ || spec.any_rank;
      for (size_t d = 0; d < spec.dims.size(); ++d) {
        if (spec.dims[d] != kOpen) continue;
        // The only dimension may be a batch, or the length of a sequence.
        open_batch_ = open_batch_ || d == 0;
        open_beyond_batch_ = open_beyond_batch_ || d > 0 || spec.dims.size() == 1;
        if (d == 0 && spec.dims.size() > 1) batch_symbols_.insert(input.symbols[d]);
      }
    }
    batch_symbols_.erase("");
  }

  absl::StatusOr<Signature> Run() {
    for (const DeclaredTensor& output : graph_.outputs)
      signature_.outputs.push_back(SpecOf(output));
    absl::Status probed = any_rank_ ? ProbeRanks() : ProbeSizes();
    if (!fits_ && any_unimplemented_ && FindDeciding()) probed = ProbeElements();
    if (!fits_ && any_unimplemented_) probed = ProbeCuts(probed);
    ABSL_RETURN_IF_ERROR(probed);
    if (fits_ || signature_.has_cuts || absl::IsUnimplemented(signature_.unfit) ||
        absl::c_any_of(signature_.inputs,
                       [](const TensorSpec& spec) { return spec.decides_shapes; }))
      signature_.unfit = absl::OkStatus();
    return std::move(signature_);
  }

 private:
  TensorSpec SpecOf(const DeclaredTensor& declared) const {
    return {graph_.tensor_names[declared.id], declared.type, declared.dims, !declared.has_shape};
  }

  // The size of a dimension that is named: "batch", "past + 1".
  int64_t SizeOfSymbol(absl::string_view symbol, const Probe& probe) const {
    int64_t sum = 0;
    for (absl::string_view term : absl::StrSplit(symbol, '+')) {
      term = absl::StripAsciiWhitespace(term);
      int64_t number = 0;
      if (!absl::SimpleAtoi(term, &number) || number < 0 || number > probe.other)
        number = batch_symbols_.contains(std::string(term)) ? probe.batch : probe.other;
      sum += number;
    }
    return sum;
  }

  // For dimension `d` of an input, of which the file may give the name.
  int64_t SizeOf(const std::string& symbol, size_t d, size_t rank, const Probe& probe) const {
    const bool is_image = probe.other == kProbes[0].other || probe.other == kProbes[1].other;
    const bool may_be_length = rank == 1 && !is_image;
    if (d == 0 && !may_be_length) return probe.batch;
    return symbol.empty() ? probe.other : SizeOfSymbol(symbol, probe);
  }

  std::vector<Dims> DimsOf(const Probe& probe, int rank) const {
    std::vector<Dims> all;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      Dims& dims = all.emplace_back(signature_.inputs[i].dims);
      if (signature_.inputs[i].any_rank) {
        dims.assign(rank, probe.other);
        if (rank > 1) dims[0] = probe.batch;
        if (rank == 4) dims[1] = 3;
        continue;
      }
      for (size_t d = 0; d < dims.size(); ++d) {
        if (dims[d] != kOpen) continue;
        dims[d] = SizeOf(graph_.inputs[i].symbols[d], d, dims.size(), probe);
      }
    }
    return all;
  }

  // Whether elements of inputs decide shapes; marks these.
  bool FindDeciding() {
    const std::vector<bool> deciding = DecidingInputs(graph_, folded_);
    for (size_t i = 0; i < deciding.size(); ++i) signature_.inputs[i].decides_shapes = deciding[i];
    return absl::c_linear_search(deciding, true);
  }

  // Whether any uses of operators are refused, whatever the elements are. The outputs stay as they
  // are declared.
  absl::Status ProbeElements() {
    first_error_ = absl::OkStatus();
    all_unimplemented_ = true;
    for (const int element : {1, 0}) {
      for (const Probe& probe : absl::MakeConstSpan(kProbes).first(4)) {
        if (Try(probe, kRanks[0], element)) return absl::OkStatus();
      }
    }
    return all_unimplemented_ ? first_error_ : absl::OkStatus();
  }

  // Each element of each input that decides shapes is `element`.
  std::vector<ConstantPtr> KnownInputs(absl::Span<const Dims> dims, int element) const {
    std::vector<ConstantPtr> known(dims.size());
    for (size_t i = 0; i < dims.size(); ++i) {
      const TensorSpec& spec = signature_.inputs[i];
      if (!spec.decides_shapes) continue;
      const int64_t count = ElementCount(dims[i]).value_or(0);
      known[i] = IsIntegerOrBool(spec.type)
                     ? MakeInts(spec.name, dims[i], std::vector<int64_t>(count, element))
                     : MakeFloats(spec.name, dims[i],
                                  std::vector<float>(count, static_cast<float>(element)));
    }
    return known;
  }

  // The dims of the outputs. Remembers the first error.
  std::optional<std::vector<Dims>> Try(const Probe& probe, int rank, int element = 1) {
    const std::vector<Dims> dims = DimsOf(probe, rank);
    absl::StatusOr<network::Network> network =
        BuildNetwork(graph_, folded_, dims, KnownInputs(dims, element));
    if (network.ok()) {
      fits_ = true;
      return std::move(network->output_dims);
    }
    const bool is_unimplemented = absl::IsUnimplemented(network.status());
    if (first_error_.ok()) first_error_ = network.status();
    any_unimplemented_ = any_unimplemented_ || is_unimplemented;
    all_unimplemented_ = all_unimplemented_ && is_unimplemented;
    return std::nullopt;
  }

  // Whether the model can be served in stages; `otherwise` is what is true if not. An output's
  // dimension that differs between what is made up is open.
  absl::Status ProbeCuts(const absl::Status& otherwise) {
    bool fits = false, may_fit = false;
    int tried = 0;
    absl::Status refusal;
    for (const Probe& probe : kProbes) {
      for (const int rank :
           any_rank_ ? absl::MakeConstSpan(kRanks) : absl::MakeConstSpan(kNoRank)) {
        for (const AssumedSizes& assumed :
             {AssumedSizes{3, 1}, AssumedSizes{1, 2}, AssumedSizes{40, 3}, AssumedSizes{0, 0}}) {
          const auto outputs = OutputDimsOf(graph_, folded_, DimsOf(probe, rank), assumed);
          if (absl::IsUnimplemented(outputs.status())) refusal = outputs.status();
          may_fit = may_fit || !absl::IsUnimplemented(outputs.status());
          if (!outputs.ok()) continue;
          fits ? Compare(*outputs) : Set(*outputs);
          fits = true;
        }
      }
      if (!may_fit && ++tried == kProbesOfOperators) break;
      if (!any_rank_ && !open_batch_ && !open_beyond_batch_) break;
      if (fits && ++tried >= kProbesOfOperators) break;
    }
    if (!may_fit) return refusal.ok() ? otherwise : refusal;
    signature_.has_cuts = true;
    for (TensorSpec& input : signature_.inputs) input.decides_shapes = false;
    return absl::OkStatus();
  }

  // The outputs stay as they are declared.
  absl::Status ProbeRanks() {
    for (int rank : kRanks) {
      if (Try(kProbes[0], rank)) return absl::OkStatus();
    }
    signature_.unfit = first_error_;
    return all_unimplemented_ ? first_error_ : absl::OkStatus();
  }

  // Two probes that differ in all sizes tell which of the outputs' are open.
  absl::Status ProbeSizes() {
    const Probe* fitting = nullptr;
    for (const Probe& probe : kProbes) {
      const bool tells =
          fitting == nullptr || (fitting->batch != probe.batch && fitting->other != probe.other);
      if (!tells) continue;
      const std::optional<std::vector<Dims>> outputs = Try(probe, 0);
      if (!outputs && fitting == nullptr && !open_beyond_batch_) return first_error_;
      if (!outputs) continue;
      if (fitting != nullptr) {
        Compare(*outputs);
        return absl::OkStatus();
      }
      fitting = &probe;
      Set(*outputs);
      if (!open_batch_ && !open_beyond_batch_) return absl::OkStatus();
    }
    if (fitting == nullptr) {
      signature_.unfit = first_error_;
      return all_unimplemented_ ? first_error_ : absl::OkStatus();
    }
    if (FitsAloneOnly(*fitting)) {
      CloseBatch();
      if (CompareWithOthers(*fitting)) return absl::OkStatus();
    }
    OpenWhatIsDeclaredOpen();
    return absl::OkStatus();
  }

  // Whether a batch of 1 fits, and none of more of the same sizes.
  bool FitsAloneOnly(const Probe& fitting) {
    if (!open_batch_ || fitting.batch != 1) return false;
    for (const int64_t batch : {2, 3, 4, 8, 16, 32, 64}) {
      if (Try({batch, fitting.other}, 0)) return false;
    }
    return true;
  }

  // The batch of every input is 1.
  void CloseBatch() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      Dims& dims = signature_.inputs[i].dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        const bool is_batch = dims.size() > 1 && (d == 0 || IsBatch(graph_.inputs[i].symbols[d]));
        if (dims[d] == kOpen && is_batch) dims[d] = 1;
      }
    }
  }

  // Whether other sizes of a batch of 1 tell which sizes of the outputs are open, or none is open.
  bool CompareWithOthers(const Probe& fitting) {
    bool any_open = false;
    for (const TensorSpec& input : signature_.inputs)
      any_open = any_open || absl::c_linear_search(input.dims, kOpen);
    for (const Probe& probe : kProbes) {
      if (!any_open) break;
      if (probe.other == fitting.other) continue;
      const std::optional<std::vector<Dims>> outputs = Try({1, probe.other}, 0);
      if (!outputs) continue;
      Compare(*outputs);
      return true;
    }
    return !any_open;
  }

  bool IsBatch(const std::string& symbol) const { return batch_symbols_.contains(symbol); }

  void Set(const std::vector<Dims>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      signature_.outputs[i].any_rank = false;
      signature_.outputs[i].dims = outputs[i];
    }
  }

  void Compare(const std::vector<Dims>& outputs) {
    for (size_t i = 0; i < outputs.size(); ++i) {
      TensorSpec& spec = signature_.outputs[i];
      const Dims &known = spec.dims, &other = outputs[i];
      if (known.size() != other.size()) {
        spec.any_rank = true;
        spec.dims.clear();
        continue;
      }
      for (size_t d = 0; d < other.size(); ++d) {
        if (known[d] != other[d]) spec.dims[d] = kOpen;
      }
    }
  }

  // With one probe alone, a dimension is known only where the file declares it so.
  void OpenWhatIsDeclaredOpen() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      const Dims& declared = graph_.outputs[i].dims;
      Dims& dims = signature_.outputs[i].dims;
      for (size_t d = 0; d < dims.size(); ++d) {
        if (declared.size() != dims.size() || declared[d] != dims[d]) dims[d] = kOpen;
      }
    }
  }

  const ModelGraph& graph_;
  const std::vector<Operand>& folded_;
  Signature signature_;
  absl::flat_hash_set<std::string> batch_symbols_;  // of first dimensions
  bool any_rank_ = false, open_batch_ = false, open_beyond_batch_ = false;
  absl::Status first_error_;
  bool fits_ = false, any_unimplemented_ = false, all_unimplemented_ = true;  // of the probes
};

}  // namespace

absl::StatusOr<Signature> InferSignature(const ModelGraph& graph,
                                         const std::vector<Operand>& folded) {
  return Inference(graph, folded).Run();
}

}  // namespace tilewire::reader
