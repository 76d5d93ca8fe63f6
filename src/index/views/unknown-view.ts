import { TrawlError } from '../../base/errors.ts';

/** The error for a view that an index does not have. */
export function unknownView(name: string, index: string, known: readonly string[]): TrawlError {
  const has = known.length === 0 ? 'no views' : known.slice(0, 20).join(', ');
  return new TrawlError(
    'NOT_FOUND',
    `The index ${index} has no view ${JSON.stringify(name.slice(0, 100))}; it has ${has}.`,
    { details: { param: 'view' } },
  );
}
