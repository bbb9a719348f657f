# SPDX-License-Identifier: Apache-2.0
"""Plain English in comments, messages and documents: turns of phrase that no native reader would write."""

import re

_UNITS = ("axis|batch|block|call|case|channel|client|column|connection|core|device|dimension|element|entry|"
          "family|file|folder|function|group|header|image|index|input|kernel|key|lane|layer|line|machine|message|"
          "minute|model|node|number|operation|operator|output|pass|piece|pixel|plan|position|primitive|process|"
          "register|request|row|second|set|side|slot|source|spatial dimension|step|tap|task|tensor|test|thread|"
          "unit|value|vector|window")

# (what is matched, what to write).
PHRASES = [
    (r"\bbehind (it|them|the|a|an|its|each|every|one|which|that|those)\b", "after; behind is a place"),
    (r"\b[Ww]ho(so)?ever\b", "the caller, another thread, any ..."),
    (r"\b([Nn]o|[Ss]ome|[Ee]very)body\b", "nothing else, another thread, no caller, all ..."),
    (rf"\b([Oo]nce|[Oo]ne|[Tt]wo|[Tt]hree|[Ff]our|values?|numbers?|bytes|scales?|files?|lines?|rows?|sums?) "
     rf"an? ({_UNITS})\b", "per"),
    (r"\b(is|are|was|were) no (?!longer\b|more\b|less\b|such\b|better\b|worse\b|other\b|need\b|way\b|reason\b|"
     r"larger\b|smaller\b|slower\b|faster\b|greater\b|further\b|different\b)(?<!here is no )(?<!here are no )"
     r"(?<!here was no )(?<!here were no )\w+", "is not a, are not, has no"),
    (r"\bsuch (that|which) (are|is|were)\b", "those that are, if they are"),
    (r"\bNot a number\b", "NaN"),
    (r"\b(all|those|he|they) who\b", "all callers that, threads that"),
]
_COMPILED = [(re.compile(pattern), advice) for pattern, advice in PHRASES]

_SOURCE = (".h", ".cc", ".proto", ".inc")


def _prose(text, is_document):
    """(line, text) of paragraphs, comments and messages; comments that follow each other are one."""
    if is_document:
        blocks = re.finditer(r"(?:^(?!\s*$).*\n?)+", re.sub(r"`[^`\n]*`", "``", text), re.MULTILINE)
    else:
        blocks = re.finditer(r"(?:^[ \t]*//.*\n)+|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", text, re.MULTILINE)
    for block in blocks:
        words = re.sub(r"\s*\n\s*(//)?\s*", " ", block.group())
        yield text.count("\n", 0, block.start()) + 1, words


def check(tree):
    problems = []
    for path in tree.with_suffix(".md", *_SOURCE):
        for line, words in _prose(tree.text(path), path.endswith(".md")):
            for pattern, advice in _COMPILED:
                for match in pattern.finditer(words):
                    problems.append(f"{path}:{line}: \"{match.group()}\": write {advice}")
    return problems
