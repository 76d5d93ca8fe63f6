import { TrawlError } from '../../base/errors.ts';

export function foreignRow(store: string, row: number): TrawlError {
  return new TrawlError(
    'STORE_DIFFERS',
    `${store} returned row ${row}, which is not among the published rows that were asked for: what was published was written to ` +
      'since. Publish the index again, under another name.',
    { details: { row } },
  );
}

export function incomplete(store: string, got: number, expected: number): TrawlError {
  return new TrawlError(
    'STORE_FAILED',
    `${store} returned ${got} candidates of ${expected}: the answer would be incomplete. Some of its data may not be ` +
      'available at the moment; `trawl doctor` with the address says more.',
    { details: { got, expected } },
  );
}

/** Too few rows may be data that is not loaded yet, as after a restart; too many cannot be. */
export function foreignFilter(store: string, found: number, expected: number): TrawlError {
  const what = `${store} lets ${found} rows pass a filter that ${expected} of the published rows pass`;
  const details = { found, expected };
  if (found < expected) {
    const advice =
      'Some of its data may not be available at the moment; if it stays so, publish the index again, under another name.';
    return new TrawlError('STORE_FAILED', `${what}: the answer would be incomplete. ${advice}`, { details });
  }
  return new TrawlError(
    'STORE_DIFFERS',
    `${what}: what was published was written to since (publish the index again, under another name), or two texts of the filter have ` +
      'one hash (leave the filter out).',
    { details },
  );
}

export function tooManySearches(store: string, most: number): TrawlError {
  return new TrawlError(
    'NOT_SUPPORTED',
    `A query needs more than ${most} searches in ${store}: millions of rows have nearly equal scores, or the filter passes millions ` +
      'of rows far from the query. Narrow the filter, or serve the index from a folder.',
  );
}
