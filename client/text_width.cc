// SPDX-License-Identifier: Apache-2.0
#include "client/text_width.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace tilewire::client {
namespace {

struct CodeRange {
  char32_t first, last;
};

// Ascending. Blocks are whole where only characters that are not assigned differ.
constexpr CodeRange kNoCells[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD}, {0x0610, 0x061A},   {0x064B, 0x065F},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x200B, 0x200D}, {0x2060, 0x2064},   {0x20D0, 0x20FF},
    {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0100, 0xE01EF},
};
constexpr CodeRange kTwoCells[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},   {0x2614, 0x2615},
    {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},   {0x26A1, 0x26A1},
    {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},   {0x26CE, 0x26CE},
    {0x26D4, 0x26D4},   {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},
    {0x26FA, 0x26FA},   {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x2728, 0x2728},   {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2755},
    {0x2757, 0x2757},   {0x2795, 0x2797},   {0x27B0, 0x27B0},   {0x27BF, 0x27BF},
    {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},   {0x2E80, 0x303E},
    {0x3041, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},
    {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF}, {0x1B000, 0x1B2FF}, {0x1F004, 0x1F004},
    {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A}, {0x1F200, 0x1F64F},
    {0x1F680, 0x1F6FF}, {0x1F7E0, 0x1F7EB}, {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF},
    {0x20000, 0x3FFFD},
};

template <size_t count>
bool IsAmong(const CodeRange (&ranges)[count], char32_t code) {
  const auto* next =
      std::upper_bound(std::begin(ranges), std::end(ranges), code,
                       [](char32_t one, const CodeRange& range) { return one < range.first; });
  return next != std::begin(ranges) && code <= std::prev(next)->last;
}

int CellsOf(char32_t code) {
  return IsAmong(kNoCells, code) ? 0 : IsAmong(kTwoCells, code) ? 2 : 1;
}

bool Continues(char byte) { return (byte & 0xC0) == 0x80; }

}  // namespace

Character FirstCharacter(absl::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const Character alone = {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return alone;
  char32_t code = first & (0x7F >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if (!Continues(text[i])) return alone;
    code = code << 6 | (text[i] & 0x3F);
  }
  constexpr char32_t kLeast[] = {0x80, 0x800, 0x10000};
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (code < kLeast[bytes - 2] || code > 0x10FFFF || is_surrogate) return alone;
  return {code, bytes};
}

int TextWidth(absl::string_view text) {
  int width = 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    width += CellsOf(character.code);
    text.remove_prefix(character.bytes);
  }
  return width;
}

absl::string_view Beginning(absl::string_view text, int width) {
  size_t end = 0;
  while (end < text.size()) {
    const Character character = FirstCharacter(text.substr(end));
    width -= CellsOf(character.code);
    if (width < 0) break;
    end += character.bytes;
  }
  return text.substr(0, end);
}

absl::string_view Ending(absl::string_view text, int width) {
  int surplus = TextWidth(text) - std::max(0, width);
  const bool is_cut = surplus > 0;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const int cells = CellsOf(character.code);
    // An accent whose letter was cut would stand on another one.
    if (surplus <= 0 && (cells > 0 || !is_cut)) break;
    surplus -= cells;
    text.remove_prefix(character.bytes);
  }
  return text;
}

std::string CutEnd(absl::string_view text, int width) {
  if (TextWidth(text) <= width) return std::string(text);
  return width < 1 ? "" : absl::StrCat(Beginning(text, width - 1), "~");
}

std::string CutMiddle(absl::string_view text, int width) {
  if (TextWidth(text) <= width) return std::string(text);
  if (width < 1) return "";
  const int before = (width - 1) / 2;
  return absl::StrCat(Beginning(text, before), "~", Ending(text, width - 1 - before));
}

std::string PaddedAfter(absl::string_view text, int width) {
  return absl::StrCat(text, std::string(std::max(0, width - TextWidth(text)), ' '));
}

std::string PaddedBefore(absl::string_view text, int width) {
  return absl::StrCat(std::string(std::max(0, width - TextWidth(text)), ' '), text);
}

}  // namespace tilewire::client
