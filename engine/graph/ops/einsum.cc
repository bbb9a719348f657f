// SPDX-License-Identifier: Apache-2.0
//
// Einsum of one or two operands: sums over the letters that the result lacks. Of two operands, the
// letters of both and of the result are the batch of a matrix product, those of both that the
// result lacks are its inner dimension; the others are rows and columns.
#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/element_functions.h"
#include "engine/graph/ops/matmul.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/select.h"

namespace tilewire::graph {
namespace {

// A tensor and the letter of each of its dimensions.
struct Lettered {
  Operand operand;
  std::string letters;
};

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

bool HasLetter(absl::string_view letters, char letter) {
  return letters.find(letter) != absl::string_view::npos;
}

absl::Status CheckLetters(const Node& node, absl::string_view letters) {
  if (HasLetter(letters, '.')) return node.Unimplemented("an ellipsis");
  for (size_t i = 0; i < letters.size(); ++i) {
    if (!absl::ascii_isalpha(letters[i]))
      return node.Invalid(absl::StrCat("equation with '", letters.substr(i, 1), "'"));
    if (HasLetter(letters.substr(i + 1), letters[i]))
      return node.Unimplemented(absl::StrCat("'", letters.substr(i, 1), "' twice in a term"));
  }
  return absl::OkStatus();
}

// Without an arrow the result has the letters that stand once, in alphabetical order.
std::string ImplicitResult(const std::vector<std::string>& terms) {
  std::map<char, int> counts;
  for (const std::string& term : terms) {
    for (char letter : term) ++counts[letter];
  }
  std::string result;
  for (const auto& [letter, count] : counts) {
    if (count == 1) result.push_back(letter);
  }
  return result;
}

absl::StatusOr<Equation> ReadEquation(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string given, node.String("equation", ""));
  const std::string text = absl::StrReplaceAll(given, {{" ", ""}});
  const std::vector<std::string> sides = absl::StrSplit(text, "->");
  if (sides.size() > 2) return node.Invalid("equation with two arrows");
  Equation equation;
  equation.terms = absl::StrSplit(sides[0], ',');
  for (const std::string& term : equation.terms) ABSL_RETURN_IF_ERROR(CheckLetters(node, term));
  equation.result = sides.size() == 2 ? sides[1] : ImplicitResult(equation.terms);
  ABSL_RETURN_IF_ERROR(CheckLetters(node, equation.result));
  return equation;
}

// Every letter has one size, and the result only letters that the terms have.
absl::Status CheckSizes(const NodeContext& context, const Equation& equation) {
  const Node& node = context.node;
  if (equation.terms.size() != node.inputs.size())
    return node.Invalid(absl::StrCat(equation.terms.size(), " terms"));
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const Dims& dims = context.input(static_cast<int>(i)).dims;
    const std::string& term = equation.terms[i];
    if (dims.size() != term.size())
      return node.Invalid(absl::StrCat("'", term, "' of ", DimsToString(dims)));
    for (size_t d = 0; d < dims.size(); ++d) {
      const int64_t size = sizes.try_emplace(term[d], dims[d]).first->second;
      if (size != dims[d])
        return node.Invalid(absl::StrCat("two sizes of '", term.substr(d, 1), "'"));
    }
  }
  for (char letter : equation.result) {
    if (!sizes.contains(letter))
      return node.Invalid(absl::StrCat("no term has '", std::string(1, letter), "'"));
  }
  return absl::OkStatus();
}

// Sums over the letters that are not in `kept`.
absl::StatusOr<Lettered> SummedTo(NodeContext& context, const Lettered& src, absl::string_view kept,
                                  absl::string_view suffix) {
  std::vector<bool> reduced;
  Lettered result;
  Dims dims;
  for (size_t d = 0; d < src.letters.size(); ++d) {
    reduced.push_back(!HasLetter(kept, src.letters[d]));
    if (reduced.back()) continue;
    result.letters.push_back(src.letters[d]);
    dims.push_back(src.operand.dims[d]);
  }
  if (result.letters == src.letters) return src;
  ABSL_ASSIGN_OR_RETURN(const Operand sum, ReduceOf(context, Reduce::Function::kSum, src.operand,
                                                    reduced, absl::StrCat(suffix, "/sum")));
  ABSL_ASSIGN_OR_RETURN(result.operand,
                        ReshapeOf(context, sum, std::move(dims), absl::StrCat(suffix, "/kept")));
  return result;
}

