import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import type { Filter } from '../../engine/filter/filter.ts';
import { filterOf } from '../../engine/filter/filter-json.ts';
import { RequestError } from '../errors/request-error.ts';

/**
 * The field `filter` of a request, without the depth of its JSON form, which JSON Schema could only say with references. `filterOf`
 * checks it.
 */
export const FilterField = Type.Unsafe<string | Filter>({
  oneOf: [{ type: 'string' }, { type: 'object', additionalProperties: true }],
  examples: ["source in ('news', 'wiki') and date >= 2020-01-01"],
});

/** @throws RequestError INVALID_REQUEST with the place of the fault. */
export function requestFilter(json: string | Filter | null): Filter | undefined {
  if (json === null) return undefined;
  try {
    return filterOf(json);
  } catch (error) {
    if (!(error instanceof TrawlError)) throw error;
    const message = `body.filter: ${error.message}`;
    throw new RequestError('INVALID_REQUEST', message, [
      { type: 'value_error', loc: ['body', 'filter'], msg: error.message },
    ]);
  }
}
