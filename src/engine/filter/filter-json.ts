import { TrawlError } from '../../base/errors.ts';
import { isObject } from '../../base/objects.ts';
import {
  BOUND_NAMES,
  COMPARISONS,
  type Comparison,
  type Filter,
  type FilterValue,
  MAX_FILTER_DEPTH,
  MAX_FILTER_NODES,
  MAX_FILTER_VALUES,
} from './filter.ts';
import { parseFilterExpression } from './filter-expression.ts';

/**
 * Reads a filter from JSON: an expression as text, or an object as `Filter` describes it.
 *
 * @throws TrawlError INVALID_REQUEST with the place of the first fault.
 */
export function filterOf(json: unknown): Filter {
  return typeof json === 'string' ? parseFilterExpression(json) : new JsonReader().read(json, 'filter', 1);
}

class JsonReader {
  #nodes = 0;

  read(json: unknown, place: string, depth: number): Filter {
    if (depth > MAX_FILTER_DEPTH) throw invalid(place, `it is nested more than ${MAX_FILTER_DEPTH} levels deep`);
    if (++this.#nodes > MAX_FILTER_NODES) throw invalid(place, `the filter has more than ${MAX_FILTER_NODES} parts`);
    if (!isObject(json)) {
      throw invalid(
        place,
        `found ${excerpt(json)}, expected an object such as {"column": "source", "op": "=", "value": "wiki"}`,
      );
    }
    const { column, op, ...rest } = json as Readonly<Record<string, unknown>>;
    const [name, ...more] = Object.keys(json);
    if (column === undefined && more.length === 0) {
      if (name === 'and') return { and: this.#list(rest.and, `${place}.and`, depth) };
      if (name === 'or') return { or: this.#list(rest.or, `${place}.or`, depth) };
      if (name === 'not') return { not: this.read(rest.not, `${place}.not`, depth + 1) };
    }
    if (column === undefined) {
      throw invalid(place, `it has ${listKeys(json)}; expected one of and, or and not, or column and op`);
    }
    if (typeof column !== 'string') throw invalid(`${place}.column`, `found ${excerpt(column)}, expected a name`);
    return test(column, op, rest, place);
  }

  #list(json: unknown, place: string, depth: number): readonly Filter[] {
    if (!Array.isArray(json) || json.length === 0) {
      throw invalid(place, `found ${excerpt(json)}, expected a list of at least one filter`);
    }
    return json.map((each, i) => this.read(each, `${place}[${i}]`, depth + 1));
  }
}

function test(column: string, op: unknown, rest: Readonly<Record<string, unknown>>, place: string): Filter {
  const only = (key: string | undefined): void => {
    const wrong = Object.keys(rest).find((name) => name !== key);
    if (wrong === undefined && (key === undefined || Object.hasOwn(rest, key))) return;
    const wanted = key === undefined ? 'column and op' : `column, op and ${key}`;
    throw invalid(place, `it has ${listKeys({ column, op, ...rest })}; the operator ${op} needs ${wanted}`);
  };
  if (op === 'exists') {
    only(undefined);
    return { column, op };
  }
  if (op === 'in') {
    only('values');
    return { column, op, values: valueList(rest.values, `${place}.values`) };
  }
  if (op === 'range') return range(column, rest, place);
  const comparison = COMPARISONS.find((known) => known === op);
  if (comparison === undefined) {
    throw invalid(
      `${place}.op`,
      `found ${excerpt(op)}, expected ${[...COMPARISONS, 'in', 'range', 'exists'].join(', ')}`,
    );
  }
  only('value');
  return { column, op: comparison satisfies Comparison, value: filterValue(rest.value, `${place}.value`) };
}

function range(column: string, rest: Readonly<Record<string, unknown>>, place: string): Filter {
  const names = BOUND_NAMES.filter((name) => Object.hasOwn(rest, name));
  const isTwice = (['gt', 'lt'] as const).some((name) => names.includes(name) && names.includes(`${name}e`));
  if (names.length === 0 || isTwice || Object.keys(rest).length > names.length) {
    const keys = listKeys({ column, op: 'range', ...rest });
    throw invalid(
      place,
      `it has ${keys}; the operator range needs column, op, gt or gte, and lt or lte, or one of them`,
    );
  }
  const bounds = names.map((name) => [name, filterValue(rest[name], `${place}.${name}`)]);
  return { column, op: 'range', ...Object.fromEntries(bounds) };
}

function valueList(json: unknown, place: string): readonly FilterValue[] {
  if (!Array.isArray(json)) throw invalid(place, `found ${excerpt(json)}, expected a list of values`);
  if (json.length > MAX_FILTER_VALUES) {
    throw invalid(place, `it has ${json.length} values; the limit is ${MAX_FILTER_VALUES}`);
  }
  return json.map((each, i) => filterValue(each, `${place}[${i}]`));
}

function filterValue(json: unknown, place: string): FilterValue {
  if (typeof json === 'string' || typeof json === 'boolean' || (typeof json === 'number' && Number.isFinite(json))) {
    return json;
  }
  throw invalid(place, `found ${excerpt(json)}, expected a string, a finite number, true or false`);
}

function listKeys(json: object): string {
  const keys = Object.keys(json).slice(0, 5);
  return keys.length === 0 ? 'no keys' : `the keys ${keys.map((key) => excerpt(key)).join(', ')}`;
}

const MAX_SHOWN = 60;

function excerpt(json: unknown): string {
  if (json === undefined) return 'nothing';
  if (Array.isArray(json)) return json.length === 0 ? 'an empty list' : 'a list';
  if (typeof json === 'object' && json !== null) return 'an object';
  const text = JSON.stringify(json) ?? String(json);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

function invalid(place: string, reason: string): TrawlError {
  return new TrawlError('INVALID_REQUEST', `${place}: ${reason}.`, { details: { place } });
}
