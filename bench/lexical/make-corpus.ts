import { createWriteStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { Random } from '../../src/base/random.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';

export interface GeneratedPassage {
  readonly id: string;
  readonly contents: string;
}

/** Real passages cut into sentences. */
export interface SentenceSource {
  readonly passages: readonly SourcePassage[];
  /** Words that occur once or twice in all passages. */
  readonly rareWords: ReadonlySet<string>;
}

interface SourcePassage {
  readonly title: string;
  readonly sentences: readonly string[];
  /** Words of each sentence. */
  readonly lengths: readonly number[];
  /** Words of all sentences. */
  readonly length: number;
}

/** Changes when the same source and seed give other passages. */
export const GENERATOR_VERSION = 1;

/** A rare word occurs at most so often in the source. */
const RARE_OCCURRENCES = 2;

/**
 * m occurrences of a rare word become about m^0.53 different words. The vocabulary then grows as Wikipedia's: with Lucene's
 * EnglishAnalyzer pool_wiki_dev has 163,467 terms in 4.05 million tokens, wiki-18 5.35 million in 1,513 million, which is
 * tokens^0.59. A rare word has few occurrences at first, so its own exponent is smaller.
 */
const VARIANTS_EXPONENT = 0.53;

/** Length of a passage, divided by the wanted one. */
const SHORTEST = 0.9;
const LONGEST = 1.1;
/** Runs of sentences that are tried for a passage. If none is short enough, the last one gives a sentence. */
const MAX_RUNS = 50;

/** Digits of a variant's number: letters that no rule of the stemmer removes from the end of a word. */
const VARIANT_DIGITS = 'bfkpvwxz';

/** Lines that are written at once. */
const BLOCK_LINES = 1_000;

/** @throws TrawlError USAGE if the files have no passage with words; errors of the corpus. */
export async function readSentences(corpus: readonly string[], signal?: AbortSignal): Promise<SentenceSource> {
  const passages: SourcePassage[] = [];
  const occurrences = new Map<string, number>();
  for await (const { row } of openCorpus(corpus, { signal, checksums: false })) {
    const { title, text } = documentFields(JSON.stringify(row));
    const sentences = sentencesOf(text);
    const lengths = sentences.map((sentence) => wordsOf(sentence).length);
    const length = lengths.reduce((sum, words) => sum + words, 0);
    if (length === 0) continue;
    passages.push({ title: title ?? '', sentences, lengths, length });
    for (const word of wordsOf(text)) occurrences.set(word, (occurrences.get(word) ?? 0) + 1);
  }
  if (passages.length === 0)
    throw new TrawlError('USAGE', `${corpus.join(', ')}: no passage with words. Give a corpus of texts.`);
  const rare = [...occurrences].filter(([, count]) => count <= RARE_OCCURRENCES).map(([word]) => word);
  return { passages, rareWords: new Set(rare) };
}

/**
 * Yields any number of passages made of real sentences. A passage gets the length of a random real one, the title of another, and
 * runs of neighbouring sentences of random passages until it is as long. Frequent words keep their share of the passages.
 * Each occurrence of a rare word becomes a variant of it with a number from a power law, so that the vocabulary grows with the
 * corpus as that of Wikipedia does. The same source, seed and number of rows give the same passages.
 */
export function* generatePassages(
  { passages, rareWords }: SentenceSource,
  { rows, seed }: { readonly rows: number; readonly seed: number },
): Generator<GeneratedPassage, void> {
  const random = new Random(seed, passages.length, 25);
  const any = (): SourcePassage => passages[random.below(passages.length)]!;
  for (let row = 0; row < rows; row++) {
    const wanted = any().length;
    const { title } = any();
    const sentences: string[] = [];
    let words = 0;
    for (let runs = 0; runs < MAX_RUNS; runs++) {
      const { sentences: from, lengths } = any();
      for (let i = random.below(from.length); i < from.length; i++) {
        const next = words + lengths[i]!;
        const isTaken = next <= LONGEST * wanted + 1 || (sentences.length === 0 && runs === MAX_RUNS - 1);
        if (!isTaken) break;
        sentences.push(from[i]!);
        words = next;
      }
      if (words >= SHORTEST * wanted) break;
    }
    const text = sentences.join(' ').replace(WORD, (word) => (rareWords.has(word) ? variant(word, random) : word));
    yield { id: String(row), contents: `"${title}"\n${text}` };
  }
}

/** Writes the passages as JSON lines. */
export async function writeCorpusFile(
  path: string,
  source: SentenceSource,
  { rows, seed, signal }: { readonly rows: number; readonly seed: number; readonly signal?: AbortSignal },
): Promise<void> {
  function* blocks(): Generator<string> {
    let lines: string[] = [];
    for (const passage of generatePassages(source, { rows, seed })) {
      lines.push(`${JSON.stringify(passage)}\n`);
      if (lines.length < BLOCK_LINES) continue;
      throwIfCancelled(signal);
      yield lines.join('');
      lines = [];
    }
    yield lines.join('');
  }
  await pipeline(blocks, createWriteStream(path));
}

const WORD = /[\p{L}\p{N}]+/gu;

const wordsOf = (text: string): string[] => text.match(WORD) ?? [];

/** Cut after a full stop, question or exclamation mark before a space and a capital, a digit or a quote. */
function sentencesOf(text: string): string[] {
  return text
    .split(/(?<=[.!?]["”’)]?)\s+(?=["“‘(]?[\p{Lu}\p{N}])/u)
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}

/**
 * The word itself for variant 1, else the word with the number at its end. P(number > n) ~ n^-(1/h - 1), of which m draws have
 * about m^h different values.
 */
function variant(word: string, random: Random): string {
  const number = Math.floor(random.uniform() ** (-1 / (1 / VARIANTS_EXPONENT - 1)));
  if (number === 1) return word;
  let rest = number;
  let suffix = '';
  for (; rest > 0; rest = Math.floor(rest / VARIANT_DIGITS.length))
    suffix += VARIANT_DIGITS[rest % VARIANT_DIGITS.length];
  return word + suffix;
}
