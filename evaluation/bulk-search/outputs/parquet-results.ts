import {
  encodedTexts,
  ParquetGroups,
  type ParquetGroupsState,
  type ParquetSchema,
} from '../../../indexer/export/parquet-groups.ts';
import { type FileBytes, type FoundQuery, type OutputShape, type ResultEncoder, rowOfHit } from './result-encoder.ts';

/** Hits of a row group, or up to one batch more. A row group is held in memory, and its facts until the end of the file. */
const GROUP_HITS = 2 ** 17;

/** Page indexes would not survive in the state. */
const COLUMN = { offsetIndex: false } as const;
/** Rows, ids and scores hardly become smaller by a dictionary or compression. */
const PLAIN = { ...COLUMN, encoding: 'PLAIN', codec: 'UNCOMPRESSED' } as const;

interface PendingQuery {
  readonly id: string;
  readonly round: number | null;
  readonly rows: readonly number[];
  readonly ids: readonly string[];
  readonly scores: readonly number[];
  /** In a group, the index of each hit. */
  readonly indexes?: readonly string[];
}

interface ParquetState {
  readonly groups: ParquetGroupsState;
  readonly pending: readonly PendingQuery[];
}

/**
 * A Parquet file with a row for each hit: `query_id` (string), `round_index` (int32; if any query has one), `rank` (int32, from 1),
 * `index` (string; for a group of indexes), `row` (int64), `id` (string) and `score` (float32). A query without hits has no rows.
 */
export class ParquetResults implements ResultEncoder {
  readonly needsIds = true;
  readonly #shape: OutputShape;
  readonly #groups: ParquetGroups;
  #pending: PendingQuery[];
  #pendingHits: number;

  constructor(shape: OutputShape, state: unknown) {
    this.#shape = shape;
    const resumed = state as ParquetState | undefined;
    this.#groups = new ParquetGroups(schemaOf(shape), resumed?.groups);
    this.#pending = [...(resumed?.pending ?? [])];
    this.#pendingHits = this.#pending.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  get pendingHits(): number {
    return this.#pendingHits;
  }

  begin(): FileBytes {
    return [this.#groups.begin()];
  }

  add(found: readonly FoundQuery[]): FileBytes {
    for (const { id, round, hits, ids } of found) {
      if (hits.length === 0) continue;
      this.#pending.push({
        id,
        round: round ?? null,
        rows: hits.map(rowOfHit),
        ids,
        scores: hits.map(({ score }) => score),
        ...(this.#shape.isGroup && { indexes: hits.map(({ source }) => source!.index) }),
      });
      this.#pendingHits += hits.length;
    }
    return this.#pendingHits >= GROUP_HITS ? [this.#writeGroup()] : [];
  }

  end(): FileBytes {
    const last = this.#pendingHits > 0 ? this.#writeGroup() : new Uint8Array(0);
    return [Buffer.concat([last, this.#groups.end()])];
  }

  state(): ParquetState {
    return { groups: this.#groups.state(), pending: this.#pending };
  }

  #writeGroup(): Uint8Array {
    const pending = this.#pending;
    const each = <T>(pick: (query: PendingQuery) => T): T[] =>
      pending.flatMap((query) => new Array<T>(query.rows.length).fill(pick(query)));
    const { hasRounds, isGroup } = this.#shape;
    const hits = this.#pendingHits;
    const [ranks, rows, scores] = [new Int32Array(hits), new BigInt64Array(hits), new Float32Array(hits)];
    const ids: string[] = [];
    let at = 0;
    for (const query of pending) {
      for (const [i, row] of query.rows.entries()) {
        ranks[at] = i + 1;
        rows[at] = BigInt(row);
        scores[at] = query.scores[i]!;
        ids.push(query.ids[i]!);
        at++;
      }
    }
    const bytes = this.#groups.write(hits, [
      { name: 'query_id', data: each(({ id }) => id), ...COLUMN },
      ...(hasRounds ? [{ name: 'round_index', data: each(({ round }) => round), ...COLUMN }] : []),
      { name: 'rank', data: ranks, ...COLUMN },
      ...(isGroup ? [{ name: 'index', data: pending.flatMap(({ indexes }) => indexes!), ...COLUMN }] : []),
      { name: 'row', data: rows, ...PLAIN },
      { name: 'id', data: encodedTexts(ids), ...PLAIN },
      { name: 'score', data: scores, ...PLAIN },
    ]);
    this.#pending = [];
    this.#pendingHits = 0;
    return bytes;
  }
}

function schemaOf({ hasRounds, isGroup }: OutputShape): ParquetSchema {
  const required = { repetition_type: 'REQUIRED' } as const;
  const text = { type: 'BYTE_ARRAY', converted_type: 'UTF8', ...required } as const;
  return [
    { name: 'query_id', ...text },
    ...(hasRounds ? [{ name: 'round_index', type: 'INT32', repetition_type: 'OPTIONAL' } as const] : []),
    { name: 'rank', type: 'INT32', ...required },
    ...(isGroup ? [{ name: 'index', ...text }] : []),
    { name: 'row', type: 'INT64', ...required },
    { name: 'id', ...text },
    { name: 'score', type: 'FLOAT', ...required },
  ];
}
