import type { SourceDocument } from '../source-document.ts';

/** A passage before it has an id. */
export interface SplitPassage {
  readonly title: string;
  readonly text: string;
  /** The KILT section of its first word, '' before the first heading; null where the rule does not know headings. */
  readonly section: string | null;
}

export type SplitDocument =
  | { readonly ok: true; readonly passages: readonly SplitPassage[] }
  | { readonly ok: false; readonly reason: string };

/** How documents become passages, and how the rows look that the rule's own users read. */
export interface SplittingRule {
  split(document: SourceDocument): SplitDocument;
  /** The columns of a JSONL row between the id and those that say where it is from. */
  columns(passage: SplitPassage): Readonly<Record<string, string>>;
  /** Type of ids that count passages, and the first of them. */
  readonly ids: 'integer' | 'string';
  readonly firstId: 0 | 1;
  /**
   * Layout of TSV: `r1-searcher` is the id, a tab and `contents` verbatim; `dpr` is id, text, title with a header; null
   * where rows have line ends and so no TSV.
   */
  readonly tsv: 'r1-searcher' | 'dpr' | null;
}

/** A `[from, to)` window over a list. */
export type Window = readonly [from: number, to: number];

/** Windows of `size` that begin `size - overlap` apart; the last is the first that reaches the end. */
export function windows(count: number, size: number, overlap: number): Window[] {
  const found: Window[] = [];
  for (let from = 0; from < count; from += size - overlap) {
    const to = Math.min(from + size, count);
    found.push([from, to]);
    if (to === count) break;
  }
  return found;
}

export function titleAndText({ title, text }: SplitPassage): Readonly<Record<string, string>> {
  return { title, text };
}
