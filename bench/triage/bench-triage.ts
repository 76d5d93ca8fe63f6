import { type Question, readQuestions } from '../../evaluation/read-questions.ts';
import { meanOf } from '../../evaluation/significance.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { RowBitmap } from '../../src/engine/row-bitmap.ts';
import { openEngine } from '../../src/engine/vectors/open-engine.ts';
import type { VectorIndex } from '../../src/engine/vectors/vector-index.ts';
import type { IndexManifest } from '../../src/index/manifest/index-manifest.ts';
import { type IndexDirectory, openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import { ESTIMATORS, type Estimator, RecallEstimator } from '../../training/triage/estimate-recall.ts';
import { judgedQuestions } from '../../training/triage/judged-questions.ts';
import { type PoolSource, poolOf } from '../../training/triage/pool.ts';
import { type PresentLists, presentLists } from '../../training/triage/pool-lists.ts';
import { engineSearch, relevantPlaces } from '../../training/triage/relevant-places.ts';

/** Values of k of recall@k. */
export const TRIAGE_CUTOFFS = [1, 5, 10] as const;

/** Estimate minus recall in the whole index, over the samples of several seeds. */
interface TriageError {
  readonly mean: number;
  /** The one that is farthest from 0. */
  readonly worst: number;
}

/** The errors of a trial at one k. */
export interface TriageRecord {
  /** Name of the index of the model that is tried. */
  readonly tried: string;
  /** Passages of each list of the present encoder that join the pool; 0: none do. */
  readonly depth: number;
  /** Retrieved or relevant passages, as a share of the index. */
  readonly chosenShare: number;
  /** Random passages, as a share of the others. */
  readonly sampleShare: number;
  readonly sampled: number;
  readonly k: number;
  /** recall@k in the whole index of the present encoder, and of the model that is tried. */
  readonly present: number;
  readonly whole: number;
  readonly errors: Readonly<Record<Estimator, TriageError>>;
}

export interface BenchTriageOptions {
  /** Index of the present encoder. */
  readonly index: string;
  /** Indexes of the same passages by the models that are tried. */
  readonly tried: readonly string[];
  /** Questions with gold ids. */
  readonly queryTexts: string;
  /** Questions that are used, evenly from the file. Undefined: all. */
  readonly questions: number | undefined;
  readonly depths: readonly number[];
  /** Shares of the rest that are sampled, in percent. */
  readonly samples: readonly number[];
  /** Samples that are drawn of each size. */
  readonly runs: number;
  readonly seed: number;
  readonly threads: number;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchTriageResult {
  readonly rows: number;
  readonly questions: number;
  readonly present: string;
  readonly records: readonly TriageRecord[];
}

/** An index with its questions embedded and searched. */
interface Searched {
  readonly name: string;
  readonly engine: VectorIndex;
  readonly queries: Float32Array;
  readonly lists: PresentLists;
}

/**
 * Estimates the recall of models from pools as `trawl triage` does, and compares the estimates with the recall in their whole indexes.
 *
 * @throws TrawlError USAGE if an index has other passages, CORPUS_EMPTY if no question has a relevant passage.
 */
export async function benchTriage(options: BenchTriageOptions): Promise<BenchTriageResult> {
  const { index, tried, depths, signal, note } = options;
  const directory = openIndexDirectory(index);
  const opened: { close(): Promise<void> }[] = [];
  try {
    const present = await openWithEngine(directory, opened, options);
    const all = await readQuestions(options.queryTexts);
    const chosen = evenly(all, options.questions ?? all.length);
    const { judged } = await judgedQuestions(chosen, undefined, { retriever: present.retriever, scope: {}, signal });
    if (judged.length === 0) {
      throw new TrawlError('CORPUS_EMPTY', `${options.queryTexts} has no question with gold_ids of ${index}.`);
    }
    const relevant = judged.map((question) => question.relevant);
    const questions = judged.map(({ question }) => question.query ?? question.question);
    const search = (found: OpenIndex): Promise<Searched> =>
      searched(found, questions, { relevant, depth: Math.max(...depths, 1), signal });
    const now = await search(present);
    const live = await present.retriever.select({ signal });
    const records: TriageRecord[] = [];
    for (const folder of tried) {
      const other = openIndexDirectory(folder);
      checkSamePassages(directory.manifest, other.manifest, folder);
      const found = await search(await openWithEngine(other, opened, options));
      for (const depth of depths) {
        const sources = await sourcesOf(present.retriever, questions, relevant, { depth, signal });
        for (const percent of options.samples) {
          throwIfCancelled(signal);
          note(`${found.name}, depth ${depth}, ${percent} % of the rest`);
          records.push(...(await errorsOf(found, now, { ...options, sources, live, relevant, depth, percent })));
        }
      }
    }
    return { rows: live.count(), questions: judged.length, present: now.name, records };
  } finally {
    await Promise.all(opened.map((part) => part.close()));
  }
}

async function errorsOf(
  { name, engine, queries, lists }: Searched,
  present: Searched,
  {
    sources,
    live,
    relevant,
    depth,
    percent,
    runs,
    seed,
    signal,
  }: BenchTriageOptions & {
    readonly sources: readonly PoolSource[];
    readonly live: RowBitmap;
    readonly relevant: readonly (readonly (readonly number[])[])[];
    readonly depth: number;
    readonly percent: number;
  },
): Promise<TriageRecord[]> {
  const whole = live.count();
  const chosen = poolOf(sources, live, { sample: 0, seed }).chosen.count();
  const sample = Math.round(((whole - chosen) * percent) / 100);
  const estimators: RecallEstimator[] = [];
  for (let run = 0; run < runs; run++) {
    const pool = poolOf(sources, live, { sample, seed: seed + run });
    const places = await relevantPlaces({
      search: engineSearch(engine, queries, signal),
      chosen: pool.chosen,
      sampled: pool.sampled,
      relevant,
      maxK: Math.max(...TRIAGE_CUTOFFS),
    });
    estimators.push(new RecallEstimator(places, { rest: whole - chosen, sampled: pool.sampled.count() }));
  }
  return TRIAGE_CUTOFFS.map((k) => {
    const truth = meanOf(lists.recalls(k));
    const errors = ESTIMATORS.map((estimator) => {
      const each = estimators.map((estimate) => meanOf(estimate.recalls(estimator, k)) - truth);
      const worst = each.reduce((one, other) => (Math.abs(other) > Math.abs(one) ? other : one), 0);
      return [estimator, { mean: meanOf(Float64Array.from(each)), worst }] as const;
    });
    return {
      tried: name,
      depth,
      chosenShare: chosen / whole,
      sampleShare: percent / 100,
      sampled: sample,
      k,
      present: meanOf(present.lists.recalls(k)),
      whole: truth,
      errors: Object.fromEntries(errors) as Record<Estimator, TriageError>,
    };
  });
}

interface OpenIndex {
  readonly retriever: Retriever;
  readonly engine: VectorIndex;
}

async function openWithEngine(
  { folder, source }: IndexDirectory,
  opened: { close(): Promise<void> }[],
  { threads }: BenchTriageOptions,
): Promise<OpenIndex> {
  const retriever = await openRetriever(folder, { modes: ['dense'], encoderThreads: threads, searchThreads: threads });
  opened.push(retriever);
  const engine = await openEngine(source!, { threads });
  opened.push(engine);
  return { retriever, engine };
}

async function searched(
  { retriever, engine }: OpenIndex,
  inputs: readonly string[],
  {
    relevant,
    depth,
    signal,
  }: { relevant: readonly (readonly (readonly number[])[])[]; depth: number; signal: AbortSignal },
): Promise<Searched> {
  const lists = await presentLists(
    { retriever, inputs, depth, scope: {}, signal },
    { maxK: Math.max(...TRIAGE_CUTOFFS), relevant },
  );
  const { dimension } = engine;
  const queries = new Float32Array(inputs.length * dimension);
  for (const [i, vector] of lists.vectors!.entries()) queries.set(vector, i * dimension);
  return { name: retriever.info.index, engine, queries, lists };
}

/** The relevant passages and, unless the depth is 0, the lists of the present encoder. */
async function sourcesOf(
  retriever: Retriever,
  inputs: readonly string[],
  relevant: readonly (readonly (readonly number[])[])[],
  { depth, signal }: { readonly depth: number; readonly signal: AbortSignal },
): Promise<PoolSource[]> {
  const rows = new RowBitmap(retriever.info.rows);
  for (const row of relevant.flat(2)) rows.add(row);
  const sources: PoolSource[] = [{ name: 'relevant', ofPresentEncoder: false, rows }];
  if (depth === 0) return sources;
  const settings = { retriever, inputs, depth, scope: {}, signal };
  const { source } = await presentLists(settings, { maxK: 1, relevant });
  return [...sources, source];
}

function checkSamePassages(present: IndexManifest, other: IndexManifest, folder: string): void {
  const sums = ({ corpus }: IndexManifest): string => corpus.files.map(({ sha256 }) => sha256).join(',');
  if (present.rows === other.rows && sums(present) === sums(other)) return;
  throw new TrawlError(
    'USAGE',
    `${folder} has other passages than --index. Build both from the same corpus files, in the same order.`,
  );
}

function evenly(questions: readonly Question[], count: number): Question[] {
  const wanted = Math.min(count, questions.length);
  return Array.from({ length: wanted }, (_, i) => questions[Math.floor((i * questions.length) / wanted)]!);
}
