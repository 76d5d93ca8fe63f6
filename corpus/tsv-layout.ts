import { TrawlError } from '../src/base/errors.ts';
import { isSameJson } from '../src/base/objects.ts';
import { formatLocation, type PassageLocation } from './passage.ts';
import { type ColumnNames, columnNames, columnsOfRow, roleOf } from './row-columns.ts';

/**
 * `auto`: a header, or two fields whose first is an id (R1-Searcher). `header`: the first line names the columns. `r1-searcher`: the id, a
 * tab, and the rest of the line verbatim. Otherwise the names of the columns, with commas between, of a file without a header.
 */
export const TSV_LAYOUTS = ['auto', 'header', 'r1-searcher'] as const;

/**
 * Type of ids. `auto`: integers for canonical decimal numbers in the R1-Searcher layout, whose servers return integers;
 * strings otherwise. `string` and `integer` apply to every layout.
 */
export const TSV_ID_TYPES = ['auto', 'string', 'integer'] as const;

export type TsvIdType = (typeof TSV_ID_TYPES)[number];

/** The layout of one file. */
export type ResolvedTsvLayout =
  | { readonly type: 'columns'; readonly names: readonly string[]; readonly hasHeader: boolean }
  | { readonly type: 'first-tab'; readonly hasHeader: boolean };

/** Determines the layout of a file by its first line that is not blank. */
export function resolveTsvLayout(
  requested: string,
  line: string,
  { location, columns }: { readonly location: PassageLocation; readonly columns: ColumnNames },
): ResolvedTsvLayout {
  const split = splitTsvLine(line);
  const fields = split.ok ? split.fields.map((name) => name.trim()) : undefined;
  const hasHeader = fields !== undefined && isHeader(fields, columns);
  if (requested === 'r1-searcher') return { type: 'first-tab', hasHeader: hasHeader && fields.length === 2 };
  if (requested.includes(',')) {
    const names = requested.split(',').map((name) => name.trim());
    const isSame = isSameJson(fields, names);
    if (!isSame && hasHeader && !isSameJson(fields.map(roleOf), names.map(roleOf))) {
      throw new TrawlError(
        'CORPUS_FORMAT_UNKNOWN',
        `${formatLocation(location)}: the first line is a header of other columns than --tsv-layout ${names.join(',')}: ` +
          `${fields.map((name) => JSON.stringify(name)).join(', ')}. Leave out --tsv-layout.`,
        { details: { ...location } },
      );
    }
    return checkNames(names, isSame || hasHeader, { location, columns });
  }
  if (fields !== undefined && (requested === 'header' || hasHeader)) {
    return checkNames(fields, true, { location, columns });
  }
  // R1-Searcher lines may have stray quotes, so a line with invalid quoting is counted by its tabs.
  const found = fields ?? line.split('\t');
  if (found.length === 2 && /^\S*\d\S*$/.test(found[0]!)) return { type: 'first-tab', hasHeader: false };
  const count = `${found.length} tab-separated ${found.length === 1 ? 'field' : 'fields'}`;
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${formatLocation(location)}: the first line has ${count}, and is neither a header (such as id, text, title) nor an id and a text, so ` +
      'the columns are not known. Name them with --tsv-layout, in the order of the file: id,text,title (DPR), id,title,text or others. ' +
      'For an id, a tab and a text that may have tabs, set --tsv-layout r1-searcher; if the line is a header, --tsv-layout header.',
    { details: { ...location, fields: found.length } },
  );
}

/** Whether the first line names columns: one as an option does, or an id and a text or title, or a text and a title. */
function isHeader(fields: readonly string[], columns: ColumnNames): boolean {
  if (Object.values(columns).some((name: string) => fields.includes(name))) return true;
  return new Set(fields.map(roleOf).filter((role) => role !== undefined)).size > 1;
}

function checkNames(
  names: readonly string[],
  hasHeader: boolean,
  { location, columns }: { readonly location: PassageLocation; readonly columns: ColumnNames },
): ResolvedTsvLayout {
  const row = Object.fromEntries(names.map((name) => [name, name]));
  const found = columnsOfRow(row, columns);
  const repeated = names.find((name, position) => names.indexOf(name) !== position);
  const problem =
    repeated !== undefined
      ? `the column ${JSON.stringify(repeated)} is named twice`
      : names.includes('')
        ? 'a column has no name'
        : 'reason' in found
          ? found.reason
          : found.text === undefined
            ? `no column is known to be the text in ${columnNames(row)}; name it with --text-column`
            : null;
  if (problem === null) return { type: 'columns', names, hasHeader };
  throw new TrawlError(
    'CORPUS_FORMAT_UNKNOWN',
    `${formatLocation(location)}: ${problem}. ` +
      (hasHeader
        ? 'The first line is read as a header; if it is none, name the columns with --tsv-layout, such as id,text,title.'
        : 'Correct the names of --tsv-layout, such as id,text,title.'),
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
