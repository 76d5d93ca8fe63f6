/** A word to highlight: UTF-16 offsets [start, end). */
export interface Mark {
  readonly start: number;
  readonly end: number;
  readonly term: string;
}

export interface Fragment {
  readonly start: number;
  readonly end: number;
  readonly marks: readonly Mark[];
}

type Granularity = 'sentence' | 'word';

/** Where sentences and words of a text begin and end. Made when needed: the first one loads its data, which takes 20 ms. */
const SEGMENTERS = new Map<Granularity, Intl.Segmenter>();

/**
 * Cuts the parts of a text that have marks, in order. A fragment begins with a sentence and takes further ones while it has at most
 * `size` characters; of a longer sentence it takes about `size` characters around its first mark, cut between words. 0: one sentence
 * each.
 *
 * @param marks in the order of their places.
 */
export function fragmentsOf(text: string, marks: readonly Mark[], size: number): readonly Fragment[] {
  const sentences = boundaries(text);
  const words = segmenter('word').segment(text);
  // The first boundary of a sentence behind a mark; boundaries and marks ascend.
  let next = 0;
  const fragments: { start: number; end: number; marks: Mark[] }[] = [];
  for (const mark of marks) {
    const last = fragments.at(-1);
    if (last !== undefined && mark.start < last.end) {
      last.marks.push(mark);
      continue;
    }
    while (sentences[next]! <= mark.start) next++;
    const { start, end } = placeAround(mark.start, { sentences, next, words, size, after: last?.end ?? 0 });
    fragments.push({ start, end, marks: [mark] });
  }
  return fragments;
}

interface Place {
  /** The boundaries of sentences, ascending. */
  readonly sentences: readonly number[];
  /** The first of them behind the mark. */
  readonly next: number;
  readonly words: Intl.Segments;
  readonly size: number;
  /** The end of the fragment before. */
  readonly after: number;
}

function placeAround(at: number, { sentences, next, words, size, after }: Place): { start: number; end: number } {
  let start = Math.max(sentences[next - 1]!, after);
  let last = next;
  if (size === 0) return { start, end: sentences[last]! };
  while (last + 1 < sentences.length && sentences[last + 1]! - start <= size) last++;
  let end = sentences[last]!;
  if (end - start <= size) return { start, end };
  // The mark is within the first `size` characters of the rest, or the fragment begins before it between two words.
  if (at + 1 - size > start) start = Math.max(start, words.containing(at - size)!.index);
  const left = Math.max(0, size - (at + 1 - start));
  if (at + 1 + left < end) {
    const { index, segment } = words.containing(at + 1 + left)!;
    end = Math.min(end, index + segment.length);
  }
  return { start, end };
}

function segmenter(granularity: Granularity): Intl.Segmenter {
  const made = SEGMENTERS.get(granularity) ?? new Intl.Segmenter('und', { granularity });
  SEGMENTERS.set(granularity, made);
  return made;
}

/** The boundaries of sentences, ascending. */
function boundaries(text: string): number[] {
  return [...Array.from(segmenter('sentence').segment(text), ({ index }) => index), text.length];
}

/** Parameters of BM25 for fragments: a fragment takes the part of a document, its usual length is `PIVOT` characters. */
const [K1, B, PIVOT] = [1.2, 0.75, 87];

/** How well a fragment matches: more for several different words, and a little more at the beginning of the text. */
export function fragmentScore({ start, end, marks }: Fragment, textLength: number): number {
  const frequencies = new Map<string, number>();
  for (const { term } of marks) frequencies.set(term, (frequencies.get(term) ?? 0) + 1);
  const documents = 1 + textLength / PIVOT;
  const weight = (K1 + 1) * Math.log(1 + (documents + 0.5) / 1.5);
  const norm = K1 * (1 - B + B * ((end - start) / PIVOT));
  let score = 0;
  for (const frequency of frequencies.values()) score += (weight * frequency) / (frequency + norm);
  return score * (1 + 1 / Math.log(PIVOT + start));
}
