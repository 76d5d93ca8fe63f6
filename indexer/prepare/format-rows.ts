import { jsonText } from '../../corpus/json-text.ts';
import type { SplitPassage, SplittingRule } from './rules/splitting-rule.ts';
import type { SourceDocument } from './source-document.ts';

/**
 * Where passage ids come from. `position`: the number of the passage in the output. `doc`: `<document id>-<number>`, with
 * the number of the passage in its document, from 0.
 */
export const ID_SOURCES = ['position', 'doc'] as const;

export type IdSource = (typeof ID_SOURCES)[number];

export interface RowOptions {
  readonly format: 'jsonl' | 'tsv';
  readonly idFrom: IdSource;
  /**
   * Whether JSONL rows have columns for their origin: `doc_id`, `passage`, for KILT pages `section`, the document's `url` if it has
   * one, and, unless they are 0, `overlap` and `filled`.
   */
  readonly columns: boolean;
}

export interface SplitResult {
  readonly document: SourceDocument;
  readonly passages: readonly SplitPassage[];
}

/** The header of the output; '' if the format has none. */
export function headerLine(rule: SplittingRule, { format }: RowOptions): string {
  return format === 'tsv' && rule.tsv === 'dpr' ? 'id\ttext\ttitle\n' : '';
}

/** Formats passages as lines. `start` is the number of passages before them in the output. */
export function formatRows(
  rule: SplittingRule,
  options: RowOptions,
  results: readonly SplitResult[],
  start: number,
): string {
  const toLine = options.format === 'tsv' ? tsvLine : jsonLine;
  let position = start + rule.firstId;
  let lines = '';
  for (const { document, passages } of results) {
    for (const [number, passage] of passages.entries()) {
      const id = options.idFrom === 'doc' ? `${document.id}-${number}` : position;
      lines += toLine(rule, options, { id, number, passage, document });
      position += 1;
    }
  }
  return lines;
}

interface Row {
  readonly id: string | number;
  readonly number: number;
  readonly passage: SplitPassage;
  readonly document: SourceDocument;
}

function jsonLine(rule: SplittingRule, { columns }: RowOptions, { id, number, passage, document }: Row): string {
  const written = rule.ids === 'string' ? String(id) : id;
  let line = `{"id":${JSON.stringify(written)}`;
  for (const [name, text] of Object.entries(rule.columns(passage))) line += `,"${name}":${JSON.stringify(text)}`;
  if (columns) {
    line += `,"doc_id":${jsonText(document.id)},"passage":${number}`;
    if (document.isKilt && passage.section !== null) line += `,"section":${JSON.stringify(passage.section)}`;
    if (document.url !== null) line += `,"url":${JSON.stringify(document.url)}`;
    for (const name of ['overlap', 'filled'] as const) {
      const words = passage[name] ?? 0;
      if (words > 0) line += `,"${name}":${words}`;
    }
  }
  return `${line}}\n`;
}

function tsvLine(rule: SplittingRule, _: RowOptions, { id, passage }: Row): string {
  if (rule.tsv === 'r1-searcher') return `${id}\t${onOneLine(rule.columns(passage)['contents']!)}\n`;
  return `${tsvField(String(id))}\t${tsvField(passage.text)}\t${tsvField(passage.title)}\n`;
}

/** Replaces line ends, which a title or an id may contain, with spaces. */
function onOneLine(text: string): string {
  return /[\r\n]/.test(text) ? text.replace(/[\r\n]+/g, ' ') : text;
}

/** Quotes a field as CSV, as `psgs_w100.tsv` does. */
function tsvField(text: string): string {
  const line = onOneLine(text);
  return /["\t]/.test(line) ? `"${line.replaceAll('"', '""')}"` : line;
}
