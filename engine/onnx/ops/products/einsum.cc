// SPDX-License-Identifier: Apache-2.0
//
// Einsum: sums over the letters that the result lacks. Of two operands, the letters of both and of
// the result are the batch of a matrix product, those of both that the result lacks are its inner
// dimension; the others are rows and columns. Of more operands, those two are multiplied first that
// give the smallest product. The dimensions of an ellipsis are letters like others: digits, 0 for
// the last of them.
#include <algorithm>
#include <climits>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/arithmetic/reduce_of.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
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

constexpr absl::string_view kEllipsis = "...";

// Letters, and one ellipsis at most.
absl::Status CheckLetters(const Node& node, absl::string_view letters) {
  const size_t dots = letters.find(kEllipsis);
  for (size_t i = 0; i < letters.size(); ++i) {
    if (i == dots) i += kEllipsis.size();
    if (i < letters.size() && !absl::ascii_isalpha(letters[i]))
      return node.Invalid("equation with '", letters.substr(i, 1), "'");
  }
  return absl::OkStatus();
}

// The letters of the ellipsis' dimensions, of which there are `count`.
std::string LettersOfEllipsis(size_t count) {
  std::string letters;
  for (size_t i = count; i-- > 0;) letters.push_back(static_cast<char>('0' + i));
  return letters;
}

// Without an arrow the result has the ellipsis and the letters that stand once, in alphabetical
// order.
std::string ImplicitResult(const std::vector<std::string>& terms) {
  std::map<char, int> counts;
  for (const std::string& term : terms) {
    for (char letter : term) ++counts[letter];
  }
  std::string result;
  for (const auto& [letter, count] : counts) {
    if (count == 1 && absl::ascii_isalpha(letter)) result.push_back(letter);
  }
  return counts.contains('.') ? absl::StrCat(kEllipsis, result) : result;
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
  if (equation.terms.size() != node.inputs.size())
    return node.Invalid(equation.terms.size(), " terms");
  return equation;
}

// Writes letters in the place of ellipses. kMaxRank is above 10, which digits count.
absl::Status ExpandEllipses(const NodeContext& context, Equation* equation) {
  size_t longest = 0;
  for (size_t i = 0; i < equation->terms.size(); ++i) {
    std::string& term = equation->terms[i];
    const size_t rank = context.input(static_cast<int>(i)).dims.size();
    const size_t dots = term.find(std::string(kEllipsis));
    if (dots == term.npos) continue;
    const size_t letters = term.size() - kEllipsis.size();
    if (rank < letters || rank - letters > 10)
      return context.node.Invalid("'", term, "' of rank ", rank);
    term.replace(dots, kEllipsis.size(), LettersOfEllipsis(rank - letters));
    longest = std::max(longest, rank - letters);
  }
  if (const size_t dots = equation->result.find(std::string(kEllipsis)); dots != std::string::npos)
    equation->result.replace(dots, kEllipsis.size(), LettersOfEllipsis(longest));
  return absl::OkStatus();
}

// The size of each letter. Those of an ellipsis are broadcast: 1 fits any size.
//   kInvalidArgument  two sizes of a letter, a result with a letter that no term has
absl::StatusOr<std::map<char, int64_t>> SizesOf(const NodeContext& context,
                                                const Equation& equation) {
  const Node& node = context.node;
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const Dims& dims = context.input(static_cast<int>(i)).dims;
    const std::string& term = equation.terms[i];
    if (dims.size() != term.size()) return node.Invalid("'", term, "' of ", DimsToString(dims));
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t& size = sizes.try_emplace(term[d], dims[d]).first->second;
      const bool is_broadcast = absl::ascii_isdigit(term[d]);
      if (is_broadcast && size == 1) size = dims[d];
      if (size != dims[d] && !(is_broadcast && dims[d] == 1))
        return node.Invalid("two sizes of '", term.substr(d, 1), "'");
    }
  }
  for (size_t i = 0; i < equation.result.size(); ++i) {
    const std::string letter = equation.result.substr(i, 1);
    if (!sizes.contains(letter[0])) return node.Invalid("no term has '", letter, "'");
    if (HasLetter(equation.result.substr(i + 1), letter[0]))
      return node.Invalid("a result with '", letter, "' twice");
  }
  return sizes;
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
  ABSL_ASSIGN_OR_RETURN(const Operand sum,
                        ReduceOf(context, network::Reduce::Function::kSum, src.operand, reduced,
                                 absl::StrCat(suffix, "/sum")));
  ABSL_ASSIGN_OR_RETURN(result.operand,
                        ReshapeOf(context, sum, std::move(dims), absl::StrCat(suffix, "/kept")));
  return result;
}

