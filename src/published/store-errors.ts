import { TrawlError } from '../errors.ts';

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
