import { throwIfCancelled } from '../../src/base/abort.ts';
import { asTrawlError, type ErrorCode, TrawlError } from '../../src/base/errors.ts';
import type { ResumableOutput } from '../../src/base/system/resumable-output.ts';
import type { EncoderInput } from '../../src/encoder/text-encoder.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { isOfQuery } from '../../src/search/calls/query-errors.ts';
import type { QueryOutcome } from '../../src/search/calls/query-outcome.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import type { SearchSource } from '../../src/search/retriever.ts';
import { itemError } from '../trajectories/read-items.ts';
import type { Search, Trajectory } from '../trajectories/trajectory.ts';
import type { CandidateItem } from './candidates-file.ts';

const BATCH_QUERIES = 256;
const CHECKPOINT_MS = 500;
const MAX_FAILURES = 10;

/**
 * Which text is searched for the candidates of a round:
 * - `searched`: the text that the agent's own search used (`query_for_retrieval`), as Agentic-R does;
 * - `query`: the sub-query;
 * - `question-and-query`: `question [SEP] query`, composed by the index's encoder;
 * - `question`: the question.
 */
export const CANDIDATE_QUERY_FORMS = ['searched', 'query', 'question-and-query', 'question'] as const;
export type CandidateQueryForm = (typeof CANDIDATE_QUERY_FORMS)[number];

/** What precedes the agent's own text in a prompt of Qwen's chat template, which Agentic-R uses. */
export const QWEN_ASSISTANT_MARKER = '<|im_start|>assistant\n';
const SEARCH_END = '</search>';

