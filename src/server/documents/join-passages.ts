import type { DocumentFields } from '../../index/passages/document-fields.ts';

/** The length of a passage of wiki-18 and of DPR, whose last passage of a page is filled up with the page's beginning. */
const WIKI_WORDS = 100;
/** Shared words from which on two passages were cut with an overlap; fewer may be a coincidence. */
const OVERLAP_WORDS = 8;
/** Longest overlap that is looked for. */
const MAX_OVERLAP_WORDS = 1_000;

/**
 * The text of a document, joined from its passages without their titles. What passages repeat is left out:
 *
 * - With the columns of `trawl prepare`, exactly the words that they count.
 * - Passages of 100 words each, as in wiki-18: the words of the last that are the beginning of the first.
 * - Otherwise, a beginning of at least 8 words that the passage before ends with.
 *
 * Passages with different titles are joined with their titles, line by line.
 *
 * @param passages in the order of `orderedPassages`, at least one.
 */
export function joinPassages(passages: readonly DocumentFields[]): string {
  const [first] = passages;
  if (passages.some(({ title }) => title !== first!.title)) return passages.map(({ contents }) => contents).join('\n');
  const texts = passages.map(({ text, contents }) => (text === '' ? contents : text));
  if (passages.every(({ place }) => place !== undefined)) return joinPrepared(passages, texts);
  if (texts.length === 1) return texts[0]!;
  const words = texts.map(wordsOf);
  if (words.every(({ length }) => length === WIKI_WORDS)) return joinFilled(words);
  return texts.reduce((joined, text, i) => {
    const rest = text.slice(overlapEnd(words[i - 1]!, words[i]!));
    return rest.trim() === '' ? joined : `${joined}${rest === text ? '\n' : ''}${rest}`;
  });
}

/** Passages in the order of their document: by the column `passage` if all have it, else by row. */
export function orderedPassages<P extends { readonly fields: DocumentFields }>(passages: readonly P[]): readonly P[] {
  if (!passages.every(({ fields }) => fields.place !== undefined)) return passages;
  return passages.toSorted((a, b) => a.fields.place!.passage - b.fields.place!.passage);
}

/** The title of a row of RAG-R1 or R1-Searcher: the words follow after three spaces, and have single spaces between them. */
const HEAD = /^.*? {3}/;

function joinPrepared(passages: readonly DocumentFields[], texts: readonly string[]): string {
  const [first] = passages;
  const parts = texts.map((text, i) => {
    const { passage, overlap, filled } = passages[i]!.place!;
    const follows = i > 0 && passages[i - 1]!.place!.passage === passage - 1;
    const words = (first!.title === undefined ? text.replace(HEAD, '') : text).split(' ');
    const end = i > 0 && first!.place!.passage === 0 ? words.length - filled : words.length;
    return words.slice(follows ? overlap : 0, Math.max(0, end)).join(' ');
  });
  return parts.filter((part) => part !== '').join(' ');
}

function joinFilled(words: readonly (readonly Word[])[]): string {
  const [beginning, last] = [words[0]!, words.at(-1)!];
  let kept = 1;
  while (kept < last.length && !last.slice(kept).every(({ word }, i) => word === beginning[i]!.word)) kept++;
  return [...words.slice(0, -1), last.slice(0, kept)].flatMap((each) => each.map(({ word }) => word)).join(' ');
}

interface Word {
  readonly word: string;
  readonly end: number;
}

function wordsOf(text: string): readonly Word[] {
  return Array.from(text.matchAll(/\S+/g), (match) => ({ word: match[0], end: match.index + match[0].length }));
}

/** Offset in the second text after the words that the first one ends with; 0 if they are too few. */
function overlapEnd(before: readonly Word[], after: readonly Word[]): number {
  const most = Math.min(before.length, after.length, MAX_OVERLAP_WORDS);
  for (let count = most; count >= OVERLAP_WORDS; count--) {
    const start = before.length - count;
    let i = 0;
    while (i < count && before[start + i]!.word === after[i]!.word) i++;
    if (i === count) return after[count - 1]!.end;
  }
  return 0;
}
