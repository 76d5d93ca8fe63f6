import type { StoredValue } from '../../engine/filter/bind-filter.ts';
import type { Column } from '../../engine/filter/column.ts';
import type { OrderValue, TreeOrder } from '../../search/calls/tree-call.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { ElasticsearchError, illegalArgument, queryFailure, searchPhaseFailure } from './elasticsearch-error.ts';
import { doubleText, floatText } from './java-numbers.ts';
import type { JsonBody, JsonNode } from './json-nodes.ts';
import { itemsOf, textOf, tokenOf } from './json-values.ts';
import { readParameters } from './query/clause.ts';
import { parseDateMath } from './query/date-math.ts';
import { queriedField } from './query/queried-field.ts';

/** A criterion of `sort` as it was written. */
export interface SortCriterion {
  /** `_score`, `_doc`, or the name of a field. */
  readonly field: string;
  readonly descending: boolean;
  /** `_last`, `_first`, or a value. */
  readonly missing: string;
  readonly mode: 'min' | 'max' | undefined;
  /** The type of the field in indexes that do not have it; undefined: such an index is an error. */
  readonly unmappedType: string | undefined;
}

/** `sort` of a body. Undefined for `_score` alone, which is the default. */
export function sortOf(body: JsonBody, node: JsonNode): readonly SortCriterion[] | undefined {
  const criteria = itemsOf(node).flatMap((item): SortCriterion[] => {
    if (item.type === 'string') return [criterion(item.value)];
    if (item.type !== 'object')
      throw body.fault(item, `malformed sort format, expected a field, but found ${tokenOf(item)}`);
    return [...item.members].map(([field, value]) =>
      value.type === 'object'
        ? criterionOf(body, field, value)
        : criterion(field, textOf(body, value, `[${field.slice(0, 100)}]`)),
    );
  });
  return isDefault(criteria) ? undefined : criteria;
}

/** `sort` of a URL: `year:desc,_score`. */
export function sortFrom(text: string): readonly SortCriterion[] | undefined {
  const criteria = text.split(',').map((part) => {
    const colon = part.lastIndexOf(':');
    return colon < 1 ? criterion(part) : criterion(part.slice(0, colon), part.slice(colon + 1));
  });
  return isDefault(criteria) ? undefined : criteria;
}

function isDefault(criteria: readonly SortCriterion[]): boolean {
  const [first, ...more] = criteria;
  return first === undefined || (more.length === 0 && first.field === '_score' && first.descending);
}

function criterion(field: string, order?: string): SortCriterion {
  const descending = order === undefined ? field === '_score' : isDescending(order);
  return { field, descending, missing: '_last', mode: undefined, unmappedType: undefined };
}

function isDescending(order: string): boolean {
  const name = order.toLowerCase();
  if (name === 'asc' || name === 'desc') return name === 'desc';
  throw illegalArgument(`Unknown SortOrder [${order.slice(0, 100)}]`);
}

function criterionOf(body: JsonBody, field: string, node: Extract<JsonNode, { type: 'object' }>): SortCriterion {
  let order: string | undefined;
  let missing = '_last';
  let mode: SortCriterion['mode'];
  let unmappedType: string | undefined;
  const readers = {
    order: (value: JsonNode): void => {
      order = textOf(body, value, '[order]');
      if (!/^(?:asc|desc)$/i.test(order)) throw unknownOrder(body, value, order);
    },
    missing: (value: JsonNode): void => {
      missing = textOf(body, value, '[missing]');
    },
    mode: (value: JsonNode): void => {
      const name = textOf(body, value, '[mode]').toLowerCase();
      if (name !== 'min' && name !== 'max')
        throw illegalArgument(`[sort] [mode] is [${name.slice(0, 100)}]; expected min or max`);
      mode = name;
    },
    unmapped_type: (value: JsonNode): void => {
      unmappedType = textOf(body, value, '[unmapped_type]');
    },
  };
  const isSpecial = field === '_score' || field === '_doc';
  readParameters({ body, name: 'sort' }, node, isSpecial ? { order: readers.order } : readers);
  return { ...criterion(field, order), missing, mode, unmappedType };
}

function unknownOrder(body: JsonBody, node: JsonNode, order: string): ElasticsearchError {
  const { line, col } = body.locate(node.at);
  return new ElasticsearchError(400, {
    type: 'x_content_parse_exception',
    reason: `[${line}:${col}] [field_sort] failed to parse field [order]`,
    caused_by: { type: 'illegal_argument_exception', reason: `Unknown SortOrder [${order.slice(0, 100)}]` },
  });
}

