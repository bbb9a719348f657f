// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/problems.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "engine/base/utf8.h"

namespace tilewire::reader {
namespace {

constexpr char kPayload[] = "tilewire/problems";
// A file can have a reason per node; the first ones tell enough.
constexpr size_t kMostProblems = 50;
constexpr size_t kMostInMessage = 8;

// On one line and in UTF-8, whatever the names in it hold.
std::string OneLine(absl::string_view text) {
  std::string line = Utf8Text(text);
  for (char& c : line) {
    if (absl::ascii_iscntrl(c)) c = '?';
  }
  return line;
}

}  // namespace

void Problems::Add(const absl::Status& error) { Keep({error, "", 0}); }

void Problems::Add(const Node& node, const absl::Status& error) {
  const absl::string_view what = absl::StripPrefix(error.message(), node.Describe());
  std::string reason = absl::StrCat(node.proto().domain(), " ", node.op(), what);
  for (Problem& problem : found_) {
    if (problem.nodes == 0 || problem.reason != reason) continue;
    ++problem.nodes;
    return;
  }
  Keep({error, std::move(reason), 1});
}

void Problems::Keep(Problem problem) {
  if (found_.size() == kMostProblems)
    problem = {Unimplemented("further reasons are not listed"), "", 0};
  if (found_.size() <= kMostProblems) found_.push_back(std::move(problem));
}

void Problems::Append(const Problems& others) {
  found_.insert(found_.end(), others.found_.begin(), others.found_.end());
}

absl::Status Problems::AsStatus() const {
  if (empty()) return absl::OkStatus();
  std::vector<std::string> texts;
  for (const Problem& problem : found_) {
    std::string& text = texts.emplace_back(OneLine(problem.error.message()));
    if (problem.nodes > 1) absl::StrAppend(&text, " (so for ", problem.nodes, " nodes)");
  }
  std::string message = absl::StrJoin(absl::MakeSpan(texts).subspan(0, kMostInMessage), "; ");
  if (texts.size() > kMostInMessage)
    absl::StrAppend(&message, "; and ", texts.size() - kMostInMessage, " other reasons");
  absl::Status status(found_[0].error.code(), message);
  status.SetPayload(kPayload, absl::Cord(absl::StrJoin(texts, "\n")));
  return status;
}

std::vector<std::string> ProblemsOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kPayload);
  if (!payload) return {OneLine(status.message())};
  return absl::StrSplit(std::string(*payload), '\n');
}

}  // namespace tilewire::reader
