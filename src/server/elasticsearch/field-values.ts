import { columnValues } from '../../engine/columns/column-values.ts';
import type { Column } from '../../engine/filter/column.ts';
import { sourceOfRow } from '../../index/document-store/written-row.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { illegalArgument } from './elasticsearch-error.ts';
import { doubleText } from './java-numbers.ts';
import type { JsonBody, JsonNode } from './json-nodes.ts';
import { booleanOf, itemsOf, textOf } from './json-values.ts';
import { readParameters } from './query/clause.ts';
import { fitsPattern } from './query/dsl-query.ts';

/** A field of a hit's `fields`: a name or a pattern with `*`. */
export interface WantedField {
  readonly pattern: string;
  /** How dates are written. */
  readonly format: 'text' | 'epoch_millis';
}

const TEXT_FORMATS = ['strict_date_optional_time', 'date_optional_time', 'strict_date_time', 'date_time'];

/** `fields` of a body: `["title", {"field": "date", "format": "epoch_millis"}]`. */
export function wantedFieldsOf(body: JsonBody, node: JsonNode): readonly WantedField[] {
  return itemsOf(node).map((item): WantedField => {
    if (item.type !== 'object') return { pattern: textOf(body, item, '[fields]'), format: 'text' };
    let pattern: string | undefined;
    let format: WantedField['format'] = 'text';
    readParameters({ body, name: 'fields' }, item, {
      field: (value) => {
        pattern = textOf(body, value, '[field]');
      },
      format: (value) => {
        const name = textOf(body, value, '[format]');
        if (name !== 'epoch_millis' && !TEXT_FORMATS.includes(name)) {
          throw illegalArgument(
            `[format] of [fields] is [${name.slice(0, 100)}]; expected ${TEXT_FORMATS[0]} or epoch_millis`,
          );
        }
        format = name === 'epoch_millis' ? name : 'text';
      },
      include_unmapped: (value) => {
        if (booleanOf(body, value, '[include_unmapped]'))
          throw illegalArgument('[include_unmapped] is not supported by this server');
      },
    });
    if (pattern === undefined) throw body.fault(item, '[fields] entry has no [field]');
    return { pattern, format };
  });
}

/** The JSON text of a hit's `fields`; undefined if the passage has none of them. */
export function fieldsJson(
  document: string,
  { bm25, columns, integers }: Pick<RetrieverInfo, 'bm25' | 'columns'> & { readonly integers: ReadonlySet<string> },
  wanted: readonly WantedField[],
): string | undefined {
  const row: unknown = JSON.parse(sourceOfRow(document));
  const words = (bm25?.fields ?? []).map((name): Column => ({ name, type: 'string' }));
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
  for (const field of words) add(field.name, field);
  for (const column of columns) {
    const hasWords = words.some(({ name }) => name === column.name);
    if (!hasWords) add(column.name, column);
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
