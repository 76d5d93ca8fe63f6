import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, type ErrorCode, TrawlError } from '../../src/base/errors.ts';
import type { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import { idColumnOf } from '../../src/index/passages/id-column.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { Hit, QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import type { Trajectory } from '../trajectories/trajectory.ts';
import type { CandidateItem } from './candidate-item.ts';
import { DROP_REASONS, type DropReason, type OpenRound, type RoundsOptions, roundsOf } from './trajectory-rounds.ts';

/** Queries searched at once. */
const BATCH_QUERIES = 256;
/** Time between two checkpoints. */
const CHECKPOINT_MS = 500;
/** Failed rounds that are named in the report. */
const MAX_FAILURES = 10;

/** A round whose own query cannot be searched (`isOfQuery`). */
interface FailedRound {
  readonly id: string;
  readonly round_index: number;
  readonly code: ErrorCode;
  /** With the place of the trajectory. */
  readonly message: string;
}

export interface CandidateCounts {
  /** Trajectories read. */
  readonly read: number;
  /** Trajectories and rounds written. */
  readonly written: number;
  readonly rounds: number;
  readonly dropped: Readonly<Record<DropReason, number>>;
  /** Rounds whose own query cannot be searched; they have no candidates. */
  readonly failed: number;
  /** The first of them. */
  readonly failures: readonly FailedRound[];
  /** Rounds whose query was truncated to the token limit. */
  readonly truncated: number;
  /** Other rounds with fewer than k candidates, for which Agentic-R's step 3-2 makes no utilities. */
  readonly short: number;
  /** Candidates whose id in the corpus is not their row number. */
  readonly otherIds: number;
  /** Trajectories without the agent's text. */
  readonly withoutText: number;
}

interface MakeCandidatesOptions extends RoundsOptions {
  readonly retriever: SearchSource;
  /** Candidates of each round. */
  readonly k: number;
  /** Mode, filter and the like of the searches. */
  readonly ranking: Partial<RetrieveCall>;
  /** Opens the input without its first `skip` trajectories. */
  readonly trajectories: (skip: number) => AsyncIterable<Trajectory>;
  readonly output: ResumableOutput<CandidateCounts>;
  readonly onProgress?: (counts: CandidateCounts) => void;
  readonly signal?: AbortSignal;
}

/**
 * Searches the candidates of every round and writes them as Agentic-R's step 2 does: a JSON array of `{"id", "question",
 * "golden_answers", "output", "trajectory"}`, an item a line, in the order of the input. The output is not published yet. Equal inputs
 * give equal bytes, also if the work was interrupted and resumed.
 *
 * A round whose own query cannot be searched has no candidates. After any other failure the same query may succeed, so the work stops
 * there; what was found is saved.
 *
 * @throws TrawlError CANCELLED (the file can be resumed), the error of the first search that failed for another reason, with its
 * trajectory; the errors of the input.
 */
export async function makeCandidates(options: MakeCandidatesOptions): Promise<CandidateCounts> {
  const { output, trajectories, signal, onProgress = () => undefined } = options;
  let counts = output.resumed ?? NOTHING;
  if (output.isComplete) return counts;
  if (counts.read === 0) await output.append(['[']);
  let lastCheckpoint = performance.now();
  for await (const batch of batches(trajectories(counts.read), options)) {
    throwIfCancelled(signal);
    const { text, counts: next } = await searchBatch(batch, counts, options).catch(async (error: unknown) => {
      if (counts.read > 0) await output.save(counts);
      throw error;
    });
    await output.append([text]);
    counts = next;
    onProgress(counts);
    if (performance.now() - lastCheckpoint < CHECKPOINT_MS) continue;
    await output.save(counts);
    lastCheckpoint = performance.now();
  }
  await output.append(['\n]\n']);
  return counts;
}

const NOTHING: CandidateCounts = {
  read: 0,
  written: 0,
  rounds: 0,
  dropped: Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<DropReason, number>,
  failed: 0,
  failures: [],
  truncated: 0,
  short: 0,
  otherIds: 0,
  withoutText: 0,
};

interface OpenTrajectory {
  readonly trajectory: Trajectory;
  readonly rounds: readonly OpenRound[] | DropReason;
}

/** Groups of trajectories with about as many queries as are searched at once. */
async function* batches(
  trajectories: AsyncIterable<Trajectory>,
  options: RoundsOptions,
): AsyncGenerator<OpenTrajectory[], void> {
  let batch: OpenTrajectory[] = [];
  let size = 0;
  for await (const trajectory of trajectories) {
    const rounds = roundsOf(trajectory, options);
    batch.push({ trajectory, rounds });
    size += typeof rounds === 'string' ? 1 : rounds.length;
    if (size < BATCH_QUERIES) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

async function searchBatch(
  batch: readonly OpenTrajectory[],
  before: CandidateCounts,
  { retriever, k, ranking, signal }: MakeCandidatesOptions,
): Promise<{ text: string; counts: CandidateCounts }> {
  const open = batch.flatMap(({ rounds }) => (typeof rounds === 'string' ? [] : rounds));
  const call = { ...ranking, queries: open.map(({ input }) => input), k, signal };
  const outcomes = open.length === 0 ? [] : await searched(retriever, call, batch);
  const counts = { ...before, dropped: { ...before.dropped }, failures: [...before.failures] };
  let text = '';
  let next = 0;
  for (const { trajectory, rounds } of batch) {
    counts.read += 1;
    if (typeof rounds === 'string') {
      counts.dropped[rounds] += 1;
      continue;
    }
    const found = rounds.map(({ search }, i) => {
      const outcome = outcomes[next]!;
      next += 1;
      if (!outcome.ok) {
        if (!isOfQuery(outcome.error)) throw failedRound(trajectory, search.turn, outcome.error, RESUMES);
        const { code, message } = failedRound(trajectory, search.turn, outcome.error);
        counts.failed += 1;
        if (counts.failures.length < MAX_FAILURES)
          counts.failures.push({ id: trajectory.id, round_index: i + 1, code, message });
        return [];
      }
      counts.truncated += outcome.truncated ? 1 : 0;
      counts.short += outcome.hits.length < k ? 1 : 0;
      counts.otherIds += outcome.hits.filter((hit) => !idIsRow(hit)).length;
      return outcome.hits.map(({ row }) => row);
    });
    if (trajectory.output['prompt'] === undefined) counts.withoutText += 1;
    text += `${counts.written === 0 ? '\n' : ',\n'}${JSON.stringify(candidateItem(trajectory, rounds, found))}`;
    counts.written += 1;
    counts.rounds += rounds.length;
  }
  return { text, counts };
}

function candidateItem(
  { id, question, goldenAnswers, output }: Trajectory,
  rounds: readonly OpenRound[],
  found: readonly (readonly number[])[],
): CandidateItem {
  return {
    id,
    question: question!,
    golden_answers: goldenAnswers,
    output,
    trajectory: rounds.map(({ reasoningContext, search }, i) => ({
      round_index: i + 1,
      reasoning_context: reasoningContext,
      current_query: search.query,
      candidate_passage_ids: found[i]!,
    })),
  };
}

/** Agentic-R's later steps look a row number up as `id` of the corpus. */
function idIsRow({ row, document }: Hit): boolean {
  const columns = JSON.parse(document) as Readonly<Record<string, unknown>>;
  const id = columns[idColumnOf(columns)];
  return id === row || id === String(row);
}

const RESUMES = ' The same command resumes there.';

/** The outcomes of a batch. An error of the whole batch names its first trajectory. */
async function searched(
  retriever: SearchSource,
  call: RetrieveCall,
  [first]: readonly OpenTrajectory[],
): Promise<readonly QueryOutcome[]> {
  try {
    return (await retriever.retrieve(call)).outcomes;
  } catch (cause) {
    const error = asTrawlError(cause);
    if (error.code === 'CANCELLED') throw error;
    const message = `The batch from ${first!.trajectory.place}: ${error.message}${RESUMES}`;
    throw new TrawlError(error.code, message, { details: error.details, cause });
  }
}

function failedRound({ place }: Trajectory, turn: number, error: TrawlError, next = ''): TrawlError {
  return new TrawlError(error.code, `${place}, search ${turn}: ${error.message}${next}`, {
    details: error.details,
    cause: error,
  });
}
