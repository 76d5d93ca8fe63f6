import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { type PassageTemplate, parseTemplate } from '../../corpus/passage-template.ts';
import type { Judgements } from '../../evaluation/judgements.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, type EncoderInput, type TextEncoder } from '../../src/encoder/text-encoder.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { RecallEstimator, TAIL_SCORES } from './estimate-recall.ts';
import { type JudgedQuestions, judgedQuestions } from './judged-questions.ts';
import { makeReport } from './make-report.ts';
import { type Pool, PoolRows, type PoolSource, poolOf } from './pool.ts';
import { PoolVectors } from './pool-vectors.ts';
import { type PresentLists, presentLists } from './present-lists.ts';
import { type RecordedLists, recordedLists } from './recorded-lists.ts';
import { relevantPlaces } from './relevant-places.ts';
import { type ListSettings, listsOfOther, searchedWords } from './searched-lists.ts';
import { engineSearch, retrieverSearch } from './subset-search.ts';
import type { Gate, TriageReport } from './triage-report.ts';

export interface TriageOptions {
  /** The present index. Its passages are the corpus, and its encoder is the one to compare with. */
  readonly retriever: Retriever;
  /** The template of the texts that are embedded, as in the manifest of the index. */
  readonly passageTemplate: string;
  /** Indexes of other generations, whose lists join the pool. */
  readonly others: readonly Retriever[];
  /** Files of `--record`, whose lists join the pool. */
  readonly records: readonly string[];
  /** Whether the BM25 lists of the present index join the pool. */
  readonly alsoBm25: boolean;
  /** The model that is tried. The caller closes it. */
  readonly encoder: TextEncoder;
  /** Held-out questions, with ids that are unique. */
  readonly questions: readonly Question[];
  /** In place of the `gold_ids` of the questions. */
  readonly judgements?: Judgements;
  readonly inputOf: (question: Question) => EncoderInput;
  /** Which of question, history and query are embedded. Undefined: what each model says. */
  readonly template?: QueryTemplate;
  /** Limits the trial to a part of the index. */
  readonly scope: RowScope;
  /** Hits of each list that join the pool, ≥ 1. */
  readonly depth: number;
  /** Random passages that join the pool. */
  readonly sample: number;
  readonly seed: number;
  /** Values of k, ascending. */
  readonly cutoffs: readonly number[];
  readonly gate: Gate;
  /** Folder for the vectors of the pool, from which a stopped run resumes. It is created. */
  readonly work: string;
  /** Called with the report before the vectors are removed, so that no stop between them loses both. */
  readonly onReport?: (report: TriageReport) => void;
  /** Whether the vectors stay there after the run. Default: false. */
  readonly keepVectors?: boolean;
  /** Search threads; default: the available cores. */
  readonly searchThreads?: number;
  /** Time between two checkpoints of the vectors. Default: 5 s. */
  readonly checkpointMs?: number;
  readonly onProgress?: (progress: TriageProgress) => void;
  readonly onWarning?: (message: string) => void;
  readonly signal?: AbortSignal;
}

export interface TriageProgress {
  readonly step: 'retrieving the pool' | 'embedding the pool' | 'searching the pool';
  readonly done: number;
  readonly total: number;
}

/**
 * Tries a model on a part of the index before all of it is embedded: on the passages that earlier encoders retrieved for held-out
 * questions, their relevant passages, and a random sample of the rest. It estimates recall in the whole index, says how wrong the same
 * estimate is for the present encoder, and compares it with a gate. Memory: the pool's row numbers, the lists of the questions, and a few
 * bits for each row of the index.
 *
 * @throws TrawlError CORPUS_EMPTY if no question has a relevant passage, or the index has none of them; NOT_SUPPORTED if the index has no
 * look-up by id; OUTPUT_EXISTS, OUTPUT_NOT_WRITABLE, DISK_FULL; the errors of the encoders, of the retrievers and of reading records;
 * CANCELLED, with `resumable` while the pool is embedded.
 */
