import { columnValues } from '../../engine/columns/column-values.ts';
import type { Column } from '../../engine/filter/column.ts';
import { sourceOfRow } from '../../index/document-store/written-row.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { illegalArgument } from './elasticsearch-error.ts';
import { doubleText } from './java-numbers.ts';
import type { JsonNode } from './json-node.ts';
import { readParameters, readText } from './query/clause.ts';
import { fitsPattern } from './query/dsl-query.ts';

/** A field of a hit's `fields`: a name or a pattern with `*`. */
export interface WantedField {
  readonly pattern: string;
  /** How dates are written. */
  readonly format: 'text' | 'epoch_millis';
}

const TEXT_FORMATS = ['strict_date_optional_time', 'date_optional_time', 'strict_date_time', 'date_time'];

/** `fields` of a body: `["title", {"field": "date", "format": "epoch_millis"}]`. */
export function readWantedFields(node: JsonNode): readonly WantedField[] {
  return node.items.map((item): WantedField => {
    if (item.members === undefined) return { pattern: item.text('[fields]'), format: 'text' };
    const { field: pattern, format = 'text' } = readParameters('fields', item, {
      field: readText,
      format: readFormat,
      include_unmapped(value, what) {
        if (value.boolean(what)) throw illegalArgument('[include_unmapped] is not supported by this server');
      },
    });
    if (pattern === undefined) throw item.fault('[fields] entry has no [field]');
    return { pattern, format };
  });
}

function readFormat(node: JsonNode, what: string): WantedField['format'] {
  const name = node.text(what);
  if (name === 'epoch_millis') return name;
  if (TEXT_FORMATS.includes(name)) return 'text';
  throw illegalArgument(`[format] of [fields] is [${name.slice(0, 100)}]; expected ${TEXT_FORMATS[0]} or epoch_millis`);
}

/**
 * The JSON text of a hit's `fields`; undefined if the passage has none of them.
 *
 * @param integers the columns whose numbers have no fraction.
 */
export function fieldsJson(
  document: string,
  { bm25, columns }: RetrieverInfo,
  integers: ReadonlySet<string>,
  wanted: readonly WantedField[],
): string | undefined {
  const row: unknown = JSON.parse(sourceOfRow(document));
  const words: readonly string[] = bm25?.fields ?? [];
  const parts: string[] = [];
  const add = (name: string, column: Column): void => {
    const format = wanted.find(({ pattern }) => fitsPattern(pattern, name))?.format;
    if (format === undefined) return;
    const values = columnValues(row, column);
    if ('wrong' in values || values.length === 0) return;
    const isInteger = integers.has(column.name);
    const texts = values.map((value) => (isInteger ? String(value) : valueJson(value, column.type, format)));
    parts.push(`${JSON.stringify(name)}:[${texts.join(',')}]`);
  };
  for (const name of words) add(name, { name, type: 'string' });
  for (const column of columns) {
    if (!words.includes(column.name)) add(column.name, column);
    if (column.type === 'string') add(`${column.name}.keyword`, column);
  }
  return parts.length === 0 ? undefined : `{${parts.join(',')}}`;
}

function valueJson(value: string | number, type: Column['type'], format: WantedField['format']): string {
  if (type === 'boolean') return String(value === 1);
  if (type === 'number') return doubleText(Number(value));
  if (type !== 'date') return JSON.stringify(value);
  return JSON.stringify(format === 'text' ? new Date(Number(value)).toISOString() : String(value));
}
