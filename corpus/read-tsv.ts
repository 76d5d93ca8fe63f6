import { exactInteger } from '../src/index/passages/exact-numbers.ts';
import { checkRow, type ReadRow } from './check-row.ts';
import type { CorpusFormat, ReaderContext } from './corpus-format.ts';
import { type JsonValue, jsonText } from './json-text.ts';
import { readLines } from './read-lines.ts';
import { type ColumnNames, columnsOfRow } from './row-columns.ts';
import { type ResolvedTsvLayout, resolveTsvLayout, splitTsvLine } from './tsv-layout.ts';

/** Tab-separated text. Lines end as in Python's text mode; lines of only spaces are skipped. */
export const tsv = {
  name: 'tsv',
  extensions: ['.tsv'],
  content: 'tab-separated text',
  newline: 'universal',
  rows: readTsv,
} as const satisfies CorpusFormat;

const CANONICAL_INTEGER = /^(0|[1-9][0-9]*)$/;

/** Column order of a document; other columns follow in the order of the file. */
const LEADING_COLUMNS = ['id', 'title', 'text', 'contents'];

async function* readTsv(context: ReaderContext): AsyncGenerator<readonly ReadRow[], void> {
  const first = context.range?.first ?? 1;
  let parse: ((line: number, text: string) => ReadRow) | undefined;
  for await (const lines of readLines(context.path, {
    ...context,
    newline: tsv.newline,
    // The first line determines the columns, so it is read for every range.
    range: context.range && { first: 1, end: context.range.end },
  })) {
    const rows: ReadRow[] = [];
    for (const line of lines) {
      if (!line.ok) {
        if (line.number >= first) rows.push({ ok: false, line: line.number, reason: line.reason });
        continue;
      }
      if (/^ *$/.test(line.text)) continue;
      if (parse === undefined) {
        const location = { file: context.path, line: line.number };
        const resolved = resolveTsvLayout(context.tsvLayout, line.text, { location, columns: context.columns });
        parse = rowParser(resolved, context);
        if (resolved.hasHeader) continue;
      }
      if (line.number >= first) rows.push(parse(line.number, line.text));
    }
    yield rows;
  }
}

function rowParser(
  layout: ResolvedTsvLayout,
  { columns, tsvIdType }: Pick<ReaderContext, 'columns' | 'tsvIdType'>,
): (line: number, text: string) => ReadRow {
  if (layout.type === 'first-tab') {
    const idRule = tsvIdType === 'auto' ? 'integer-if-canonical' : tsvIdType;
    return (line, text) => parseFirstTab(line, text, idRule, columns);
  }
  const { names } = layout;
  const order = [
    ...LEADING_COLUMNS.filter((name) => names.includes(name)),
    ...names.filter((name) => !LEADING_COLUMNS.includes(name)),
  ].map((name) => [name, names.indexOf(name)] as const);
  // `resolveTsvLayout` has refused names that it cannot decide.
  const { id } = columnsOfRow(Object.fromEntries(names.map((name) => [name, name])), columns) as ColumnNames;
  return (line, text) =>
    parseColumns(line, text, { order, id, columns, idRule: tsvIdType === 'auto' ? 'string' : tsvIdType });
}

type IdRule = 'string' | 'integer' | 'integer-if-canonical';

function parseFirstTab(line: number, text: string, idRule: IdRule, columns: ColumnNames): ReadRow {
  const tab = text.indexOf('\t');
  if (tab === -1) return { ok: false, line, reason: 'expected an id, a tab and the contents, found no tab' };
  const id = parseId(text.slice(0, tab), idRule);
  if (!id.ok) return { ok: false, line, reason: id.reason };
  return toRow(line, { id: id.value, contents: text.slice(tab + 1) }, columns);
}

function parseColumns(
  line: number,
  text: string,
  {
    order,
    id,
    columns,
    idRule,
  }: {
    readonly order: readonly (readonly [name: string, position: number])[];
    readonly id: string | undefined;
    readonly columns: ColumnNames;
    readonly idRule: IdRule;
  },
): ReadRow {
  const split = splitTsvLine(text);
  if (!split.ok) return { ok: false, line, reason: split.reason };
  const { fields } = split;
  if (fields.length !== order.length) {
    const found = `expected ${order.length} tab-separated fields, found ${fields.length}`;
    return { ok: false, line, reason: `${found}; if the text may contain tabs, set --tsv-layout r1-searcher` };
  }
  const row: [string, JsonValue][] = [];
  for (const [name, position] of order) {
    const parsed = name === id ? parseId(fields[position]!, idRule) : ({ ok: true, value: fields[position]! } as const);
    if (!parsed.ok) return { ok: false, line, reason: parsed.reason };
    row.push([name, parsed.value]);
  }
  return toRow(line, Object.fromEntries(row), columns);
}

function toRow(line: number, row: Readonly<Record<string, JsonValue>>, columns: ColumnNames): ReadRow {
  return checkRow(line, row, jsonText(row), columns);
}

type ParsedId =
  | { readonly ok: true; readonly value: string | number | bigint }
  | { readonly ok: false; readonly reason: string };

function parseId(text: string, rule: IdRule): ParsedId {
  if (text === '') return { ok: false, reason: 'the id is empty' };
  if (rule === 'string') return { ok: true, value: text };
  const value = CANONICAL_INTEGER.test(text) ? exactInteger(text) : null;
  if (value !== null) return { ok: true, value };
  if (rule === 'integer-if-canonical') return { ok: true, value: text };
  return { ok: false, reason: 'the id is not a decimal integer without leading zeros; set --tsv-id-type string' };
}