export async function triageModel(options: TriageOptions): Promise<TriageReport> {
  const begun = performance.now();
  const { retriever, scope, cutoffs, onProgress = () => undefined } = options;
  const signal = options.signal ?? new AbortController().signal;
  const questions = await judgedQuestions(options.questions, options.judgements, { retriever, scope, signal });
  if (questions.judged.length === 0) throw nothingJudged(questions);
  if (questions.missing === questions.relevant) throw nothingKnown(questions, retriever);
  const inputs = questions.judged.map(({ question }) => options.inputOf(question));
  const maxK = Math.max(...cutoffs);
  const { depth, template } = options;
  const lists: ListSettings = { inputs, template, depth, scope, signal };
  onProgress({ step: 'retrieving the pool', done: 0, total: inputs.length });
  const present = await presentLists(retriever, lists, {
    maxK,
    relevant: questions.judged.map(({ relevant }) => relevant),
    onProgress: (done) => onProgress({ step: 'retrieving the pool', done, total: inputs.length }),
  });
  const { sources, records, unknownIds } = await sourcesOf(options, questions, present, lists);
  const live = await retriever.select({ ...scope, signal });
  const pool = poolOf(sources, live, options);

  const tried = await triedEstimator(pool, questions, inputs, { ...options, signal, onProgress });
  try {
    const asNew = await presentAsNew(sources, live, questions, present, { ...options, signal });
    const found = { begun, questions, sources, records, unknownIds, present, pool, tried, asNew };
    const report = makeReport(found, options);
    options.onReport?.(report);
    // Last: a run that is stopped before has its vectors for the next one.
    if (options.keepVectors !== true) await tried.vectors.remove();
    return report;
  } finally {
    tried.vectors.close();
  }
}

function nothingJudged({ read, unjudged }: JudgedQuestions): TrawlError {
  return new TrawlError(
    'CORPUS_EMPTY',
    `None of the ${read} questions has a relevant passage (${unjudged} without judgements), so there is nothing to measure. Add gold_ids to the questions, or pass judgements for their ids.`,
  );
}

function nothingKnown({ judged, relevant, example }: JudgedQuestions, { info }: Retriever): TrawlError {
  return new TrawlError(
    'CORPUS_EMPTY',
    `None of the ${relevant} relevant passages of ${judged.length} questions is in the index ${info.index}, or in the part of it that is ` +
      `tried, so every recall would be 0. Check that the judgements use the ids of this index; the first of theirs is ${JSON.stringify(example)}.`,
    { details: { relevant, questions: judged.length } },
  );
}

interface Sources {
  readonly sources: readonly PoolSource[];
  readonly records: RecordedLists | undefined;
  readonly unknownIds: number;
}

/** Where the chosen passages of the pool come from. */
async function sourcesOf(
  { retriever, others, records: paths, alsoBm25, depth, scope }: TriageOptions,
  { judged }: JudgedQuestions,
  present: PresentLists,
  lists: ListSettings,
): Promise<Sources> {
  const relevant = new RowBitmap(retriever.info.rows);
  for (const row of judged.flatMap((question) => question.relevant.flat())) relevant.add(row);
  const sources: PoolSource[] = [{ name: 'relevant', ofPresentEncoder: false, rows: relevant }, present.source];
  let unknownIds = 0;
  if (alsoBm25 && present.vectors !== undefined) sources.push(await searchedWords(retriever, lists));
  for (const other of others) {
    const found = await listsOfOther(other, retriever, lists);
    sources.push(found.source);
    unknownIds += found.unknownIds;
  }
  if (paths.length === 0) return { sources, records: undefined, unknownIds };
  const questions = judged.map(({ question }) => question);
  const records = await recordedLists(paths, questions, { retriever, others, depth, scope, signal: lists.signal });
  return { sources: [...sources, ...records.sources], records, unknownIds: unknownIds + records.unknownIds };
}

type Running = TriageOptions & { readonly signal: AbortSignal };

interface TriedEstimator {
  readonly estimator: RecallEstimator;
  /** To be closed, and removed when nothing more can fail. */
  readonly vectors: PoolVectors;
}

