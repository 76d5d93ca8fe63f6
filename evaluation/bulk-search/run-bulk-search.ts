import { TrawlError } from '../../src/base/errors.ts';
import { inOrder } from '../../src/base/in-order.ts';
import type { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { failedAt, isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { Hit, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import type { HitIds } from './hit-ids.ts';
import { OutputStream } from './output-stream.ts';
import type { FoundQuery, ResultEncoder } from './outputs/result-encoder.ts';
import type { BulkQuery, QuerySource } from './query-source.ts';

/** Batches that are embedded, searched or written at a time: while one is searched, the next ones are embedded. */
const BATCHES_AT_ONCE = 4;
/** Factor of the time between two saves if hits wait for the rest of a row group, which a save then writes too. */
const PENDING_FACTOR = 6;
/** Largest share of the time that saving may take. */
const SAVE_SHARE = 0.02;

export interface BulkSearch {
  readonly source: QuerySource;
  /** The part of the queries that is searched. */
  readonly range: { readonly first: number; readonly end: number };
  readonly batchQueries: number;
  /** Searches for a batch; one outcome per query. */
  readonly search: (queries: readonly RetrieveQuery[], signal: AbortSignal) => Promise<readonly QueryOutcome[]>;
  /** Absent if the encoder needs no ids. */
  readonly ids: HitIds | undefined;
  readonly output: ResumableOutput<Progress> | OutputStream;
  /** Makes the encoder; `state` is that of an earlier run. */
  readonly encoder: (state: unknown) => ResultEncoder;
  /** Time between two saves in milliseconds; 0: after every batch. A killed run loses what was found since the last save. */
  readonly saveMs: number;
  readonly onProgress: (progress: BulkProgress) => void;
  readonly signal: AbortSignal;
}

/** How far an output is. */
export interface Progress {
  /** Queries whose results are in the partial files or in the state. */
  readonly queries: number;
  /** Queries among them that failed. */
  readonly failed: number;
  /** State of the encoder. */
  readonly state: unknown;
}

export interface BulkProgress {
  /** Finished queries, those of earlier runs included. */
  readonly done: number;
  readonly queries: number;
  /** Queries that earlier runs have finished. */
  readonly resumed: number;
}

export interface BulkResult {
  readonly queries: number;
  /** Queries that earlier runs have finished. */
  readonly resumed: number;
  readonly failed: number;
  /** The error of the first query that failed in this run. */
  readonly firstError: TrawlError | undefined;
}

/**
 * Searches for all queries of a range and writes the results in their order. Embedding, searching and writing overlap, in batches, so
 * memory does not depend on the number of queries. The batches are the same in every run, so a resumed output has the same bytes.
 *
 * A query whose own text or vector cannot be searched has no hits. Any other failure ends the run: the query may be found by the next.
 *
 * @throws TrawlError CANCELLED with `resumable` after it was stopped, or the error of the search with the id of the first query that it
 * met; what was found is saved then. The errors of its parts.
 */
export async function runBulkSearch(options: BulkSearch): Promise<BulkResult> {
  const { source, range, batchQueries, output, signal, onProgress } = options;
  const queries = range.end - range.first;
  const resumed = output.resumed?.queries ?? 0;
  let { failed, done } = { failed: output.resumed?.failed ?? 0, done: resumed };
  let firstError: TrawlError | undefined;
  if (!output.isComplete) {
    const encoder = options.encoder(output.resumed?.state);
    const progress = (): Progress => ({ queries: done, failed, state: encoder.state() });
    if (output.resumed === undefined) await output.append(encoder.begin());
    const saving = new SavingTimes(options.saveMs);
    onProgress({ done, queries, resumed });
    const batches = cut(source.read(range.first + done, range.end), batchQueries);
    const found = inOrder(batches, (batch, stop) => searchBatch(batch, options, encoder, stop), {
      atOnce: BATCHES_AT_ONCE,
      signal,
    });
    // A failed write may have left a part of a batch, which must not be counted.
    let isWhole = true;
    try {
      for await (const batch of found) {
        isWhole = false;
        await output.append(encoder.add(batch));
        done += batch.length;
        for (const { error } of batch) {
          if (error === undefined) continue;
          failed += 1;
          firstError ??= error;
        }
        isWhole = true;
        onProgress({ done, queries, resumed });
        if (saving.isDue(encoder.pendingHits > 0)) await saving.time(() => output.save(progress()));
      }
    } catch (error) {
      const canSave = isWhole && done > 0 && !(output instanceof OutputStream);
      if (signal.aborted && canSave) {
        await output.save(progress());
        throw stopped(done, queries, error);
      }
      if (!(error instanceof BatchFailure)) throw error;
      const { failure, batch } = error;
      if (signal.aborted) throw failure.error;
      if (canSave) await output.save(progress());
      const next = canSave
        ? `The same command resumes after ${done} of ${queries} queries.`
        : 'The same command begins with the first query.';
      const thrown = failedAt(failure, { before: done, of: queries, ids: batch.map(({ id }) => id) }, next);
      const details = { ...thrown.details, resumable: canSave, queries: done };
      throw new TrawlError(thrown.code, thrown.message, { details, cause: failure });
    }
    await output.append(encoder.end());
  }
  await output.finish({ queries, failed, state: null }, { queries, failed });
  return { queries, resumed, failed, firstError };
}

/** A batch that cannot be searched. */
class BatchFailure extends Error {
  readonly failure: SearchFailure;
  readonly batch: readonly BulkQuery[];

  constructor(failure: SearchFailure, batch: readonly BulkQuery[]) {
    super(failure.message, { cause: failure });
    this.failure = failure;
    this.batch = batch;
  }
}

async function searchBatch(
  batch: readonly BulkQuery[],
  { search, ids }: BulkSearch,
  { needsIds }: ResultEncoder,
  signal: AbortSignal,
): Promise<readonly FoundQuery[]> {
  let outcomes: readonly QueryOutcome[];
  let lists: readonly (readonly Hit[])[];
  let idLists: readonly (readonly string[])[];
  try {
    outcomes = await search(
      batch.map(({ query }) => query),
      signal,
    );
    lists = outcomes.map((outcome) => (outcome.ok ? outcome.hits : []));
    idLists = needsIds ? await ids!.of(lists, signal) : [];
  } catch (error) {
    throw new BatchFailure(new SearchFailure(error), batch);
  }
  for (const [i, outcome] of outcomes.entries()) {
    if (!outcome.ok && !isOfQuery(outcome.error)) throw new BatchFailure(new SearchFailure(outcome.error, i), batch);
  }
  return batch.map(({ id, round }, i) => {
    const outcome = outcomes[i]!;
    return { id, round, hits: lists[i]!, ids: idLists[i] ?? [], error: outcome.ok ? undefined : outcome.error };
  });
}

/** Cuts a stream of queries into batches of equal length; the last one may be shorter. */
async function* cut(
  pieces: AsyncIterable<readonly BulkQuery[]>,
  length: number,
): AsyncGenerator<readonly BulkQuery[], void> {
  let batch: BulkQuery[] = [];
  for await (const piece of pieces) {
    for (const query of piece) {
      batch.push(query);
      if (batch.length < length) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}

/** Decides when to save. */
class SavingTimes {
  readonly #everyMs: number;
  #last = performance.now();
  #costMs = 0;

  constructor(everyMs: number) {
    this.#everyMs = everyMs;
  }

  isDue(hasPending: boolean): boolean {
    if (this.#everyMs === 0) return true;
    const since = performance.now() - this.#last;
    return since >= Math.max(this.#everyMs * (hasPending ? PENDING_FACTOR : 1), this.#costMs / SAVE_SHARE);
  }

  async time(save: () => Promise<void>): Promise<void> {
    const begun = performance.now();
    await save();
    this.#last = performance.now();
    this.#costMs = this.#last - begun;
  }
}

function stopped(done: number, queries: number, cause: unknown): TrawlError {
  const message = `Stopped after ${done} of ${queries} queries. The same command resumes there.`;
  return new TrawlError('CANCELLED', message, { details: { resumable: true, queries: done }, cause });
}
