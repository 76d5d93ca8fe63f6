import { Type } from 'typebox';
import type { FoundPassage } from '../../retrieval/calls/find-call.ts';
import type { Retriever } from '../../retrieval/retriever.ts';
import { addTimings, type StageTimings } from '../../retrieval/timings.ts';
import type { RequestLimits } from '../dialects/dialect.ts';
import { RequestError } from '../errors/request-error.ts';

export const PassageIds = Type.Array(Type.Union([Type.String(), Type.Integer()]), {
  default: [],
  description: 'Ids of passages. Integers beyond 2^53 as strings.',
});

export const PassageRows = Type.Array(Type.Integer({ minimum: 0 }), {
  default: [],
  description: 'Rows of passages in the index.',
});

export interface NamedPassages {
  /** In the order of the ids, then of the rows; undefined for an unknown one. */
  readonly passages: readonly (FoundPassage | undefined)[];
  readonly timings: StageTimings;
}

/** Looks passages up. Of several passages with an id, the one with the lowest row. */
export async function passagesNamed(
  retriever: Retriever,
  { ids, rows }: { readonly ids: readonly (string | number)[]; readonly rows: readonly number[] },
  signal: AbortSignal,
): Promise<NamedPassages> {
  const byId = await retriever.find({ by: 'id', keys: ids.map(String), limit: 1, signal });
  const byRow = await retriever.find({ by: 'row', keys: rows.map(String), limit: 1, signal });
  return {
    passages: [...byId.found, ...byRow.found].map(([passage]) => passage),
    timings: addTimings(byId.timings, byRow.timings),
  };
}

/** @throws RequestError K_TOO_LARGE. */
export function refuseTooManyPassages(count: number, { maxQueries }: RequestLimits): void {
  if (count <= maxQueries) return;
  const reason = `The request has ${count} ids and rows; the limit of this server is ${maxQueries}.`;
  throw new RequestError('K_TOO_LARGE', `${reason} Send them in several requests.`, [
    { type: 'too_long', loc: ['body', 'ids'], msg: reason },
  ]);
}
