import { TrawlError } from '../src/base/errors.ts';
import { formatLocation, type PassageLocation } from './passage.ts';

/**
 * `auto`: by the first line: a header, 2 fields (R1-Searcher) or 3 fields (DPR). `header`: the first line names the columns.
 * `dpr`: id, text, title, with or without a header. `r1-searcher`: the id, a tab, and the rest of the line verbatim.
 */
export const TSV_LAYOUTS = ['auto', 'header', 'dpr', 'r1-searcher'] as const;

export type TsvLayout = (typeof TSV_LAYOUTS)[number];

/**
 * Type of ids. `auto`: integers for canonical decimal numbers in the R1-Searcher layout, whose servers return integers;
 * strings otherwise. `string` and `integer` apply to every layout.
 */
export const TSV_ID_TYPES = ['auto', 'string', 'integer'] as const;

export type TsvIdType = (typeof TSV_ID_TYPES)[number];

/** The layout of one file. */
export type ResolvedTsvLayout =
  | { readonly type: 'columns'; readonly names: readonly string[]; readonly hasHeader: boolean }
  | { readonly type: 'first-tab' };

const DPR_COLUMNS = ['id', 'text', 'title'] as const;

/** Determines the layout of a file by its first line that is not blank. */
export function resolveTsvLayout(requested: TsvLayout, line: string, location: PassageLocation): ResolvedTsvLayout {
  if (requested === 'r1-searcher') return { type: 'first-tab' };
  const split = splitTsvLine(line);
  if (split.ok && isHeader(split.fields)) return checkHeader(split.fields, location);
  if (requested === 'dpr') return { type: 'columns', names: DPR_COLUMNS, hasHeader: false };
  // R1-Searcher lines may have stray quotes, so a line with invalid quoting is counted by its tabs.
  const count = split.ok ? split.fields.length : line.split('\t').length;
  if (requested === 'auto' && count === 2) return { type: 'first-tab' };
  if (requested === 'auto' && count === 3) return { type: 'columns', names: DPR_COLUMNS, hasHeader: false };
  const expected =
    requested === 'header'
      ? 'a header line whose first name is id and which names contents or text'
      : 'a header (id, then text, title or contents), or 2 fields (id, contents), or 3 (id, text, title)';
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${formatLocation(location)}: the first line has ${count} tab-separated ${count === 1 ? 'field' : 'fields'} and is ` +
      `not a header; expected ${expected}. Set the layout with --tsv-layout ${TSV_LAYOUTS.join('|')}.`,
    { details: { ...location, fields: count } },
  );
}

/** Whether the first field is `id` and another is a known column. */
function isHeader([first, ...others]: readonly string[]): boolean {
  return first === 'id' && others.some((name) => name === 'text' || name === 'title' || name === 'contents');
}

function checkHeader(names: readonly string[], location: PassageLocation): ResolvedTsvLayout {
  const repeated = names.find((name, position) => names.indexOf(name) !== position);
  const problem =
    repeated !== undefined
      ? `names the column ${JSON.stringify(repeated)} twice`
      : names.includes('')
        ? 'has a column without a name'
        : names.includes('text') || names.includes('contents')
          ? null
          : 'names neither text nor contents';
  if (problem === null) return { type: 'columns', names, hasHeader: true };
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${formatLocation(location)}: the header ${problem} (${names.map((name) => JSON.stringify(name)).join(', ')}). ` +
      'Column names must be unique, and one of them must be text or contents.',
    { details: { ...location } },
  );
}

type TsvFields =
  | { readonly ok: true; readonly fields: readonly string[] }
  | { readonly ok: false; readonly reason: string };

/**
 * Splits a line at tabs with CSV quoting: a field that starts with `"` ends at the next single `"` and may contain tabs;
 * `""` in it stands for `"`. A quote elsewhere in a field is an ordinary character.
 */
export function splitTsvLine(line: string): TsvFields {
  if (!line.includes('"')) return { ok: true, fields: line.split('\t') };
  const fields: string[] = [];
  let start = 0;
  for (;;) {
    let end: number;
    if (line[start] === '"') {
      const close = closingQuote(line, start + 1);
      if (close === -1) {
        return { ok: false, reason: `the quoted field ${fields.length + 1} has no closing quote on its line` };
      }
      end = close + 1;
      if (end < line.length && line[end] !== '\t') {
        const reason = `text follows the closing quote of field ${fields.length + 1}; double a quote inside quotes`;
        return { ok: false, reason };
      }
      fields.push(line.slice(start + 1, close).replaceAll('""', '"'));
    } else {
      const tab = line.indexOf('\t', start);
      end = tab === -1 ? line.length : tab;
      fields.push(line.slice(start, end));
    }
    if (end >= line.length) return { ok: true, fields };
    start = end + 1;
  }
}

/** Position of the next `"` that is not doubled; -1 if none. */
function closingQuote(line: string, from: number): number {
  let position = line.indexOf('"', from);
  while (position !== -1 && line[position + 1] === '"') position = line.indexOf('"', position + 2);
  return position;
}
