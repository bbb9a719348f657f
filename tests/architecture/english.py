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
# A comment begins with what the thing is: a noun or a verb, not a clause that leans on the code below.
_BEGINNING = re.compile(r'(?:#!\S+(?: \S+)?)?(?:\s|//|#|""")*(?:SPDX-License-Identifier: \S+)?(?:\s|//|#|""")*'
                        r"(?P<word>Of|That|Those|What)\b")
_COMPILED = [(re.compile(pattern), advice) for pattern, advice in PHRASES]

_SOURCE = (".h", ".cc", ".proto", ".inc")
_SCRIPT = (".py", ".sh", "BUILD", ".bzl", "Dockerfile")
# Paragraphs; comments and strings; comments and docstrings. Comments that follow each other are one.
_PARAGRAPHS = re.compile(r"(?:^(?!\s*$).*\n?)+", re.MULTILINE)
_OF_SOURCES = re.compile(r"(?:^[ \t]*//.*\n)+|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"", re.MULTILINE)
_OF_SCRIPTS = re.compile(r'(?:^[ \t]*#.*\n)+|[ \t]#[ ][^\n]*|"""(?:.|\n)*?"""', re.MULTILINE)


def _prose(text, path):
    """(line, text) of what `path` says to its readers."""
    blocks = _OF_SCRIPTS if path.endswith(_SCRIPT) else _OF_SOURCES
    if path.endswith(".md"):
        text, blocks = re.sub(r"`[^`\n]*`", "``", text), _PARAGRAPHS
    for block in blocks.finditer(text):
        words = re.sub(r"\s*\n\s*(//|#)?\s*", " ", block.group())
        yield text.count("\n", 0, block.start()) + 1, words


def _leans(words):
    """The word with which a comment begins that leans on the code below; None for strings and other comments."""
    is_string = words.startswith('"') and not words.startswith('"""')
    match = None if is_string else _BEGINNING.match(words)
    return match and match.group("word")


def check(tree):
    problems = []
    for path in tree.with_suffix(".md", *_SOURCE, *_SCRIPT):
        for line, words in _prose(tree.text(path), path):
            if not path.endswith(".md") and (word := _leans(words)):
                problems.append(f"{path}:{line}: a comment that begins with \"{word}\": begin with what the thing is")
            for pattern, advice in _COMPILED:
                for match in pattern.finditer(words):
                    problems.append(f"{path}:{line}: \"{match.group()}\": write {advice}")
    return problems
