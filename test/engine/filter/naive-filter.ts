import type { Column } from '../../../src/engine/filter/column.ts';
import type { Comparison, Filter, FilterValue } from '../../../src/engine/filter/filter.ts';

type Scalar = string | number | boolean;

/** Whether a corpus row passes a filter: the definition of docs/filters.md, without columns that are stored. */
export function passes(filter: Filter, row: object, columns: readonly Column[]): boolean {
  if ('and' in filter) return filter.and.every((each) => passes(each, row, columns));
  if ('or' in filter) return filter.or.some((each) => passes(each, row, columns));
  if ('not' in filter) return !passes(filter.not, row, columns);
  const { type } = columns.find(({ name }) => name === filter.column)!;
  const comparable = (value: FilterValue): Scalar => (type === 'date' ? Date.parse(String(value)) : value);
  const values = valuesOf(row, filter.column).map(comparable);
  const some = (test: (value: Scalar) => boolean): boolean => values.some(test);
  switch (filter.op) {
    case 'exists':
      return values.length > 0;
    case 'in': {
      const wanted = filter.values.map(comparable);
      return some((value) => wanted.includes(value));
    }
    case '=':
      return some((value) => value === comparable(filter.value));
    case '!=':
      return !some((value) => value === comparable(filter.value));
    case 'range': {
      const { gt, gte, lt, lte } = filter;
      const within = (value: Scalar, op: Comparison, bound: FilterValue | undefined): boolean =>
        bound === undefined || isOrdered(compare(value, comparable(bound)), op);
      return some(
        (value) =>
          within(value, '>', gt) && within(value, '>=', gte) && within(value, '<', lt) && within(value, '<=', lte),
      );
    }
    default: {
      const wanted = comparable(filter.value);
      return some((value) => isOrdered(compare(value, wanted), filter.op));
    }
  }
}

/** The values of a column; arrays, also on the path, have several. */
function valuesOf(value: unknown, path: string): Scalar[] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((each) => valuesOf(each, path));
  if (path === '') return [value as Scalar];
  if (typeof value !== 'object') return [];
  const row = value as Readonly<Record<string, unknown>>;
  if (Object.hasOwn(row, path)) return valuesOf(row[path], '');
  const [key = '', ...rest] = path.split('.');
  return rest.length === 0 || !Object.hasOwn(row, key) ? [] : valuesOf(row[key], rest.join('.'));
}

function compare(a: Scalar, b: Scalar): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)));
}

function isOrdered(order: number, op: Comparison): boolean {
  return order === 0 ? op === '<=' || op === '>=' : order < 0 ? op.startsWith('<') : op.startsWith('>');
}
