import { type FileBytes, type FoundQuery, type ResultEncoder, rowOfHit } from './result-encoder.ts';

/**
 * One line a query: `{"id", "round_index"?, "hits": [{"index"?, "row", "id", "score", "firstStage"?}]}`, or for a query that failed
 * `{"id", "round_index"?, "error": {"code", "message"}}`.
 */
export class JsonlResults implements ResultEncoder {
  readonly needsIds = true;
  readonly pendingHits = 0;

  begin(): FileBytes {
    return [];
  }

  add(found: readonly FoundQuery[]): FileBytes {
    return [Buffer.from(found.map(lineOf).join(''))];
  }

  end(): FileBytes {
    return [];
  }

  state(): unknown {
    return null;
  }
}

function lineOf({ id, round, hits, ids, error }: FoundQuery): string {
  const query = round === undefined ? { id } : { id, round_index: round };
  if (error !== undefined) {
    const { code, message } = error;
    return `${JSON.stringify({ ...query, error: { code, message } })}\n`;
  }
  const written = hits.map((hit, i) => ({
    index: hit.source?.index,
    row: rowOfHit(hit),
    id: ids[i]!,
    score: hit.score,
    firstStage: hit.firstStage,
  }));
  return `${JSON.stringify({ ...query, hits: written })}\n`;
}
