import { TrawlError } from '../../base/errors.ts';
import type { FoundPassage } from '../../search/calls/lookup-calls.ts';
import type { PassageLookup } from '../../search/retriever.ts';
import { addTimings, NO_TIMINGS, type StageTimings } from '../../search/timings.ts';
import type { Lookup } from './document-lookup.ts';

export interface FoundPassages {
  /** For each list of look-ups the passages of the first that finds any, in row order; empty if none does. */
  readonly found: readonly (readonly FoundPassage[])[];
  readonly timings: StageTimings;
}

/**
 * Tries look-ups in their order. One that the index was built without counts as empty if another finds passages.
 *
 * @param limit passages per look-up.
 * @throws TrawlError NOT_SUPPORTED if nothing is found and a look-up by URL or title is missing.
 */
export async function findPassages(
  retriever: PassageLookup,
  wanted: readonly (readonly Lookup[])[],
  limit: number,
  signal: AbortSignal,
): Promise<FoundPassages> {
  const found = wanted.map((): readonly FoundPassage[] => []);
  let timings = NO_TIMINGS;
  let missing: TrawlError | undefined;
  for (let step = 0; wanted.some(({ length }) => step < length); step++) {
    const open = wanted.flatMap((lookups, i) => {
      const lookup = lookups[step];
      return lookup === undefined || found[i]!.length > 0 ? [] : [{ i, ...lookup }];
    });
    for (const by of new Set(open.map((each) => each.by))) {
      const asked = open.filter((each) => each.by === by).flatMap(({ i, keys }) => keys.map((key) => ({ i, key })));
      if (asked.length === 0) continue;
      const keys = asked.map(({ key }) => key);
      const result = await retriever.find({ by, keys, limit, signal }).catch(unsupported);
      if (result instanceof TrawlError) {
        // Only `trawl prepare` writes ids of documents, so an index without that look-up seldom needs it.
        if (by !== 'document') missing = result;
        continue;
      }
      for (const [at, { i }] of asked.entries()) if (found[i]!.length === 0) found[i] = result.found[at]!;
      timings = addTimings(timings, result.timings);
    }
  }
  if (missing !== undefined && found.some(({ length }) => length === 0)) throw missing;
  return { found, timings };
}

function unsupported(error: unknown): TrawlError {
  if (error instanceof TrawlError && error.code === 'NOT_SUPPORTED') return error;
  throw error;
}
