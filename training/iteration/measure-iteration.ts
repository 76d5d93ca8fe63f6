import { statSync } from 'node:fs';
import { resolve } from 'node:path';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { type QueryForm, queryOf } from '../../evaluation/query-form.ts';
import { type QuestionSet, questionFiles, readQuestionSet } from '../../evaluation/question-set.ts';
import { answersOf } from '../../evaluation/read-questions.ts';
import { searchQuestions } from '../../evaluation/systems/search-questions.ts';
import { TrawlError, usageError } from '../../src/base/errors.ts';
import { formatCount, formatNumberOf } from '../../src/base/format.ts';
import { isSameJson } from '../../src/base/objects.ts';
import { fileState, sha256OfFile } from '../../src/base/system/file-checksum.ts';
import { type OpenRetrieverOptions, openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { compareLists } from '../replay/compared-query.ts';
import { DEFAULT_PERSISTENCE, type RankedList } from '../replay/rank-biased-overlap.ts';
import { replayRecords } from '../replay/replay-records.ts';
import { ReplaySummary, type SummaryValues } from '../replay/replay-report.ts';
import { indexTarget } from '../replay/replay-target.ts';
import type { Measures } from './records.ts';

/** Cutoffs of the metrics beside `--recall-k`. */
const CUTOFFS = [1, 5, 10];

interface MeasureOptions {
  readonly questions: string;
  readonly qrels: string | undefined;
  readonly form: QueryForm;
  readonly recallK: number;
  /** Files of `--record`; empty: the answers to the held-out questions are compared. */
  readonly records: readonly string[];
  readonly changedK: number;
  readonly retrieving: OpenRetrieverOptions;
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

export type IterationMeasurement = Awaited<ReturnType<typeof prepareMeasurement>>;

/**
 * Prepares the measurement of an iteration's index beside the one that is served: reads the questions, and checks all inputs before hours
 * of work.
 *
 * @throws TrawlError USAGE if no question is judged or lacks its query; errors of the files.
 */
export async function prepareMeasurement(options: MeasureOptions) {
  const { questions: file, qrels, form, recallK, changedK, records, signal } = options;
  const set = await readQuestionSet(file, { qrels });
  for (const question of set.questions) queryOf(question, form);
  if (!set.questions.some(({ id }) => set.judgements.has(id))) {
    throw usageError(
      `No question of ${file} is judged, so recall cannot be measured. Add gold_ids to the questions, or pass --qrels.`,
    );
  }
  for (const path of records) {
    if (statSync(path, { throwIfNoEntry: false })?.isFile() === true) continue;
    throw new TrawlError('CORPUS_NOT_FOUND', `${path} is not a file of recorded queries.`);
  }
  const settings = {
    questions: await sumsOf(await questionFiles(file, { qrels }), signal),
    qrels: qrels === undefined ? null : await sumsOf([qrels], signal),
    form,
    recallK,
    changedK,
    records: records.map(stateOf),
  };
  return {
    options,
    questions: set.questions,
    judgements: set.judgements,
    /** What was measured with: the options, and checksums or sizes of the files. */
    settings,
    /** Whether measures were made with the same questions and settings. */
    covers: (measures: Measures) => isSameJson(measures.settings, settings),
    /** @param base the index that is served. */
    async measure(base: string, index: string): Promise<Measures> {
      const { against, ...measures } = await measured(options, set, { base, index });
      return { against, settings, ...measures };
    },
  };
}

async function measured(
  options: MeasureOptions,
  set: QuestionSet,
  { base, index }: { readonly base: string; readonly index: string },
): Promise<Omit<Measures, 'settings'>> {
  const { records, recallK, changedK: k, note, signal } = options;
  const before = await ask(options, base, (retriever) => evaluate(options, set, retriever));
  const { now, recorded } = await ask(options, index, async (retriever) => {
    const now = await evaluate(options, set, retriever);
    if (records.length === 0) return { now };
    const target = indexTarget(retriever);
    const replay = { records, target, changes: {}, p: DEFAULT_PERSISTENCE, cutoffs: [k], examples: 0, signal };
    return { now, recorded: await replayRecords(replay) };
  });
  const recall = `recall@${recallK}`;
  if (before.evaluation.means[recall] === 0 && now.evaluation.means[recall] === 0) {
    note('No search found a judged passage in either index. Check that the judgements use the ids of the corpus.');
  }
  if (recorded !== undefined) {
    const { all, recordedGenerations } = recorded;
    note(`${formatCount(all.queries)} of ${formatCount(recorded.records)} records compared`);
    const others = recordedGenerations.filter((generation) => generation !== before.generation);
    if (others.length > 0) note(`Records of another generation than the one that is served: ${others.join(', ')}.`);
  }
  return {
    against: before.generation,
    judged: now.evaluation.judged,
    recallK,
    before: { ...before.evaluation.means },
    now: { ...now.evaluation.means },
    answers: {
      of: recorded === undefined ? 'questions' : 'records',
      ...changesOf(recorded?.all ?? comparedAnswers(before.lists, now.lists, k)),
    },
  };
}

async function ask<Result>(
  { retrieving, note, signal }: MeasureOptions,
  folder: string,
  work: (retriever: Retriever) => Promise<Result>,
): Promise<Result> {
  const retriever = await openRetriever(folder, { ...retrieving, signal, onWarning: note });
  try {
    return await work(retriever);
  } finally {
    await retriever.close();
  }
}

async function evaluate(
  { form, recallK, changedK, note, signal }: MeasureOptions,
  { questions, judgements }: QuestionSet,
  retriever: Retriever,
) {
  const cutoffs = [...new Set([...CUTOFFS, recallK])].sort((a, b) => a - b);
  const k = Math.max(...cutoffs, changedK);
  const failed: string[] = [];
  const { run } = await searchQuestions(retriever, questions, {
    form,
    k,
    ranking: {},
    forRun: false,
    onFailed: (id, error) => failed.push(`${id}: ${error.message}`),
    signal,
  });
  if (failed.length > 0) {
    const count = formatNumberOf(failed.length, 'held-out question');
    note(`${count} cannot be searched in ${retriever.info.index} and find nothing there. The first: ${failed[0]}`);
  }
  const evaluation = evaluateRun({
    queryIds: questions.map(({ id }) => id),
    run,
    judgements,
    answers: answersOf(questions),
    cutoffs,
  });
  const lists = Array.from(run, ([id, hits]): [string, RankedList] => [
    id,
    { passages: hits.map((hit) => hit.id), scores: hits.map(({ score }) => score) },
  ]);
  return { generation: retriever.info.generation, evaluation, lists: new Map(lists) };
}

async function sumsOf(files: readonly string[], signal: AbortSignal): Promise<string[]> {
  const sums: string[] = [];
  for (const file of files) sums.push(await sha256OfFile(file, signal));
  return sums;
}

/** Without a checksum: a server may still write the file, which can be large. */
function stateOf(path: string): { readonly path: string; readonly state: string | undefined } {
  return { path: resolve(path), state: fileState(path) };
}

/**
 * Compares the answers to equal questions as `trawl replay` compares recorded ones. A question that cannot be searched has an empty list;
 * two of these say nothing.
 */
export function comparedAnswers(
  before: ReadonlyMap<string, RankedList>,
  now: ReadonlyMap<string, RankedList>,
  k: number,
): SummaryValues {
  const summary = new ReplaySummary([k]);
  for (const [id, list] of before) {
    const lists = { before: list, now: now.get(id)! };
    const compared = compareLists(lists, { cutoffs: [k], k, p: DEFAULT_PERSISTENCE });
    summary.add({ turn: null, ...compared, gold: null, answer: null });
  }
  return summary.values;
}

export function changesOf({ overlap, rbo }: SummaryValues): Omit<Measures['answers'], 'of'> {
  const { k, mean, queries, same } = overlap[0]!;
  return { k, queries, changed: queries - same, replaced: mean === null ? null : 1 - mean, rbo };
}
