import { parseJson } from '../../corpus/parse-json.ts';
import type { PassageRow } from '../../corpus/passage.ts';
import { type PassageTemplate, parseTemplate } from '../../corpus/passage-template.ts';
import type { Judgements } from '../../evaluation/judgements.ts';
import type { Question } from '../../evaluation/read-questions.ts';
import { bootstrapInterval, meanOf } from '../../evaluation/significance.ts';
import { bug, TrawlError } from '../../src/base/errors.ts';
import type { QueryTemplate } from '../../src/encoder/identity/model-identity.ts';
import { applyTemplate, type EncoderInput, type TextEncoder } from '../../src/encoder/text-encoder.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import type { RowScope } from '../../src/search/calls/retrieve-call.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { RecallEstimator } from './estimate-recall.ts';
import { type JudgedQuestions, judgedQuestions } from './judged-questions.ts';
import { type Pool, PoolRows, type PoolSource, poolOf } from './pool.ts';
import {
  type ListSettings,
  listsOfOther,
  type PresentLists,
  presentLists,
  type RecordedLists,
  recordedLists,
  searchedWords,
} from './pool-lists.ts';
import { embedPool, type PoolVectors } from './pool-vectors.ts';
import { engineSearch, relevantPlaces, retrieverSearch } from './relevant-places.ts';
import { type Estimate, type Gate, thresholdOf, verdictOf } from './triage-report.ts';

export interface TriageOptions {
  /** The present index. Its passages are the corpus, and its encoder is the one to compare with. */
  readonly retriever: Retriever;
  /** The template of the texts that are embedded, as in the manifest of the index. */
  readonly passageTemplate: string;
  /** Indexes of other generations, whose lists join the pool. */
  readonly others: readonly Retriever[];
  readonly records: readonly string[];
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
  readonly depth: number;
  /** Random passages that join the pool. */
  readonly sample: number;
  readonly seed: number;
  readonly cutoffs: readonly number[];
  readonly gate: Gate;
  /** Folder for the vectors of the pool, from which a stopped run resumes. It is created. */
  readonly work: string;
  /** Called with the report before the vectors are removed, so that no stop between them loses both. */
  readonly onReport?: (report: TriageReport) => void;
  /** Whether the vectors stay there after the run. Default: false. */
  readonly keepVectors?: boolean;
  readonly searchThreads?: number;
  /** Time between two checkpoints of the vectors. Default: 5 s. */
  readonly checkpointMs?: number;
  readonly onProgress: (progress: TriageProgress) => void;
  readonly onWarning?: (message: string) => void;
  readonly signal: AbortSignal;
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
  const { retriever, scope, cutoffs, depth, template, onProgress, signal } = options;
  const questions = await judgedQuestions(options.questions, options.judgements, { retriever, scope, signal });
  refuseUnmeasurable(questions, retriever);
  const inputs = questions.judged.map(({ question }) => options.inputOf(question));
  const lists: ListSettings = { retriever, inputs, template, depth, scope, signal };
  onProgress({ step: 'retrieving the pool', done: 0, total: inputs.length });
  const present = await presentLists(lists, {
    maxK: Math.max(...cutoffs),
    relevant: questions.judged.map(({ relevant }) => relevant),
    onProgress: (done) => onProgress({ step: 'retrieving the pool', done, total: inputs.length }),
  });
  const found = await poolSources(options, questions, present, lists);
  const live = await retriever.select({ ...scope, signal });
  const pool = poolOf(found.sources, live, options);
  const tried = await triedEstimator(pool, questions, lists, options);
  try {
    const asNew = await presentAsNew(found.sources, live, questions, present, options);
    const report = makeReport({ ...found, begun, questions, present, pool, tried, asNew }, options);
    options.onReport?.(report);
    // Last: a run that is stopped before has its vectors for the next one.
    if (options.keepVectors !== true) await tried.vectors.remove();
    return report;
  } finally {
    tried.vectors.close();
  }
}

