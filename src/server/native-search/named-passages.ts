import { Type } from 'typebox';
import type { FoundPassage, Retriever } from '../../search/retriever.ts';
import { addTimings, type StageTimings } from '../../search/timings.ts';
import { RequestError } from '../errors/request-error.ts';
import type { RequestLimits } from '../server-config.ts';

/** The parser of bodies rounds larger integers, so that they could name another passage. */
const PassageId = Type.Union([
  Type.String(),
  Type.Integer({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
]);

export const ExcludedIds = Type.Array(PassageId, {
  default: [],
  description: 'Ids of passages that are not searched. Integers beyond 2^53 as strings.',
});

export const PassageIds = Type.Array(PassageId, {
  default: [],
  description: 'Ids of passages. Integers beyond 2^53 as strings.',
});

export const PassageRows = Type.Array(Type.Integer({ minimum: 0 }), {
  default: [],
  description: 'Rows of passages in the index.',
});

/** Most passages that are looked up for an id that several passages share. */
export const MAX_SAME_ID = 100;

export interface NamedPassages {
  /** In the order of the ids, then of the rows; undefined for an unknown one. */
  readonly passages: readonly (FoundPassage | undefined)[];
  /** For each of `passages`: the further rows with the same id, if it was named by its id. */
  readonly sameId: readonly (readonly number[])[];
  readonly timings: StageTimings;
}

/** Looks passages up. Of several passages with an id, the one with the lowest row. `limit`: most passages of an id. */
export async function passagesNamed(
  retriever: Retriever,
  {
    ids,
    rows,
    limit = 1,
  }: { readonly ids: readonly (string | number)[]; readonly rows: readonly number[]; readonly limit?: number },
  signal: AbortSignal,
): Promise<NamedPassages> {
  const byId = await retriever.find({ by: 'id', keys: ids.map(String), limit, signal });
  const byRow = await retriever.find({ by: 'row', keys: rows.map(String), limit: 1, signal });
  const found = [...byId.found, ...byRow.found];
  return {
    passages: found.map(([passage]) => passage),
    sameId: found.map((each) => furtherRows(each)),
    timings: addTimings(byId.timings, byRow.timings),
  };
}

/** The rows of the passages after the first, as far as they are in its index. */
export function furtherRows([first, ...others]: readonly FoundPassage[]): readonly number[] {
  const sameIndex = others.filter(({ source }) => source?.index === first?.source?.index);
  return sameIndex.map(({ row, source }) => source?.row ?? row);
}

/** @throws RequestError K_TOO_LARGE. */
export function refuseTooManyPassages(count: number, { maxQueries }: RequestLimits): void {
  if (count <= maxQueries) return;
  const reason = `The request has ${count} ids and rows; the limit of this server is ${maxQueries}.`;
  throw new RequestError('K_TOO_LARGE', `${reason} Send them in several requests.`, [
    { type: 'too_long', loc: ['body', 'ids'], msg: reason },
  ]);
}
