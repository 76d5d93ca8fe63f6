import { asTrawlError, usageError } from '../../src/base/errors.ts';
import { bindFilter } from '../../src/engine/filter/bind-filter.ts';
import type { Filter } from '../../src/engine/filter/filter.ts';
import { parseFilterExpression } from '../../src/engine/filter/filter-expression.ts';
import type { RetrieverInfo } from '../../src/search/retriever-info.ts';
import * as option from './option.ts';

/** Which passages a search may find. */
export const FILTER_OPTION = option.text(
  'EXPRESSION',
  "Find only passages whose columns pass, such as \"source in ('a', 'b') and date >= 2020-01-01 and not archived\". The index needs the columns (--column). docs/filters.md has the language. Default: all passages.",
);

/** @throws TrawlError USAGE with the position of a fault. `name`: of the option, for messages. */
export function filterOption(text: string | undefined, name = '--filter'): Filter | undefined {
  return text === undefined ? undefined : asUsage(() => parseFilterExpression(text), name);
}

/** @throws TrawlError USAGE if the index does not have a column of the filter, or has it with another type. */
export function checkFilter(
  filter: Filter | undefined,
  { columns, index }: Pick<RetrieverInfo, 'columns' | 'index'>,
): void {
  if (filter !== undefined) asUsage(() => bindFilter(filter, columns, index), '--filter');
}

function asUsage<T>(read: () => T, name: string): T {
  try {
    return read();
  } catch (error) {
    const { code, message } = asTrawlError(error);
    if (code !== 'INVALID_REQUEST') throw error;
    throw usageError(`${name}: ${message}`, { cause: error });
  }
}