function refuseUnmeasurable(
  { read, unjudged, judged, relevant, missing, example }: JudgedQuestions,
  { info }: Retriever,
): void {
  if (judged.length === 0) {
    throw new TrawlError(
      'CORPUS_EMPTY',
      `None of the ${read} questions has a relevant passage (${unjudged} without judgements), so there is nothing to measure. Add gold_ids to the questions, or pass judgements for their ids.`,
    );
  }
  if (missing < relevant) return;
  throw new TrawlError(
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

async function poolSources(
  { others, records: paths, alsoBm25 }: TriageOptions,
  { judged }: JudgedQuestions,
  present: PresentLists,
  lists: ListSettings,
): Promise<Sources> {
  const relevant = new RowBitmap(lists.retriever.info.rows);
  for (const row of judged.flatMap((question) => question.relevant.flat())) relevant.add(row);
  const sources: PoolSource[] = [{ name: 'relevant', ofPresentEncoder: false, rows: relevant }, present.source];
  let unknownIds = 0;
  if (alsoBm25 && present.vectors !== undefined) sources.push(await searchedWords(lists));
  for (const other of others) {
    const found = await listsOfOther(other, lists);
    sources.push(found.source);
    unknownIds += found.unknownIds;
  }
  if (paths.length === 0) return { sources, records: undefined, unknownIds };
  const questions = judged.map(({ question }) => question);
  const records = await recordedLists(paths, questions, others, lists);
  return { sources: [...sources, ...records.sources], records, unknownIds: unknownIds + records.unknownIds };
}

interface TriedEstimator {
  readonly estimator: RecallEstimator;
  /** To be closed, and removed when nothing more can fail. */
  readonly vectors: PoolVectors;
}

/** Embeds the pool and the questions with the model that is tried, and searches the pool. */
async function triedEstimator(
  pool: Pool,
  { judged }: JudgedQuestions,
  { inputs, template }: ListSettings,
  options: TriageOptions,
): Promise<TriedEstimator> {
  const { retriever, encoder, cutoffs, work, searchThreads, onWarning, signal, onProgress } = options;
  const { generation } = retriever.info;
  const rows = new PoolRows(pool);
  const passageTemplate = parseTemplate(options.passageTemplate);
  const vectors = await embedPool({
    work,
    pool: JSON.stringify([generation, options.passageTemplate, rows.sha256]),
    count: rows.rows.length,
    texts: (first, count) => passageTexts(retriever, rows.rows.subarray(first, first + count), passageTemplate, signal),
    rowOf: (place) => rows.rows[place]!,
    encoder,
    checkpointMs: options.checkpointMs,
    onProgress: (done) => onProgress({ step: 'embedding the pool', done, total: rows.rows.length }),
    signal,
  });
  try {
    onProgress({ step: 'searching the pool', done: 0, total: 1 });
    const templated = inputs.map((input) => applyTemplate(input, template ?? encoder.identity.queryTemplate));
    const { vectors: queries, outcomes } = await encoder.encode(templated, { inputType: 'query', signal });
    for (const outcome of outcomes) if (!outcome.ok) throw outcome.error;
    const engine = await openEngine(vectors.source, { threads: searchThreads, onWarning });
    try {
      const places = await relevantPlaces({
        search: engineSearch(engine, queries, signal),
        chosen: rows.placesOf(pool.chosen),
        sampled: rows.placesOf(pool.sampled),
        relevant: judged.map(({ relevant }) =>
          relevant.map((ofPassage) => ofPassage.flatMap((row) => rows.placeOf(row) ?? [])),
        ),
        maxK: Math.max(...cutoffs),
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

async function passageTexts(
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

/**
 * The present encoder on a pool without what it retrieved itself: the relevant passages, the lists of all others, and a sample of as many
 * passages. Undefined if it has no vectors, or nothing is sampled.
 */
async function presentAsNew(
  sources: readonly PoolSource[],
  live: RowBitmap,
  { judged }: JudgedQuestions,
  { vectors }: PresentLists,
  { retriever, cutoffs, sample, seed, signal }: TriageOptions,
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
  });
  return new RecallEstimator(places, restOf(pool));
}

interface Findings extends Sources {
  readonly begun: number;
  readonly questions: JudgedQuestions;
  readonly present: PresentLists;
  readonly pool: Pool;
  readonly tried: TriedEstimator;
  /** The present encoder as if it were new. */
  readonly asNew: RecallEstimator | undefined;
}

export type TriageReport = ReturnType<typeof makeReport>;
export type RecallAt = TriageReport['recall'][number];

/** The report of a trial: recall at each k with its interval, the verdict of the gate, and what the trial took. */
function makeReport(
  { begun, questions, sources, records, unknownIds, present, pool, tried, asNew }: Findings,
  { retriever, encoder, cutoffs, seed, gate, depth, sample }: TriageOptions,
) {
  const [chosen, sampled] = [pool.chosen.count(), pool.sampled.count()];
  const hasEstimate = sampled > 0 || chosen === pool.whole;
  const estimate = (values: Float64Array): Estimate => ({
    value: meanOf(values),
    ...(bootstrapInterval(values, seed) ?? { low: null, high: null }),
  });
  const recall = cutoffs.map((k) => {
    const whole = present.recalls(k);
    const estimated = tried.estimator.recalls('tail', k);
    return {
      k,
      tried: {
        /** In the pool alone. Recall in the whole index cannot be higher for these questions. */
        bound: estimate(tried.estimator.recalls('bound', k)),
        /** The estimate for the whole index; `counts` with each sampled passage counted as often as its share says. Null without a sample. */
        estimate: hasEstimate ? estimate(estimated) : null,
        counts: hasEstimate ? meanOf(tried.estimator.recalls('counts', k)) : null,
      },
      present: {
        whole: estimate(whole),
        /**
         * The same encoder on a pool without what it has retrieved itself, as if it were new: what the trial would have said of it. Null
         * if the index has no vectors, or the pool has no sample.
         */
        asNew:
          asNew === undefined
            ? null
            : {
                bound: meanOf(asNew.recalls('bound', k)),
                estimate: meanOf(asNew.recalls('tail', k)),
                counts: meanOf(asNew.recalls('counts', k)),
              },
      },
      /** Estimate of the model that is tried minus `whole` of the present encoder, question by question. Null without an estimate. */
      change: hasEstimate ? estimate(estimated.map((value, i) => value - whole[i]!)) : null,
    };
  });
  const decisive = recall.find(({ k }) => k === gate.k);
  if (decisive === undefined) throw bug(`the gate's k ${gate.k} is none of the cutoffs`);
  const threshold = thresholdOf(gate, decisive.present.whole.value);
  const { info } = retriever;
  const { name, sha256, precision, dimension } = encoder.identity;
  const { read, judged, unjudged, relevant, missing } = questions;
  const { embedMs, resumed } = tried.vectors;
  const poolCount = chosen + sampled;
  return {
    index: { name: info.index, generation: info.generation, model: info.model?.name ?? null },
    model: { name, sha256, precision, dimension },
    /** `relevant`: relevant passages of the judged questions; `missing`: those that the index does not have, so that no model finds them. */
    questions: { read, judged: judged.length, unjudged, relevant, missing },
    passages: {
      /** Passages that a search may find. */
      whole: pool.whole,
      pool: poolCount,
      chosen,
      sampled,
      sources: sources.map((source) => ({ name: source.name, passages: source.rows.count() })),
      /** Distinct ids in lists of other generations that this index does not have. */
      unknownIds,
    },
    /** Records read, and those that belong to none of the questions; null without records. */
    records: records === undefined ? null : { read: records.records, ofOtherQuestions: records.ofOtherQuestions },
    settings: { depth, sample, seed },
    recall,
    gate,
    /** What the gate asked for: the larger of `minRecall` and present recall − `maxDrop`; null without a gate. */
    threshold,
    verdict: verdictOf(decisive.tried, threshold),
    /** Differs from run to run; everything else is the same, bit for bit, for the same inputs. */
    times: {
      /** Time spent on embedding the pool, by this run and those that it resumed. */
      embedMs,
      resumed,
      passagesPerSecond: (1000 * poolCount) / embedMs,
      /** What embedding the whole index would take at that speed. */
      wholeMs: (embedMs * pool.whole) / poolCount,
      totalMs: performance.now() - begun,
    },
  };
}