// The same with its dimensions in the order of `letters`, which are those of `src`.
absl::StatusOr<Operand> InOrder(NodeContext& context, const Lettered& src,
                                absl::string_view letters, absl::string_view suffix) {
  if (letters == src.letters) return src.operand;
  Transpose transpose;
  Dims dims;
  for (char letter : letters) {
    const size_t d = src.letters.find(letter);
    transpose.order.push_back(static_cast<int>(d));
    dims.push_back(src.operand.dims[d]);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src.operand));
  ABSL_ASSIGN_OR_RETURN(const ValueId turned, context.Emit(std::move(transpose), {value}, dims,
                                                           absl::StrCat(suffix, "/turned")));
  return Operand{nullptr, turned, std::move(dims)};
}

// A stack of matrices: `batch` dimensions, then two that the next `rows` dimensions, and the rest,
// become.
absl::StatusOr<Operand> AsMatrices(NodeContext& context, const Operand& src, size_t batch,
                                   size_t rows, absl::string_view suffix) {
  Dims dims(src.dims.begin(), src.dims.begin() + batch);
  int64_t sizes[2] = {1, 1};
  for (size_t d = batch; d < src.dims.size(); ++d) sizes[d < batch + rows ? 0 : 1] *= src.dims[d];
  dims.insert(dims.end(), sizes, sizes + 2);
  return ReshapeOf(context, src, std::move(dims), absl::StrCat(suffix, "/matrices"));
}

absl::StatusOr<Lettered> ProductOfTwo(NodeContext& context, const Lettered& a, const Lettered& b,
                                      absl::string_view result) {
  std::string batch, inner, rows, columns;
  for (char letter : a.letters)
    (!HasLetter(b.letters, letter) ? rows : HasLetter(result, letter) ? batch : inner) += letter;
  for (char letter : b.letters) {
    if (!HasLetter(a.letters, letter)) columns += letter;
  }
  ABSL_ASSIGN_OR_RETURN(const Operand left, InOrder(context, a, batch + rows + inner, "/a"));
  ABSL_ASSIGN_OR_RETURN(const Operand right, InOrder(context, b, batch + inner + columns, "/b"));
  ABSL_ASSIGN_OR_RETURN(const Operand left_matrices,
                        AsMatrices(context, left, batch.size(), rows.size(), "/a"));
  ABSL_ASSIGN_OR_RETURN(const Operand right_matrices,
                        AsMatrices(context, right, batch.size(), inner.size(), "/b"));
  ABSL_ASSIGN_OR_RETURN(const Operand product,
                        MatMulOf(context, left_matrices, right_matrices, "/product"));
  Dims dims(left.dims.begin(), left.dims.begin() + batch.size() + rows.size());
  dims.insert(dims.end(), right.dims.begin() + batch.size() + inner.size(), right.dims.end());
  ABSL_ASSIGN_OR_RETURN(const Operand shaped,
                        ReshapeOf(context, product, std::move(dims), "/shaped"));
  return Lettered{shaped, batch + rows + columns};
}

absl::Status BuildEinsum(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const Equation equation, ReadEquation(node));
  ABSL_RETURN_IF_ERROR(CheckSizes(context, equation));
  const size_t count = equation.terms.size();
  if (count > 2) return node.Unimplemented(absl::StrCat(count, " operands; supported are 2"));
  std::vector<Lettered> terms;
  for (size_t i = 0; i < count; ++i) {
    const Lettered whole = {context.input(static_cast<int>(i)), equation.terms[i]};
    const std::string other = count == 2 ? equation.terms[1 - i] : "";
    ABSL_ASSIGN_OR_RETURN(terms.emplace_back(), SummedTo(context, whole, equation.result + other,
                                                         absl::StrCat("/term", i)));
  }
  Lettered result = terms[0];
  if (count == 2) {
    ABSL_ASSIGN_OR_RETURN(result, ProductOfTwo(context, terms[0], terms[1], equation.result));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand dst, InOrder(context, result, equation.result, "/result"));
  return context.SetOutput(dst);
}

}  // namespace

TILEWIRE_OPERATORS(Einsum) = {
    {"Einsum", 12, 1, INT_MAX, "equation", BuildEinsum},
};

}  // namespace tilewire::graph