// The same with its dimensions in the order of `letters`, which are those of `src`.
absl::StatusOr<Operand> InOrder(NodeContext& context, const Lettered& src,
                                absl::string_view letters, absl::string_view suffix) {
  if (letters == src.letters) return src.operand;
  std::vector<int> order;
  for (char letter : letters) order.push_back(static_cast<int>(src.letters.find(letter)));
  return TurnedOf(context, src.operand, std::move(order), absl::StrCat(suffix, "/turned"));
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
                                      absl::string_view result, const std::string& suffix) {
  std::string batch, inner, rows, columns;
  for (char letter : a.letters)
    (!HasLetter(b.letters, letter) ? rows : HasLetter(result, letter) ? batch : inner) += letter;
  for (char letter : b.letters) {
    if (!HasLetter(a.letters, letter)) columns += letter;
  }
  ABSL_ASSIGN_OR_RETURN(const Operand left,
                        InOrder(context, a, batch + rows + inner, suffix + "/a"));
  ABSL_ASSIGN_OR_RETURN(const Operand right,
                        InOrder(context, b, batch + inner + columns, suffix + "/b"));
  ABSL_ASSIGN_OR_RETURN(const Operand left_matrices,
                        AsMatrices(context, left, batch.size(), rows.size(), suffix + "/a"));
  ABSL_ASSIGN_OR_RETURN(const Operand right_matrices,
                        AsMatrices(context, right, batch.size(), inner.size(), suffix + "/b"));
  ABSL_ASSIGN_OR_RETURN(const Operand product,
                        MatMulOf(context, left_matrices, right_matrices, suffix + "/product"));
  Dims dims(left.dims.begin(), left.dims.begin() + batch.size() + rows.size());
  dims.insert(dims.end(), right.dims.begin() + batch.size() + inner.size(), right.dims.end());
  ABSL_ASSIGN_OR_RETURN(const Operand shaped,
                        ReshapeOf(context, product, std::move(dims), suffix + "/shaped"));
  return Lettered{shaped, batch + rows + columns};
}

// Without dimensions of 1 that others are longer than.
absl::StatusOr<Lettered> WithoutBroadcast(NodeContext& context, const Lettered& src,
                                          const std::map<char, int64_t>& sizes,
                                          absl::string_view suffix) {
  Lettered result = {src.operand, ""};
  Dims dims;
  for (size_t d = 0; d < src.letters.size(); ++d) {
    if (src.operand.dims[d] != sizes.at(src.letters[d])) continue;
    result.letters.push_back(src.letters[d]);
    dims.push_back(src.operand.dims[d]);
  }
  ABSL_ASSIGN_OR_RETURN(result.operand, ReshapeOf(context, src.operand, std::move(dims),
                                                  absl::StrCat(suffix, "/long")));
  return result;
}

// A letter that stands twice takes the elements that have the same index of both.
absl::StatusOr<Lettered> Diagonal(NodeContext& context, Lettered src, absl::string_view suffix) {
  for (size_t d = 0; d < src.letters.size();) {
    const char letter = src.letters[d];
    const size_t second = src.letters.find(letter, d + 1);
    if (second == src.letters.npos) {
      ++d;
      continue;
    }
    // Both go to the end, where their diagonal is every (size + 1)-th element.
    std::string others = src.letters;
    others.erase(second, 1).erase(d, 1);
    std::string marked = src.letters;
    marked[second] = '*';
    const std::string name = absl::StrCat(suffix, "/diagonal", std::string(1, letter), second);
    ABSL_ASSIGN_OR_RETURN(const Operand turned,
                          InOrder(context, {src.operand, marked}, others + letter + '*', name));
    Dims dims(turned.dims.begin(), turned.dims.end() - 1);
    const int64_t size = dims.back();
    dims.back() *= size;
    ABSL_ASSIGN_OR_RETURN(const Operand flat, ReshapeOf(context, turned, dims, name + "/flat"));
    const int last = static_cast<int>(dims.size()) - 1;
    ABSL_ASSIGN_OR_RETURN(src.operand,
                          SelectAlong(context, flat, last, {{0, size + 1, size}}, name));
    src.letters = others + letter;
  }
  return src;
}

