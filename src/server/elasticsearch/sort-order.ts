import type { Column, StoredValue } from '../../engine/filter/column.ts';
import type { OrderValue, TreeOrder } from '../../search/calls/tree-call.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { contentException, illegalArgument, queryFailure, searchPhaseFailure } from './elasticsearch-error.ts';
import { doubleText, floatText } from './java-numbers.ts';
import type { JsonNode } from './json-node.ts';
import { readParameters, readText } from './query/clause.ts';
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
export function readSort(node: JsonNode): readonly SortCriterion[] | undefined {
  const criteria = node.items.flatMap((item): SortCriterion[] => {
    if (typeof item.value === 'string') return [criterion(item.value)];
    if (item.members === undefined)
      throw item.fault(`malformed sort format, expected a field, but found ${item.token}`);
    return [...item.members].map(([field, value]) =>
      value.members === undefined
        ? criterion(field, value.text(`[${field.slice(0, 100)}]`))
        : readCriterion(field, value),
    );
  });
  return isDefault(criteria) ? undefined : criteria;
}

/** `sort` of a URL: `year:desc,_score`. */
export function parseSort(text: string): readonly SortCriterion[] | undefined {
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

/** @param order `asc` or `desc`; undefined: scores descend, and other values ascend. */
function criterion(field: string, order?: string): SortCriterion {
  const name = (order ?? (field === '_score' ? 'desc' : 'asc')).toLowerCase();
  if (order !== undefined && name !== 'asc' && name !== 'desc')
    throw illegalArgument(`Unknown SortOrder [${order.slice(0, 100)}]`);
  return {
    field: field === '_shard_doc' ? '_doc' : field,
    descending: name === 'desc',
    missing: '_last',
    mode: undefined,
    unmappedType: undefined,
  };
}

const READERS = {
  order(node: JsonNode, what: string): string {
    const order = node.text(what);
    if (/^(?:asc|desc)$/i.test(order)) return order;
    throw contentException(node.location, '[field_sort] failed to parse field [order]', {
      caused_by: { type: 'illegal_argument_exception', reason: `Unknown SortOrder [${order.slice(0, 100)}]` },
    });
  },
  missing: readText,
  mode(node: JsonNode, what: string): 'min' | 'max' {
    const mode = node.text(what).toLowerCase();
    if (mode === 'min' || mode === 'max') return mode;
    throw illegalArgument(`[sort] [mode] is [${mode.slice(0, 100)}]; expected min or max`);
  },
  unmapped_type: readText,
};

function readCriterion(field: string, node: JsonNode): SortCriterion {
  const isSpecial = field === '_score' || field === '_doc' || field === '_shard_doc';
  const readers: Partial<typeof READERS> = isSpecial ? { order: READERS.order } : READERS;
  const { order, missing = '_last', mode, unmapped_type: unmappedType } = readParameters('sort', node, readers);
  return { ...criterion(field, order), missing, mode, unmappedType };
}

const BY_ROW: SortCriterion = criterion('_doc');

/** The criteria and then the row, so that no two hits of an index are equal. */
export function unambiguous(criteria: readonly SortCriterion[] | undefined): readonly SortCriterion[] {
  const given = criteria ?? [criterion('_score')];
  return given.some(({ field }) => field === '_doc') ? given : [...given, BY_ROW];
}

/** A sort value of a hit as `search_after` has it. */
export function textOfOrderValue(value: OrderValue): string | null {
  return value === null ? null : String(value);
}

/** How one index orders its hits. @throws ElasticsearchError for a field that it cannot sort by. */
export function treeOrder(criteria: readonly SortCriterion[], info: RetrieverInfo): readonly TreeOrder[] {
  return criteria.map(({ field, descending, missing, mode, unmappedType }): TreeOrder => {
    if (field === '_score' || field === '_doc') return { by: field === '_score' ? 'score' : 'row', descending };
    const column = sortColumn(field, info);
    if (column === undefined) {
      if (unmappedType !== undefined) return { by: 'nothing', descending };
      throw queryFailure(info.index, `No mapping found for [${field.slice(0, 100)}] in order to sort on`);
    }
    const which = mode && (mode === 'min' ? 'least' : 'most');
    return { by: { column: column.name }, descending, missing: missingValue(missing, column, info), which };
  });
}

function sortColumn(name: string, info: RetrieverInfo): Column | undefined {
  const field = queriedField(name, info);
  if (field === undefined || field.kind === 'column') return field?.column;
  const isColumn = field.kind === 'text' && info.columns.some((column) => column.name === name);
  throw searchPhaseFailure({
    type: 'illegal_argument_exception',
    reason: isColumn
      ? `[${name}] has words, which cannot be sorted. Sort by its column, [${name}.keyword].`
      : `Fielddata is disabled on [${name}] in [${info.index}], so it cannot be sorted. Sort by a column: trawl optimize INDEX --column NAME:TYPE.`,
  });
}

function missingValue(text: string, column: Column, { index }: RetrieverInfo): NonNullable<TreeOrder['missing']> {
  if (text === '_last' || text === '_first') return text === '_last' ? 'last' : 'first';
  const value = storedValue(text, column);
  if (value !== undefined) return { value };
  throw queryFailure(index, `[missing] of [${column.name}] is [${text.slice(0, 100)}], which is not a ${column.type}`);
}

/** A value as columns store it; undefined for a text that has none. */
function storedValue(text: string, { type }: Column): StoredValue | undefined {
  if (type === 'string') return text;
  if (type === 'boolean' && /^(?:true|false|[01])$/.test(text)) return Number(text === 'true' || text === '1');
  if (type !== 'date') return finiteNumber(text);
  return parseDateMath(text, { now: Date.now(), roundUp: false, formats: ['epoch_millis', 'date'] });
}

function finiteNumber(text: string): number | undefined {
  return text.trim() === '' || !Number.isFinite(Number(text)) ? undefined : Number(text);
}

/** Elasticsearch's values of rows without a date or a boolean: the largest and the smallest long. */
const LONG = /^-?922337203685477\d{4}$/;

/** The values of `search_after` in one index, one for each criterion. */
export function orderValuesAfter(
  after: readonly (string | null)[],
  criteria: readonly SortCriterion[],
  info: RetrieverInfo,
): readonly OrderValue[] {
  return criteria.map(({ field }, i): OrderValue => {
    const text = after[i] ?? null;
    const value = text === null ? null : valueAfter(text, field, info);
    if (value !== undefined) return value;
    throw illegalArgument(`Failed to parse search_after value for field [${field}]: [${text?.slice(0, 100)}]`);
  });
}

/** Undefined for a text that is not a value of the field. */
function valueAfter(text: string, field: string, info: RetrieverInfo): OrderValue | undefined {
  const number = finiteNumber(text);
  if (field === '_doc') return number;
  if (field === '_score') return number && Math.fround(number);
  const column = sortColumn(field, info);
  const isMissing = column?.type !== 'string' && (LONG.test(text) || /^-?Infinity$/.test(text));
  return column === undefined || isMissing ? null : storedValue(text, column);
}

/** For Elasticsearch's types: the type of column whose rows without a value have the same sort value. Others are like dates. */
const COLUMN_TYPES: ReadonlyMap<string, Column['type']> = new Map([
  ['keyword', 'string'],
  ['double', 'number'],
  ['float', 'number'],
]);

/**
 * The JSON text of the values that a hit was sorted by.
 *
 * @param integers the columns whose numbers have no fraction.
 */
export function sortValuesJson(
  values: readonly OrderValue[],
  criteria: readonly SortCriterion[],
  info: RetrieverInfo,
  integers: ReadonlySet<string>,
): string {
  const texts = criteria.map(({ field, descending, missing, unmappedType }, i) => {
    const value = values[i] ?? null;
    if (field === '_doc') return String(value);
    if (field === '_score') return floatText(Number(value));
    const column = sortColumn(field, info);
    const type = column?.type ?? COLUMN_TYPES.get(unmappedType ?? '') ?? 'date';
    const hasFraction = type === 'number' && !(column !== undefined && integers.has(column.name));
    if (value !== null) return hasFraction ? doubleText(Number(value)) : JSON.stringify(value);
    // A row without a value stands at an end of the order.
    const isLargest = descending === (missing === '_first');
    if (type === 'string') return 'null';
    if (hasFraction) return isLargest ? '"Infinity"' : '"-Infinity"';
    return isLargest ? '9223372036854775807' : '-9223372036854775808';
  });
  return `[${texts.join(',')}]`;
}