/** Embeds the pool and the questions with the model that is tried, and searches the pool. */
async function triedEstimator(
  pool: Pool,
  { judged }: JudgedQuestions,
  inputs: readonly EncoderInput[],
  options: Running & { readonly onProgress: (progress: TriageProgress) => void },
): Promise<TriedEstimator> {
  const { retriever, encoder, cutoffs, work, searchThreads, onWarning, signal, onProgress } = options;
  const { generation } = retriever.info;
  const rows = new PoolRows(pool);
  const passageTemplate = parseTemplate(options.passageTemplate);
  const vectors = await PoolVectors.embed({
    work,
    pool: JSON.stringify([generation, options.passageTemplate, rows.sha256]),
    count: rows.rows.length,
    texts: (first, count) => textsOf(retriever, rows.rows.subarray(first, first + count), passageTemplate, signal),
    rowOf: (place) => rows.rows[place]!,
    encoder,
    checkpointMs: options.checkpointMs,
    onProgress: (done) => onProgress({ step: 'embedding the pool', done, total: rows.rows.length }),
    signal,
  });
  try {
    onProgress({ step: 'searching the pool', done: 0, total: 1 });
    const queries = await queryVectors(encoder, inputs, options);
    const engine = await openEngine(vectors.source, {
      threads: searchThreads,
      onWarning,
    });
    try {
      const places = await relevantPlaces({
        search: engineSearch(engine, queries, signal),
        chosen: rows.placesOf(pool.chosen),
        sampled: rows.placesOf(pool.sampled),
        relevant: judged.map(({ relevant }) =>
          relevant.map((ofPassage) => ofPassage.flatMap((row) => rows.placeOf(row) ?? [])),
        ),
        maxK: Math.max(...cutoffs),
        sampleScores: TAIL_SCORES,
      });
      return { estimator: new RecallEstimator(places, restOf(pool)), vectors };
    } finally {
      await engine.close();
    }
  } catch (error) {
    vectors.close();
    throw error;
  }
}

function restOf({ whole, chosen, sampled }: Pool): { rest: number; sampled: number } {
  return { rest: whole - chosen.count(), sampled: sampled.count() };
}

async function textsOf(
  retriever: Retriever,
  rows: Float64Array,
  template: PassageTemplate,
  signal: AbortSignal,
): Promise<string[]> {
  const { found } = await retriever.find({ by: 'row', keys: Array.from(rows, String), limit: 1, signal });
  return found.map((passages, i) => {
    const [passage] = passages;
    if (passage === undefined) throw bug(`row ${rows[i]} of the pool is not in the index`);
    const parsed = parseJson(passage.document);
    if (!parsed.ok) throw bug(`a stored document does not parse: ${parsed.reason}`);
    return template(parsed.value as PassageRow);
  });
}

/** Row-major. @throws the error of the first question that cannot be embedded. */
async function queryVectors(
  encoder: TextEncoder,
  inputs: readonly EncoderInput[],
  { template, signal }: Running,
): Promise<Float32Array> {
  const templated = inputs.map((input) => applyTemplate(input, template ?? encoder.identity.queryTemplate));
  const { vectors, outcomes } = await encoder.encode(templated, { inputType: 'query', signal });
  for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
  return vectors;
}

/**
 * The present encoder on a pool without what it retrieved itself: the relevant passages, the lists of all others, and a sample of as many
 * passages. Undefined if it has no vectors, or nothing is sampled.
 */
async function presentAsNew(
  sources: readonly PoolSource[],
  live: RowBitmap,
  { judged }: JudgedQuestions,
  { vectors }: PresentLists,
  { retriever, cutoffs, sample, seed, signal }: Running,
): Promise<RecallEstimator | undefined> {
  if (vectors === undefined || sample === 0) return undefined;
  const pool = poolOf(
    sources.filter(({ ofPresentEncoder }) => !ofPresentEncoder),
    live,
    { sample, seed },
  );
  const places = await relevantPlaces({
    search: retrieverSearch(retriever, vectors, signal),
    chosen: pool.chosen,
    sampled: pool.sampled,
    relevant: judged.map(({ relevant }) => relevant),
    maxK: Math.max(...cutoffs),
    sampleScores: TAIL_SCORES,
  });
  return new RecallEstimator(places, restOf(pool));
}
