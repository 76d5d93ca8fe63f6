import { TrawlError } from '../src/base/errors.ts';
import { formatLocation, type PassageLocation } from './passage.ts';
import { splitTsvLine } from './split-tsv-line.ts';

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
  const header = headerOf(line);
  if (header !== null) return checkHeader(header, location);
  if (requested === 'dpr') return { type: 'columns', names: DPR_COLUMNS, hasHeader: false };
  const count = fieldCount(line);
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

/** The column names if the line is a header: its first field is `id`, and it has a known column. */
function headerOf(line: string): readonly string[] | null {
  const split = splitTsvLine(line);
  if (!split.ok || split.fields[0] !== 'id') return null;
  return split.fields.some((name) => name === 'text' || name === 'title' || name === 'contents') ? split.fields : null;
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

/** R1-Searcher lines may have stray quotes, so a line with invalid quoting is counted by its tabs. */
function fieldCount(line: string): number {
  const split = splitTsvLine(line);
  return split.ok ? split.fields.length : line.split('\t').length;
}