/** Why a trajectory has no candidates. */
export const DROP_REASONS = ['never-searched', 'no-question', 'no-assistant-text', 'search-tags-differ'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export type CandidateCounts = ReturnType<typeof noCounts>;

interface MakeCandidatesOptions {
  readonly form: CandidateQueryForm;
  readonly assistantMarker: string;
  readonly retriever: SearchSource;
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
 * "golden_answers", "output", "trajectory"}`, an item a line, in the order of the input. The caller publishes the output. Equal inputs
 * give equal bytes, also after an interruption.
 *
 * A round whose query itself cannot be searched gets no candidates. Any other failure may pass, so it ends the run; the same command
 * then resumes.
 *
 * @throws TrawlError CANCELLED; the error of the first search that failed for another reason than its query; errors of the input.
 */
export async function makeCandidates(options: MakeCandidatesOptions): Promise<CandidateCounts> {
  const { output, trajectories, signal, onProgress = () => undefined } = options;
  let counts = output.resumed ?? noCounts();
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

function noCounts() {
  return {
    read: 0,
    /** Trajectories and rounds written. */
    written: 0,
    rounds: 0,
    dropped: { 'never-searched': 0, 'no-question': 0, 'no-assistant-text': 0, 'search-tags-differ': 0 },
    /** Rounds whose own query cannot be searched (`isOfQuery`); they have no candidates. */
    failed: 0,
    /** The first of these rounds. Each message names the trajectory. */
    failures: [] as { id: string; round_index: number; code: ErrorCode; message: string }[],
    /** Rounds whose query was truncated to the token limit. */
    truncated: 0,
    /** Rounds that found fewer than k candidates. Agentic-R's step 3-2 makes no utilities for them. */
    short: 0,
    /** Candidates whose id in the corpus is not their row number. */
    otherIds: 0,
    withoutText: 0,
  };
}

interface OpenRound {
  readonly reasoningContext: string;
  readonly search: Search;
  readonly input: EncoderInput;
}

interface OpenTrajectory {
  readonly trajectory: Trajectory;
  readonly rounds: readonly OpenRound[] | DropReason;
}

/** Groups of trajectories with about as many queries as are searched at once. */
async function* batches(
  trajectories: AsyncIterable<Trajectory>,
  options: MakeCandidatesOptions,
): AsyncGenerator<OpenTrajectory[], void> {
  let batch: OpenTrajectory[] = [];
  let size = 0;
  for await (const trajectory of trajectories) {
    const rounds = openRounds(trajectory, options);
    batch.push({ trajectory, rounds });
    size += typeof rounds === 'string' ? 1 : rounds.length;
    if (size < BATCH_QUERIES) continue;
    yield batch;
    batch = [];
    size = 0;
  }
  if (batch.length > 0) yield batch;
}

/**
 * The rounds of a trajectory, or why it is dropped. As Agentic-R, it drops trajectories that never searched, and those with more or
 * fewer `</search>` in their text than searches: nobody knows where in the text a search was made. The rounds of a recorded trajectory,
 * which has no text, get an empty reasoning context.
 */
function openRounds(
  { searches, question, output: { prompt }, place }: Trajectory,
  { form, assistantMarker }: MakeCandidatesOptions,
): readonly OpenRound[] | DropReason {
  if (searches.length === 0) return 'never-searched';
  if (question === undefined) return 'no-question';
  if (prompt !== undefined && typeof prompt !== 'string') throw itemError(place, '"output.prompt" is not a string');
  const contexts = prompt === undefined ? searches.map(() => '') : reasoningContexts(prompt, assistantMarker);
  if (contexts === undefined) return 'no-assistant-text';
  if (contexts.length !== searches.length) return 'search-tags-differ';
  return searches.map((search, i) => {
    const { query, searchedText } = search;
    const inputs = { searched: searchedText, query, 'question-and-query': { question, query }, question };
    return { reasoningContext: contexts[i]!, search, input: inputs[form] };
  });
}

/**
 * For each search the agent's text up to the end of its search tag, with the passages that the agent read before: Agentic-R's
 * `reasoning_context`. The text begins behind the marker, because the instructions before it may have search tags as examples. Undefined
 * if the prompt lacks the marker.
 */
function reasoningContexts(prompt: string, marker: string): string[] | undefined {
  const at = prompt.indexOf(marker);
  if (at === -1) return undefined;
  const text = prompt.slice(at + marker.length);
  const contexts: string[] = [];
  for (let end = text.indexOf(SEARCH_END); end !== -1; end = text.indexOf(SEARCH_END, end + 1)) {
    contexts.push(text.slice(0, end + SEARCH_END.length));
  }
  return contexts;
}

async function searchBatch(
  batch: readonly OpenTrajectory[],
  before: CandidateCounts,
  { retriever, k, ranking, signal }: MakeCandidatesOptions,
): Promise<{ text: string; counts: CandidateCounts }> {
  const inputs = batch.flatMap(({ rounds }) => (typeof rounds === 'string' ? [] : rounds.map(({ input }) => input)));
  const outcomes = await searchInputs(
    retriever,
    { ...ranking, queries: inputs, k, signal },
    batch[0]!.trajectory.place,
  );
  const counts = { ...before, dropped: { ...before.dropped }, failures: [...before.failures] };
  let text = '';
  let next = 0;
  for (const { trajectory, rounds } of batch) {
    counts.read += 1;
    if (typeof rounds === 'string') {
      counts.dropped[rounds] += 1;
      continue;
    }
    const { id, question, goldenAnswers, output, place } = trajectory;
    const found = rounds.map(({ search, reasoningContext }, i) => {
      const outcome = outcomes[next++]!;
      const round = { round_index: i + 1, reasoning_context: reasoningContext, current_query: search.query };
      if (!outcome.ok) {
        const { code, details, message: reason } = outcome.error;
        const message = `${place}, search ${search.turn}: ${reason}`;
        if (!isOfQuery(outcome.error)) {
          throw new TrawlError(code, `${message}${RESUMES}`, { details, cause: outcome.error });
        }
        counts.failed += 1;
        if (counts.failures.length < MAX_FAILURES) counts.failures.push({ id, round_index: i + 1, code, message });
        return { ...round, candidate_passage_ids: [] };
      }
      const { hits, truncated } = outcome;
      if (truncated) counts.truncated += 1;
      if (hits.length < k) counts.short += 1;
      // Agentic-R's later steps look a row number up as `id` of the corpus.
      counts.otherIds += hits.filter(({ row, document }) => documentFields(document).id !== String(row)).length;
      return { ...round, candidate_passage_ids: hits.map(({ row }) => row) };
    });
    if (output['prompt'] === undefined) counts.withoutText += 1;
    const item: CandidateItem = { id, question: question!, golden_answers: goldenAnswers, output, trajectory: found };
    text += `${counts.written === 0 ? '\n' : ',\n'}${JSON.stringify(item)}`;
    counts.written += 1;
    counts.rounds += rounds.length;
  }
  return { text, counts };
}

const RESUMES = ' The same command resumes there.';

/** Searches a batch of queries. If the search fails as a whole, the error names the first trajectory of the batch. */
async function searchInputs(
  retriever: SearchSource,
  call: RetrieveCall,
  place: string,
): Promise<readonly QueryOutcome[]> {
  if (call.queries.length === 0) return [];
  try {
    return (await retriever.retrieve(call)).outcomes;
  } catch (cause) {
    const error = asTrawlError(cause);
    if (error.code === 'CANCELLED') throw error;
    const message = `The batch from ${place}: ${error.message}${RESUMES}`;
    throw new TrawlError(error.code, message, { details: error.details, cause });
  }
}
