import type { SourceDocument } from '../source-document.ts';

/** A passage before it has an id. */
export interface SplitPassage {
  readonly title: string;
  readonly text: string;
  /** KILT section of the first word; '' before the first heading; null if the rule ignores headings. */
  readonly section: string | null;
  /** Words at the beginning that the previous passage ends with, counted at single spaces. Default: 0. */
  readonly overlap?: number;
  /** Words at the end that are the beginning of the document. Default: 0. */
  readonly filled?: number;
}

export type SplitDocument =
  | { readonly ok: true; readonly passages: readonly SplitPassage[] }
  | { readonly ok: false; readonly reason: string };

/** Splits documents into passages, and defines the row format that the users of the rule expect. */
export interface SplittingRule {
  split(document: SourceDocument): SplitDocument;
  /** Columns of a JSONL row, after the id and before the columns for the origin. */
  columns(passage: SplitPassage): Readonly<Record<string, string>>;
  /** JSON type of ids from the position. */
  readonly ids: 'integer' | 'string';
  readonly firstId: 0 | 1;
  /**
   * TSV layout. `r1-searcher`: id and `contents`, unquoted. `dpr`: id, text and title, with a header. null: no TSV, because
   * rows contain line ends.
   */
  readonly tsv: 'r1-searcher' | 'dpr' | null;
}

/**
 * A rule as the options name it. Its file exports one of these, and `open-rule.ts` lists it; option values and messages follow.
 */
export interface RuleDefinition {
  readonly names: readonly string[];
  /** Passage size in words, sentences or tokens. Absent: the rule has one fixed size, and no overlap. */
  readonly defaultSize?: number;
  /** Whether consecutive passages can share something. */
  readonly overlaps?: boolean;
  readonly needsModel?: boolean;
  open(window: WindowOptions, model: string | undefined): SplittingRule | Promise<SplittingRule>;
}

export interface WindowOptions {
  /** Passage size in words, sentences or tokens, depending on the rule. */
  readonly size: number;
  /** Words, sentences or tokens that consecutive passages share; less than `size`. */
  readonly overlap: number;
}

/** A range [from, to) of list items. */
export type Window = readonly [from: number, to: number];

/** Windows of `size` items that begin `size - overlap` items apart, up to the first that reaches the end. */
export function windows(count: number, size: number, overlap: number): Window[] {
  const found: Window[] = [];
  for (let from = 0; from < count; from += size - overlap) {
    const to = Math.min(from + size, count);
    found.push([from, to]);
    if (to === count) break;
  }
  return found;
}

/** Number of items that each window shares with the one before it. */
export function overlaps(found: readonly Window[]): number[] {
  return found.map(([from], i) => (i === 0 ? 0 : Math.max(0, found[i - 1]![1] - from)));
}

/** The row format of the rules that reproduce no other project's rows. */
export const TITLE_AND_TEXT = {
  ids: 'string',
  firstId: 0,
  tsv: 'dpr',
  columns: ({ title, text }) => ({ title, text }),
} as const satisfies Partial<SplittingRule>;
