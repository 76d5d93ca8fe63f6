import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { DEFAULT_PASSAGE_TEMPLATE } from '../../corpus/passage-template.ts';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import type { Judgements } from '../../evaluation/judgements.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { judgementsOf, type Question } from '../../evaluation/read-questions.ts';
import { buildIndex } from '../../indexer/building/build-index.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { Random } from '../../src/base/random.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { ModelReranker } from '../../src/encoder/rerank/model-reranker.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import type { RetrieveCall } from '../../src/search/calls/retrieve-call.ts';
import { hybridSettings } from '../../src/search/hybrid/hybrid-settings.ts';
import { openRetriever } from '../../src/search/opening/open-retriever.ts';
import type { Retriever } from '../../src/search/retriever.ts';
import type { SearchMode } from '../../src/search/search-mode.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { requiredKernel } from '../lexical/bench-bm25.ts';
import { corpusPaths } from '../lexical/lexical-corpora.ts';

const K = 10;
/** A depth of hybrid search beside its default. */
const SHORTER_LISTS = 100;
const MODES: readonly SearchMode[] = ['dense', 'bm25', 'hybrid'];
/** Shares of the passages that filters keep, in percent. */
const PERCENTAGES = [50, 10, 1];
/** Values of the column `part`, which a passage gets at random. */
const PARTS = 10_000;
/** Questions that are searched together for the recall. */
const BATCH_QUESTIONS = 256;