/** How one index orders its hits. @throws ElasticsearchError for a field that it cannot sort by. */
export function treeOrder(criteria: readonly SortCriterion[], info: RetrieverInfo): readonly TreeOrder[] {
  return criteria.map(({ field, descending, missing, mode, unmappedType }): TreeOrder => {
    if (field === '_score' || field === '_doc') return { by: field === '_score' ? 'score' : 'row', descending };
    const column = sortColumn(field, info);
    if (column === undefined) {
      if (unmappedType === undefined)
        throw queryFailureOf(info, `No mapping found for [${field.slice(0, 100)}] in order to sort on`);
      return { by: 'nothing', descending };
    }
    const which = mode === undefined ? {} : { which: mode === 'min' ? ('least' as const) : ('most' as const) };
    return { by: { column: column.name }, descending, missing: missingOf(missing, column, info), ...which };
  });
}

function sortColumn(name: string, info: RetrieverInfo): Column | undefined {
  const field = queriedField(name, info);
  if (field?.kind === 'column') return field.column;
  if (field === undefined) return undefined;
  const own = field.kind === 'text' && info.columns.some((column) => column.name === name);
  throw searchPhaseFailure({
    type: 'illegal_argument_exception',
    reason: own
      ? `[${name}] has words, which cannot be sorted. Sort by its column, [${name}.keyword].`
      : `Fielddata is disabled on [${name}] in [${info.index}], so it cannot be sorted. Sort by a column: trawl optimize INDEX --column NAME:TYPE.`,
  });
}

function missingOf(text: string, column: Column, info: RetrieverInfo): NonNullable<TreeOrder['missing']> {
  if (text === '_last' || text === '_first') return text === '_last' ? 'last' : 'first';
  const value = storedValue(text, column);
  if (value === null)
    throw queryFailureOf(info, `[missing] of [${column.name}] is [${text.slice(0, 100)}], which is no ${column.type}`);
  return { value };
}

/** A value as columns store it; null for a text that is none. */
function storedValue(text: string, { type }: Column): StoredValue | null {
  if (type === 'string') return text;
  if (type === 'boolean') return text === 'true' ? 1 : text === 'false' ? 0 : numberOrNull(text);
  if (type === 'number') return numberOrNull(text);
  const formats = ['epoch_millis', 'date'] as const;
  return parseDateMath(text, { now: Date.now(), roundUp: false, formats }) ?? null;
}

function numberOrNull(text: string): number | null {
  return text.trim() === '' || !Number.isFinite(Number(text)) ? null : Number(text);
}

/** Elasticsearch's values of rows without a date or a boolean: the largest and the smallest long. */
const LONG = /^-?922337203685477\d{4}$/;

/** The values of `search_after` in one index, one for each criterion. */
export function orderValuesAfter(
  body: readonly (string | null)[],
  criteria: readonly SortCriterion[],
  info: RetrieverInfo,
): readonly OrderValue[] {
  return criteria.map(({ field }, i): OrderValue => {
    const text = body[i] ?? null;
    if (text === null) return null;
    if (field === '_score') return Math.fround(Number(wanted(numberOrNull(text), field, text)));
    if (field === '_doc') return wanted(numberOrNull(text), field, text);
    const column = sortColumn(field, info);
    if (column === undefined || (column.type !== 'string' && (LONG.test(text) || /^-?Infinity$/.test(text))))
      return null;
    return wanted(storedValue(text, column), field, text);
  });
}

function wanted(value: StoredValue | null, field: string, text: string): StoredValue {
  if (value !== null) return value;
  throw illegalArgument(`Failed to parse search_after value for field [${field}]: [${text.slice(0, 100)}]`);
}

/** The JSON text of the values that a hit was sorted by. */
export function sortValuesJson(
  values: readonly OrderValue[],
  criteria: readonly SortCriterion[],
  info: RetrieverInfo & { readonly integers: ReadonlySet<string> },
): string {
  const texts = criteria.map(({ field, descending, missing, unmappedType }, i) => {
    const value = values[i] ?? null;
    if (field === '_doc') return String(value);
    if (field === '_score') return floatText(Number(value));
    const column = sortColumn(field, info);
    const hasFractions = column === undefined || !info.integers.has(column.name);
    const type = column?.type ?? COLUMN_TYPES_OF.get(unmappedType ?? '') ?? 'date';
    if (value !== null) return type === 'number' && hasFractions ? doubleText(Number(value)) : JSON.stringify(value);
    // A row without a value stands at an end of the order.
    const isLargest = descending === (missing === '_first');
    if (type === 'string') return 'null';
    if (type === 'number' && hasFractions) return isLargest ? '"Infinity"' : '"-Infinity"';
    return isLargest ? '9223372036854775807' : '-9223372036854775808';
  });
  return `[${texts.join(',')}]`;
}

/** The types of columns whose rows without a value have the same sort value as those of a type of Elasticsearch. */
const COLUMN_TYPES_OF: ReadonlyMap<string, Column['type']> = new Map([
  ['keyword', 'string'],
  ['double', 'number'],
  ['float', 'number'],
]);

function queryFailureOf({ index }: RetrieverInfo, why: string): Error {
  return queryFailure(index, why);
}
