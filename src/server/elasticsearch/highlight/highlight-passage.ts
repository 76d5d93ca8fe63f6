import { escapeHtml } from '../../../base/escape-html.ts';
import { type Locate, locator } from '../../../engine/lexical/analysis/analysers.ts';
import type { LexicalQuery } from '../../../engine/lexical/lexical-query.ts';
import type { LexicalField } from '../../../engine/lexical/lexical-settings.ts';
import { documentFields } from '../../../index/passages/document-fields.ts';
import type { Hit } from '../../../search/calls/query-outcome.ts';
import type { RetrieverInfo } from '../../../search/retriever-info.ts';
import { fitsPattern } from '../query/dsl-query.ts';
import { type Fragment, fragmentScore, fragmentsOf, type Mark } from './fragments.ts';
import type { HighlightField, HighlightOptions } from './highlight-request.ts';
import { matchedWords } from './matched-words.ts';
import type { QueryTexts } from './query-texts.ts';

/** What the passages of one index are highlighted by. */
export interface Highlighting {
  readonly query: LexicalQuery;
  readonly texts: QueryTexts;
  readonly fields: readonly HighlightField[];
}

/** The JSON text of a hit's `highlight`; undefined if no field of it has a word to highlight. */
export function highlightJson(
  { row, document }: Pick<Hit, 'row' | 'document'>,
  { bm25 }: Pick<RetrieverInfo, 'bm25'>,
  { query, texts, fields }: Highlighting,
): string | undefined {
  if (bm25 === null) return undefined;
  const passage = new HighlightedPassage(row, document, locator(bm25.analyser));
  const parts: string[] = [];
  for (const field of bm25.fields) {
    const found = fields.find(({ pattern }) => fitsPattern(pattern, field));
    if (found === undefined) continue;
    const snippets = passage.snippets(field, { query, texts }, found.options);
    if (snippets.length > 0) parts.push(`${JSON.stringify(field)}:${JSON.stringify(snippets)}`);
  }
  return parts.length === 0 ? undefined : `{${parts.join(',')}}`;
}

class HighlightedPassage {
  readonly #row: number;
  readonly #texts: Readonly<Record<LexicalField, string>>;
  readonly #locate: Locate;
  readonly #marks = new Map<LexicalField, readonly Mark[]>();
  readonly #terms = new Map<LexicalField, ReadonlySet<string>>();

  constructor(row: number, document: string, locate: Locate) {
    const { title = '', text, contents } = documentFields(document);
    this.#row = row;
    this.#texts = { title, text, contents };
    this.#locate = locate;
  }

  snippets(
    field: LexicalField,
    { query, texts }: Pick<Highlighting, 'query' | 'texts'>,
    options: HighlightOptions,
  ): readonly string[] {
    const { onlyOwnWords, fragments, fragmentSize, byScore } = options;
    // If words of other fields count too, every part of the query is looked up in this field, whatever field it names.
    const fieldOf = (asked: LexicalField): LexicalField => (onlyOwnWords ? asked : field);
    const words = matchedWords(query, texts, {
      row: this.#row,
      has: (asked, term) => this.#termsOf(fieldOf(asked)).has(term),
    });
    const wanted = new Set(words?.flatMap((word) => (fieldOf(word.field) === field ? [word.term] : [])));
    const marks = this.#marksOf(field).filter(({ term }) => wanted.has(term));
    if (marks.length === 0) return [];
    const text = this.#texts[field];
    if (fragments === 0) return [marked(text, { start: 0, end: text.length, marks }, options)];
    const scored = fragmentsOf(text, marks, fragmentSize).map((fragment) => ({
      fragment,
      score: fragmentScore(fragment, text.length),
    }));
    const best = scored.sort((a, b) => b.score - a.score || a.fragment.start - b.fragment.start).slice(0, fragments);
    if (!byScore) best.sort((a, b) => a.fragment.start - b.fragment.start);
    return best.map(({ fragment }) => trimmed(marked(text, fragment, options)));
  }

  #marksOf(field: LexicalField): readonly Mark[] {
    const known = this.#marks.get(field);
    if (known !== undefined) return known;
    const marks = this.#locate(this.#texts[field]);
    this.#marks.set(field, marks);
    return marks;
  }

  #termsOf(field: LexicalField): ReadonlySet<string> {
    const known = this.#terms.get(field);
    if (known !== undefined) return known;
    const terms = new Set(this.#marksOf(field).map(({ term }) => term));
    this.#terms.set(field, terms);
    return terms;
  }
}

/** A fragment with its tags. */
function marked(text: string, { start, end, marks }: Fragment, { before, after, escapes }: HighlightOptions): string {
  const part = (from: number, to: number): string => (escapes ? escaped(text.slice(from, to)) : text.slice(from, to));
  let result = '';
  let at = start;
  for (const mark of marks) {
    if (mark.start > at) result += part(at, mark.start);
    // Terms of two characters may overlap.
    if (mark.end > at) result += before + part(Math.max(at, mark.start), mark.end) + after;
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

function escaped(text: string): string {
  return escapeHtml(text).replaceAll('/', '&#x2F;');
}