export interface ModeRecord {
  /** Mode, and what is added to it: `bm25, 10 %` or `hybrid, reranked 50`. */
  readonly case: string;
  readonly mode: SearchMode;
  /** Passages that may be found. */
  readonly passing: number;
  /** Questions with a judged passage that may be found. Recall is their mean, among the judged passages that may be found. */
  readonly judged: number;
  readonly recallAt10: number;
  /** Time of a question that is searched alone, embedding and reading its passages included, in milliseconds. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

export interface BenchModesOptions {
  readonly corpus: readonly string[];
  /** Questions with gold ids. */
  readonly queryTexts: string;
  /** The first questions of the file that are used. Undefined: all. */
  readonly questions: number | undefined;
  readonly model: string;
  /** A cross-encoder. Undefined: no reranked searches. */
  readonly rerank: string | undefined;
  /** Hits that it scores. */
  readonly rerankDepth: number;
  readonly threads: number;
  readonly seed: number;
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchModesResult {
  readonly environment: Environment;
  readonly rows: number;
  readonly model: string;
  readonly records: readonly ModeRecord[];
}

/** Builds an index of the corpus, and measures recall and latency of each way to rank, and of filters. */
export async function benchModes(options: BenchModesOptions): Promise<BenchModesResult> {
  const { model, threads, scratch, signal, note } = options;
  const load = loadNow();
  const kernel = requiredKernel();
  kernel.setThreads(threads);
  const questions = (await readQuestionSet(options.queryTexts)).questions.slice(0, options.questions);
  const judgements = judgementsOf(questions);
  if (judgements.size === 0) {
    throw new TrawlError(
      'USAGE',
      `${options.queryTexts} has no gold_ids. Give questions with the ids of their passages.`,
    );
  }
  const { path, partOf } = await corpusWithParts(options);
  const encoder = await openEncoder(model, { workers: threads });
  const out = join(scratch, 'index');
  note(`embedding ${partOf.size} passages`);
  await buildIndex({
    corpus: [path],
    corpusOptions: {},
    encoder,
    kernel,
    out,
    bm25: bm25Settings({ analyser: 'english', k1: 0.9, b: 0.4, fields: ['contents'] }),
    columns: [{ name: 'part', type: 'number' }],
    overwrite: false,
    passageTemplate: DEFAULT_PASSAGE_TEMPLATE,
    uniqueIds: false,
    onProgress: () => undefined,
    signal,
  }).finally(() => encoder.close());
  const reranker =
    options.rerank === undefined ? undefined : await ModelReranker.open(options.rerank, { workers: threads });
  const retriever = await openRetriever(out, { model, encoderThreads: threads, searchThreads: threads, reranker });
  try {
    const { rows } = retriever.info;
    const measure = (name: string, call: Omit<RetrieveCall, 'queries' | 'k'> & { mode: SearchMode }, passes?: number) =>
      measured(name, call, { retriever, questions, judgements, partOf, below: passes ?? PARTS, options });
    const records: ModeRecord[] = [];
    for (const mode of MODES) records.push(await measure(mode, { mode }));
    const hybrid = hybridSettings({ depth: SHORTER_LISTS }, K);
    records.push(await measure(`hybrid, depth ${SHORTER_LISTS}`, { mode: 'hybrid', hybrid }));
    if (reranker !== undefined) {
      const depth = options.rerankDepth;
      for (const mode of MODES) records.push(await measure(`${mode}, reranked ${depth}`, { mode, rerank: { depth } }));
    }
    for (const mode of MODES) {
      for (const percent of PERCENTAGES) {
        const below = (PARTS * percent) / 100;
        const filter = { column: 'part', op: '<', value: below } as const;
        records.push(await measure(`${mode}, ${percent} %`, { mode, filter }, below));
      }
    }
    return {
      environment: environment({ kernel, engines: [], loadBefore: load, bandwidthGbPerS: null }),
      rows,
      model: retriever.info.model!.name,
      records,
    };
  } finally {
    await retriever.close();
    await reranker?.close();
  }
}

async function measured(
  name: string,
  call: Omit<RetrieveCall, 'queries' | 'k'> & { readonly mode: SearchMode },
  {
    retriever,
    questions,
    judgements,
    partOf,
    below,
    options,
  }: {
    readonly retriever: Retriever;
    readonly questions: readonly Question[];
    readonly judgements: Judgements;
    readonly partOf: ReadonlyMap<string, number>;
    readonly below: number;
    readonly options: BenchModesOptions;
  },
): Promise<ModeRecord> {
  const { signal, note } = options;
  note(name);
  const mayBeFound = (id: string): boolean => (partOf.get(id) ?? PARTS) < below;
  const judged: Judgements = new Map(
    [...judgements]
      .map(([id, grades]) => [id, new Map([...grades].filter(([passage]) => mayBeFound(passage)))] as const)
      .filter(([, grades]) => grades.size > 0),
  );
  const search = async (some: readonly Question[]): Promise<[string, { id: string; score: number }[]][]> => {
    throwIfCancelled(signal);
    const { outcomes } = await retriever.retrieve({ ...call, queries: some.map(textOf), k: K, signal });
    return outcomes.map((outcome, i) => {
      if (!outcome.ok) throw outcome.error;
      const ids = outcome.hits.map(({ document, score }) => ({ id: documentFields(document).id ?? '', score }));
      return [some[i]!.id, ids];
    });
  };
  const run = new Map<string, { id: string; score: number }[]>();
  for (let start = 0; start < questions.length; start += BATCH_QUESTIONS) {
    for (const [id, hits] of await search(questions.slice(start, start + BATCH_QUESTIONS))) run.set(id, hits);
  }
  const samples: number[] = [];
  for (const question of questions) {
    const begun = performance.now();
    await search([question]);
    samples.push(performance.now() - begun);
  }
  const { means } = evaluateRun({ queryIds: [...judged.keys()], run, judgements: judged, cutoffs: [K] });
  const sorted = sortedSamples(samples);
  return {
    case: name,
    mode: call.mode,
    passing: [...partOf.values()].filter((part) => part < below).length,
    judged: judged.size,
    recallAt10: means[`recall@${K}`] ?? 0,
    p50Ms: median(sorted),
    p99Ms: percentile(sorted, 99),
  };
}

const textOf = ({ question, query }: Question): string => query ?? question;

/** The corpus with a random `part` in each passage, which filters use. */
async function corpusWithParts(
  options: BenchModesOptions,
): Promise<{ readonly path: string; readonly partOf: ReadonlyMap<string, number> }> {
  const { seed, scratch, signal } = options;
  const random = new Random(seed, PARTS, 0);
  const partOf = new Map<string, number>();
  const path = join(scratch, 'corpus.jsonl');
  const file = await open(path, 'w');
  try {
    for await (const { row } of openCorpus(corpusPaths(options), { signal, checksums: false })) {
      const json = JSON.stringify({ ...row, part: random.below(PARTS) });
      await file.write(`${json}\n`);
      partOf.set(documentFields(json).id ?? '', (JSON.parse(json) as { part: number }).part);
    }
  } finally {
    await file.close();
  }
  return { path, partOf };
}
