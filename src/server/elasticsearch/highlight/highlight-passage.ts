import { escapeHtml } from '../../../base/escape-html.ts';
import { type Locate, locator } from '../../../engine/lexical/analysis/analysers.ts';
import type { LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { fieldText } from '../../../index/passages/document-fields.ts';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import { fitsPattern } from '../query/dsl-query.ts';
import type { HighlightField, HighlightOptions } from './highlight-request.ts';
import { matchedWords, type QueryTexts } from './matched-words.ts';

/** The JSON text of a hit's `highlight`; undefined if no field of it has a word to highlight. */
export function highlightJson(
  { row, document }: Hit,
  { bm25 }: RetrieverInfo,
  { query, texts, fields }: { query: LexicalQuery; texts: QueryTexts; fields: readonly HighlightField[] },
): string | undefined {
  if (bm25 === null) return undefined;
  const passage = new LocatedWords(document, locator(bm25.analyser));
  const parts: string[] = [];
  for (const field of bm25.fields) {
    const options = fields.find(({ pattern }) => fitsPattern(pattern, field))?.options;
    if (options === undefined) continue;
    // If words of other fields count too, every part of the query is looked up in this field, whatever field it names.
    const fieldOf = (asked: LexicalField): LexicalField => (options.require_field_match ? asked : field);
    const has = (asked: LexicalField, term: string): boolean => passage.in(fieldOf(asked)).terms.has(term);
    const matched = matchedWords(query, texts, { row, has }) ?? [];
    const wanted = new Set(matched.flatMap((word) => (fieldOf(word.field) === field ? [word.term] : [])));
    const { text, marks } = passage.in(field);
    const snippets = snippetsOf(
      text,
      marks.filter(({ term }) => wanted.has(term)),
      options,
    );
    if (snippets.length > 0) parts.push(`${JSON.stringify(field)}:${JSON.stringify(snippets)}`);
  }
  return parts.length === 0 ? undefined : `{${parts.join(',')}}`;
}

interface LocatedField {
  readonly text: string;
  /** All words of the text. */
  readonly marks: readonly Mark[];
  readonly terms: ReadonlySet<string>;
}

/** The words of a passage's fields. A field is analysed when it is first needed. */
class LocatedWords {
  readonly #document: string;
  readonly #locate: Locate;
  readonly #fields = new Map<LexicalField, LocatedField>();

  constructor(document: string, locate: Locate) {
    this.#document = document;
    this.#locate = locate;
  }

  in(field: LexicalField): LocatedField {
    const known = this.#fields.get(field);
    if (known !== undefined) return known;
    const text = fieldText(this.#document, field);
    const marks = this.#locate(text);
    const located = { text, marks, terms: new Set(marks.map(({ term }) => term)) };
    this.#fields.set(field, located);
    return located;
  }
}

function snippetsOf(text: string, marks: readonly Mark[], options: HighlightOptions): readonly string[] {
  const { number_of_fragments: fragments, fragment_size: size, order } = options;
  if (marks.length === 0) return [];
  if (fragments === 0) return [marked(text, { start: 0, end: text.length, marks }, options)];
  const scored = fragmentsOf(text, marks, size).map((fragment) => ({
    fragment,
    score: fragmentScore(fragment, text.length),
  }));
  const best = scored.sort((a, b) => b.score - a.score || a.fragment.start - b.fragment.start).slice(0, fragments);
  if (order !== 'score') best.sort((a, b) => a.fragment.start - b.fragment.start);
  return best.map(({ fragment }) => trimmed(marked(text, fragment, options)));
}

function marked(text: string, { start, end, marks }: Fragment, options: HighlightOptions): string {
  const part = (from: number, to: number): string => {
    const plain = text.slice(from, to);
    return options.encoder === 'html' ? escapeHtml(plain).replaceAll('/', '&#x2F;') : plain;
  };
  let result = '';
  let at = start;
  for (const mark of marks) {
    if (mark.start > at) result += part(at, mark.start);
    // Terms of two characters may overlap.
    if (mark.end > at) result += options.pre_tags + part(Math.max(at, mark.start), mark.end) + options.post_tags;
    at = Math.max(at, mark.end);
  }
  return result + part(at, Math.max(at, end));
}

/** Without spaces and control characters at its ends, as by Java's `String.trim`. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length];
  while (start < end && text.charCodeAt(start) <= 0x20) start++;
  while (end > start && text.charCodeAt(end - 1) <= 0x20) end--;
  return text.slice(start, end);
}

/** A word to highlight: UTF-16 offsets [start, end). */
interface Mark {
  readonly start: number;
  readonly end: number;
  readonly term: string;
}

interface Fragment {
  readonly start: number;
  readonly end: number;
  readonly marks: readonly Mark[];
}

let segmenters: { readonly sentences: Intl.Segmenter; readonly words: Intl.Segmenter } | undefined;

/**
 * Cuts the parts of a text that have marks, in order. A fragment begins with a sentence and takes further ones while it has at most
 * `size` characters; of a longer sentence it takes about `size` characters around its first mark, cut between words. 0: one sentence
 * each.
 *
 * @param marks in the order of their places.
 * @internal
 */
export function fragmentsOf(text: string, marks: readonly Mark[], size: number): readonly Fragment[] {
  // Made when first needed, because loading their data takes 20 ms.
  segmenters ??= {
    sentences: new Intl.Segmenter('und', { granularity: 'sentence' }),
    words: new Intl.Segmenter('und', { granularity: 'word' }),
  };
  const sentences = [...Array.from(segmenters.sentences.segment(text), ({ index }) => index), text.length];
  const words = segmenters.words.segment(text);
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

interface Surroundings {
  /** The boundaries of sentences, ascending. */
  readonly sentences: readonly number[];
  /** The place in `sentences` of the first boundary behind the mark. */
  readonly next: number;
  readonly words: Intl.Segments;
  readonly size: number;
  /** The end of the fragment before. */
  readonly after: number;
}

/** The fragment around a mark at `at`. */
function placeAround(
  at: number,
  { sentences, next, words, size, after }: Surroundings,
): { start: number; end: number } {
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

/** Parameters of BM25 for fragments: a fragment is scored like a document whose usual length is `PIVOT` characters. */
const [K1, B, PIVOT] = [1.2, 0.75, 87];

/** How well a fragment matches: more for several different words, and a little more at the beginning of the text. */
function fragmentScore({ start, end, marks }: Fragment, textLength: number): number {
  const frequencies = new Map<string, number>();
  for (const { term } of marks) frequencies.set(term, (frequencies.get(term) ?? 0) + 1);
  const documents = 1 + textLength / PIVOT;
  const weight = (K1 + 1) * Math.log(1 + (documents + 0.5) / 1.5);
  const norm = K1 * (1 - B + B * ((end - start) / PIVOT));
  let score = 0;
  for (const frequency of frequencies.values()) score += (weight * frequency) / (frequency + norm);
  return score * (1 + 1 / Math.log(PIVOT + start));
}