// The letters that the product of two terms keeps: those of other terms and of the result.
std::string KeptLetters(const std::vector<Lettered>& terms, size_t a, size_t b,
                        const std::string& result) {
  std::string kept = result;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (i != a && i != b) kept += terms[i].letters;
  }
  return kept;
}

double SizeOfProduct(const Lettered& a, const Lettered& b, const std::string& kept,
                     const std::map<char, int64_t>& sizes) {
  double size = 1;
  for (const auto& [letter, length] : sizes) {
    const bool is_there = HasLetter(a.letters, letter) || HasLetter(b.letters, letter);
    if (is_there && HasLetter(kept, letter)) size *= static_cast<double>(length);
  }
  return size;
}

// Multiplies the two terms that give the smallest product, which takes the place of both.
absl::Status MultiplyTwo(NodeContext& context, const std::string& result,
                         const std::map<char, int64_t>& sizes, std::vector<Lettered>* terms) {
  size_t best[2] = {0, 1};
  double least = -1;
  for (size_t a = 0; a < terms->size(); ++a) {
    for (size_t b = a + 1; b < terms->size(); ++b) {
      const double size =
          SizeOfProduct((*terms)[a], (*terms)[b], KeptLetters(*terms, a, b, result), sizes);
      if (least >= 0 && size >= least) continue;
      least = size;
      best[0] = a;
      best[1] = b;
    }
  }
  const std::string kept = KeptLetters(*terms, best[0], best[1], result);
  const std::string name = terms->size() == 2 ? "" : absl::StrCat("/of", terms->size());
  Lettered sides[2];
  for (int i = 0; i < 2; ++i) {
    const std::string& other = (*terms)[best[1 - i]].letters;
    ABSL_ASSIGN_OR_RETURN(sides[i], SummedTo(context, (*terms)[best[i]], kept + other,
                                             absl::StrCat(name, "/term", best[i])));
  }
  ABSL_ASSIGN_OR_RETURN((*terms)[best[0]], ProductOfTwo(context, sides[0], sides[1], kept, name));
  terms->erase(terms->begin() + static_cast<int64_t>(best[1]));
  return absl::OkStatus();
}

absl::Status BuildEinsum(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(Equation equation, ReadEquation(context.node));
  ABSL_RETURN_IF_ERROR(ExpandEllipses(context, &equation));
  ABSL_ASSIGN_OR_RETURN(const auto sizes, SizesOf(context, equation));
  std::vector<Lettered> terms;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    const std::string name = absl::StrCat("/term", i);
    ABSL_ASSIGN_OR_RETURN(
        const Lettered whole,
        WithoutBroadcast(context, {context.input(static_cast<int>(i)), equation.terms[i]}, sizes,
                         name));
    ABSL_ASSIGN_OR_RETURN(terms.emplace_back(), Diagonal(context, whole, name));
  }
  while (terms.size() > 1)
    ABSL_RETURN_IF_ERROR(MultiplyTwo(context, equation.result, sizes, &terms));
  ABSL_ASSIGN_OR_RETURN(const Lettered result,
                        SummedTo(context, terms[0], equation.result, "/term0"));
  return context.SetOutput(InOrder(context, result, equation.result, "/result"));
}

}  // namespace

TILEWIRE_OPERATORS(Einsum) = {
    TrainsEvery({"Einsum", 12, 1, INT_MAX, "equation", BuildEinsum}),
};

}  // namespace tilewire::reader
