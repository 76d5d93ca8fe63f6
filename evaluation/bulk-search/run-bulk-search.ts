import { type FileHandle, open } from 'node:fs/promises';
import { TrawlError } from '../../src/base/errors.ts';
import { inOrder } from '../../src/base/in-order.ts';
import type { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { writeFailure } from '../../src/base/system/write-failure.ts';
import { failedAt, isOfQuery, SearchFailure } from '../../src/search/calls/query-errors.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveQuery } from '../../src/search/calls/retrieve-call.ts';
import type { FileBytes, FoundQuery, ResultEncoder } from './outputs/result-encoder.ts';
import type { HitIds } from './passage-ids.ts';
import type { BulkQuery, QuerySource } from './query-file.ts';

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
  readonly search: (queries: readonly RetrieveQuery[], signal: AbortSignal) => Promise<readonly QueryOutcome[]>;
  /** Absent if the encoder needs no ids. */
  readonly ids: HitIds | undefined;
  readonly output: ResumableOutput<Progress> | OutputStream;
  /** Makes the encoder from its state in an earlier run. */
  readonly encoder: (state: unknown) => ResultEncoder;
  /** Time between two saves in milliseconds; 0: after every batch. A killed run loses what was found since the last save. */
  readonly saveMs: number;
  readonly onProgress: (progress: BulkProgress) => void;
  readonly signal: AbortSignal;
}

export interface Progress {
  /** Queries whose results are in the partial files or in the state. */
  readonly queries: number;
  readonly failed: number;
  readonly state: unknown;
}

export interface BulkProgress {
  /** Finished queries, of earlier runs too. */
  readonly done: number;
  readonly queries: number;
  /** Queries that earlier runs have finished. */
  readonly resumed: number;
}

export type BulkResult = Awaited<ReturnType<typeof runBulkSearch>>;

/**
 * Searches for all queries of a range and writes the results in their order. Embedding, searching and writing overlap, in batches, so
 * memory does not depend on the number of queries. The batches are the same in every run, so a resumed output has the same bytes.
 *
 * A query whose own text or vector cannot be searched has no hits. Any other failure ends the run: the query may be found by the next.
 *
 * @throws TrawlError CANCELLED with `resumable` after it was stopped, or the error of the search with the id of the first query that it
 * met; what was found is saved then. The errors of its parts.
 */
export async function runBulkSearch(options: BulkSearch) {
  const { source, range, batchQueries, output, signal, onProgress } = options;
  const queries = range.end - range.first;
  const resumed = output.resumed?.queries ?? 0;
  let { failed, done } = { failed: output.resumed?.failed ?? 0, done: resumed };
  let firstError: TrawlError | undefined;
  if (!output.isComplete) {
    const encoder = options.encoder(output.resumed?.state);
    const progress = (): Progress => ({ queries: done, failed, state: encoder.state() });
    if (output.resumed === undefined) await output.append(encoder.begin());
    let [savedAt, saveCostMs] = [performance.now(), 0];
    const isSaveDue = (): boolean => {
      const everyMs = options.saveMs * (encoder.pendingHits > 0 ? PENDING_FACTOR : 1);
      return performance.now() - savedAt >= (everyMs === 0 ? 0 : Math.max(everyMs, saveCostMs / SAVE_SHARE));
    };
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
        if (!isSaveDue()) continue;
        const begun = performance.now();
        await output.save(progress());
        savedAt = performance.now();
        saveCostMs = savedAt - begun;
      }
    } catch (error) {
      const canSave = isWhole && done > 0 && !(output instanceof OutputStream);
      const isStopped = signal.aborted;
      if (canSave && (isStopped || error instanceof BatchFailure)) await output.save(progress());
      throw runError(error, { done, queries, isSaved: canSave, isStopped });
    }
    await output.append(encoder.end());
  }
  await output.finish({ queries, failed, state: null }, { queries, failed });
  /** `resumed`: queries that earlier runs have finished. `firstError`: of the first query that failed in this run. */
  return { queries, resumed, failed, firstError };
}

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
  try {
    const outcomes = await search(
      batch.map(({ query }) => query),
      signal,
    );
    for (const [i, outcome] of outcomes.entries())
      if (!outcome.ok && !isOfQuery(outcome.error)) throw new SearchFailure(outcome.error, i);
    const lists = outcomes.map((outcome) => (outcome.ok ? outcome.hits : []));
    const idLists = needsIds ? await ids!.of(lists, signal) : [];
    return batch.map(({ id, round }, i) => {
      const outcome = outcomes[i]!;
      return { id, round, hits: lists[i]!, ids: idLists[i] ?? [], error: outcome.ok ? undefined : outcome.error };
    });
  } catch (error) {
    throw new BatchFailure(error instanceof SearchFailure ? error : new SearchFailure(error), batch);
  }
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

/** The error of a run that ended early. `isSaved`: the next run begins after `done` queries. */
function runError(
  error: unknown,
  { done, queries, isSaved, isStopped }: { done: number; queries: number; isSaved: boolean; isStopped: boolean },
): unknown {
  const details = { resumable: isSaved, queries: done };
  if (isStopped && isSaved) {
    const message = `Stopped after ${done} of ${queries} queries. The same command resumes there.`;
    return new TrawlError('CANCELLED', message, { details, cause: error });
  }
  if (!(error instanceof BatchFailure)) return error;
  const { failure, batch } = error;
  if (isStopped) return failure.error;
  const next = isSaved
    ? `The same command resumes after ${done} of ${queries} queries.`
    : 'The same command begins with the first query.';
  const found = failedAt(failure, { before: done, of: queries, ids: batch.map(({ id }) => id) }, next);
  return new TrawlError(found.code, found.message, { details: { ...found.details, ...details }, cause: failure });
}

/** An output that is a pipe or a device: bytes are written as they come, and a killed run starts again. */
export class OutputStream {
  readonly resumed = undefined;
  readonly isComplete = false;
  readonly #path: string;
  readonly #file: FileHandle;

  private constructor(path: string, file: FileHandle) {
    this.#path = path;
    this.#file = file;
  }

  /** @throws TrawlError OUTPUT_NOT_WRITABLE. */
  static async open(path: string): Promise<OutputStream> {
    try {
      return new OutputStream(path, await open(path, 'w'));
    } catch (error) {
      throw writeFailure(error, path);
    }
  }

  async append(bytes: FileBytes): Promise<void> {
    try {
      for (const part of bytes) await this.#file.writeFile(part);
    } catch (error) {
      throw writeFailure(error, this.#path);
    }
  }

  async save(): Promise<void> {}

  async finish(): Promise<void> {}

  async close(): Promise<void> {
    await this.#file.close();
  }
}
