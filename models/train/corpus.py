"""Training text: reads JSONL corpora, drops passages of the evaluation sets, makes views.

A *view* is a short text made from a passage: its title, one sentence, or a
pseudo-query that imitates a query of a search agent (a fragment with a question
word, keywords, a comparison of two titles, a bridge between two passages).
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

SHINGLE = 13  # words; the usual length for train/test decontamination

# Shares of the contrastive pairs: inverse cloze pairs, and pairs whose query is the title.
CLOZE_SHARE = 0.35
TITLE_SHARE = 0.10

STOPWORDS = frozenset(
    "a an and are as at be been but by for from had has have he her his in into is it its of on or "
    "she that the their them they this to was were which who will with during after before also not "
    "than then there these those when where while over under between about s".split()
)
OPENERS = (
    "What", "Who", "Which", "When", "Where", "What is the", "What was the", "Who was the", "Who is the",
    "Which", "In what year", "In which", "How many", "What is the name of the", "When was", "Where is",
)
COMPARISONS = (
    "Which is older, {a} or {b}?", "Are {a} and {b} both {f}?", "Were {a} and {b} {f}?",
    "Who was born first, {a} or {b}?", "Which came first, {a} or {b}?", "{a} and {b} {f}",
    "What do {a} and {b} have in common?", "Do {a} and {b} have the same {f}?",
    "Which has more {f}, {a} or {b}?", "Between {a} and {b}, which {f}?",
)


@dataclass(frozen=True)
class Passage:
    """One passage. `text` excludes the title; `contents` is `"title"\\ntext`."""

    title: str
    text: str

    @property
    def contents(self) -> str:
        return f'"{self.title}"\n{self.text}' if self.title else self.text


@dataclass
class Query:
    """A pseudo-query and the indices of the passages it was made from (one or two)."""

    text: str
    gold: tuple[int, ...] = field(default_factory=tuple)


def clean_title(title: str) -> str:
    """Strips white space and surrounding quotation marks."""
    return title.strip().strip('"').strip()


def read_corpus(path: Path) -> list[Passage]:
    """Reads JSONL rows {"id","title","text"} or {"id","contents"} (title on the first line)."""
    passages = []
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            if "text" in row:
                title, text = row.get("title", ""), row["text"]
            else:
                title, newline, text = row["contents"].partition("\n")
                if not newline:
                    title, text = "", row["contents"]
            passages.append(Passage(clean_title(title), text.strip()))
    return passages


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def shingles(text: str) -> Iterable[tuple[str, ...]]:
    """All sequences of SHINGLE consecutive words; a shorter text is a single sequence."""
    w = words(text)
    return (tuple(w[i : i + SHINGLE]) for i in range(max(1, len(w) - SHINGLE + 1)))


def drop_evaluated(passages: list[Passage], evaluated: list[Passage]) -> tuple[list[Passage], dict[str, int]]:
    """Drops passages that share a title or SHINGLE consecutive words with a passage of an evaluation set.

    Ignores the case of titles. Also drops empty and repeated texts.
    Returns the kept passages and the number dropped for each reason.
    """
    titles = {p.title.lower() for p in evaluated if p.title}
    seen_words = {s for p in evaluated for s in shingles(p.text)}
    kept: list[Passage] = []
    texts: set[str] = set()
    dropped = {"title": 0, "words": 0, "repeated": 0}
    for p in passages:
        key = " ".join(words(p.contents))
        if p.title.lower() in titles:
            dropped["title"] += 1
        elif any(s in seen_words for s in shingles(p.text)):
            dropped["words"] += 1
        elif not p.text or key in texts:
            dropped["repeated"] += 1
        else:
            texts.add(key)
            kept.append(p)
    return kept, dropped


def sentences(text: str) -> list[str]:
    """A simple sentence splitter, good enough for encyclopedic text. Omits sentences of fewer than 5 words."""
    parts = re.split(r"(?<=[a-z0-9\)\"”][.!?])\s+(?=[A-Z\"“])", text)
    return [s.strip() for s in parts if len(s.split()) >= 5] or [text]


def bare_title(title: str) -> str:
    """The title without a disambiguation in parentheses."""
    return re.sub(r"\s*\([^)]*\)$", "", title) or title


def find_bridges(passages: list[Passage]) -> dict[int, list[int]]:
    """For each passage, others whose bare title (two words or more) occurs in its text."""
    by_title: dict[str, int] = {}
    for i, p in enumerate(passages):
        key = " ".join(bare_title(p.title).split())
        if " " in key:
            by_title.setdefault(key, i)
    bridges: dict[int, list[int]] = {}
    for i, p in enumerate(passages):
        w = [x.strip(".,;:\"'()") for x in p.text.split()]
        found = []
        for start, word in enumerate(w):
            if not word[:1].isupper():
                continue
            for n in (2, 3, 4, 5):
                j = by_title.get(" ".join(w[start : start + n]))
                if j is not None and j != i and passages[j].title != p.title:
                    found.append(j)
        if found:
            bridges[i] = sorted(set(found))
    return bridges


class QueryMaker:
    """Makes pseudo-queries from passages, with a random generator of its own."""

    def __init__(self, passages: list[Passage], seed: int) -> None:
        self.passages = passages
        self.bridges = find_bridges(passages)
        self.rng = random.Random(seed)

    def sentence(self, i: int) -> str:
        return self.rng.choice(sentences(self.passages[i].text))

    def fragment(self, i: int, low: int, high: int) -> str:
        """`low` to `high` consecutive words of one sentence."""
        w = self.sentence(i).split()
        n = min(len(w), self.rng.randint(low, high))
        start = self.rng.randint(0, len(w) - n)
        return " ".join(w[start : start + n]).strip(" .,;:")

    def keywords(self, i: int, low: int, high: int) -> str:
        """`low` to `high` content words of the passage, in text order."""
        w = [x.strip(".,;:()\"'") for x in self.passages[i].text.split()]
        w = [x for x in w if x and x.lower() not in STOPWORDS]
        n = min(len(w), self.rng.randint(low, high))
        return " ".join(w[k] for k in sorted(self.rng.sample(range(len(w)), n)))

    def ask(self, body: str) -> str:
        """Puts a question word before `body` with probability 0.75."""
        if self.rng.random() < 0.25:
            return body
        return f"{self.rng.choice(OPENERS)} {body}?"

    def query(self, i: int) -> Query:
        """One pseudo-query for passage `i`."""
        r = self.rng.random()
        title = bare_title(self.passages[i].title)
        if r < 0.30 or not title:
            return Query(self.ask(self.fragment(i, 6, 16)), (i,))
        if r < 0.55:
            extra = self.fragment(i, 2, 7) if self.rng.random() < 0.5 else self.keywords(i, 1, 5)
            return Query(self.ask(f"{title} {extra}" if self.rng.random() < 0.5 else f"{extra} {title}"), (i,))
        if r < 0.68:
            return Query(self.keywords(i, 3, 8), (i,))
        if r < 0.80:
            j = self.rng.choice(self.bridges.get(i) or [self.rng.randrange(len(self.passages))])
            a, b = title, bare_title(self.passages[j].title)
            return Query(self.rng.choice(COMPARISONS).format(a=a, b=b, f=self.fragment(i, 1, 4)), (i, j))
        if i in self.bridges:
            j = self.rng.choice(self.bridges[i])
            parts = [self.fragment(i, 4, 9), self.fragment(j, 3, 8)]
            if self.rng.random() < 0.5:
                parts[self.rng.randrange(2)] = self.rng.choice([title, bare_title(self.passages[j].title)])
            self.rng.shuffle(parts)
            return Query(self.ask(" ".join(parts)), (i, j))
        return Query(self.ask(self.fragment(i, 5, 12)), (i,))

    def pair(self, i: int) -> tuple[str, str]:
        """A contrastive pair for passage `i`: (query, text to remove from the passage).

        Removing the sentence or title that became the query from the passage
        makes the model learn related words, not only shared ones.
        """
        p, r = self.passages[i], self.rng.random()
        if r < CLOZE_SHARE:
            parts = sentences(p.text)
            if len(parts) > 1:
                sentence = self.rng.choice(parts)
                w = sentence.split()
                n = min(len(w), self.rng.randint(8, 20))
                start = self.rng.randint(0, len(w) - n)
                return " ".join(w[start : start + n]), sentence
        elif r < CLOZE_SHARE + TITLE_SHARE and p.title:
            return bare_title(p.title), p.title
        return self.query(i).text, ""


def cloze(passages: list[Passage], seed: int) -> tuple[list[str], list[str]]:
    """Inverse cloze pairs for validation: (queries, contents), aligned.

    The query is one sentence, truncated to 20 words; the sentence is removed
    from the passage.
    """
    rng = random.Random(seed)
    queries, contents = [], []
    for p in passages:
        parts = sentences(p.text)
        if len(parts) < 2:
            continue
        k = rng.randrange(len(parts))
        queries.append(" ".join(parts[k].split()[:20]))
        contents.append(Passage(p.title, " ".join(parts[:k] + parts[k + 1 :])).contents)
    return queries, contents
