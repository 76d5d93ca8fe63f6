import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { evaluateRun } from '../../evaluation/evaluate-run.ts';
import { readQuestionSet } from '../../evaluation/question-set.ts';
import { judgementsOf, type Question } from '../../evaluation/read-questions.ts';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { SEARCH_MODES, type SearchMode } from '../../src/search/search-mode.ts';
import { loadNow, type MachineFacts, machineFacts } from '../environment.ts';
import { openBm25Baselines, requiredKernel } from '../lexical/bench-bm25.ts';
import { givenCorpus, queryLists } from '../lexical/lexical-corpora.ts';
import type { Bm25Baseline } from '../lexical/lexical-engine.ts';
import { openTrawlBm25 } from '../lexical/trawl-engine.ts';
import { EngineUnavailable } from '../script-process.ts';
import { type BaselineOptions, baselineOf } from '../serve/serve-contenders.ts';
import { type ServeEngine, startTrawl } from '../serve/serve-engine.ts';
import { bm25Library, type QuestionEngine, searchR1OverHttp, trawlOverHttp } from './question-engine.ts';
import { vectorLibraries } from './vector-libraries.ts';

const K = 10;
const PAUSE_MS = 300;

/** A way to answer questions: how many relevant passages it finds, how fast, in how much memory. bench/README.md defines the fields. */
interface QuestionRecord {
  readonly case: 'questions';
  readonly engine: string;
  readonly version: string;
  readonly mode: SearchMode;
  /** efSearch of a graph; null, or absent in older files: it is no graph. */
  readonly effort?: number | null;
  readonly over: QuestionEngine['over'];
  readonly passages: number;
  readonly questions: number;
  readonly runs: number;
  readonly recallAt10: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly residentBytes: number | null;
}

export interface BenchQuestionsOptions extends BaselineOptions {
  /** An index of the corpus with vectors and words. */
  readonly index: string;
  /** The corpus of the index, one file of JSON lines. */
  readonly corpus: string;
  /** Questions with gold_ids. */
  readonly queryTexts: string;
  /** The first questions of the file that are used. */
  readonly questions: number;
  readonly words: readonly Bm25Baseline[];
  /** Settings of the graphs (efSearch). */
  readonly efforts: readonly number[];
  readonly runs: number;
  readonly seed: number;
  readonly scratch: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchQuestionsResult {
  readonly environment: MachineFacts;
  readonly passages: number;
  readonly records: readonly QuestionRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** Asks the same questions of servers and of libraries of vectors and of words, in turns. */
export async function benchQuestions(options: BenchQuestionsOptions): Promise<BenchQuestionsResult> {
  const { signal, note } = options;
  const loadBefore = loadNow();
  const all = (await readQuestionSet(options.queryTexts)).questions;
  const questions = all.filter(({ goldIds }) => (goldIds?.length ?? 0) > 0).slice(0, options.questions);
  if (questions.length === 0) {
    throw new TrawlError(
      'USAGE',
      `${options.queryTexts} has no questions with gold_ids. Give others with --query-texts.`,
    );
  }
  const idOfRow: string[] = [];
  for await (const { document } of openCorpus([options.corpus], { signal, checksums: false })) {
    idOfRow.push(documentFields(document).id ?? '');
  }
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`Skipped ${engine}: ${reason}`);
  };
  const servers: ServeEngine[] = [];
  const engines: QuestionEngine[] = [];
  const close = async (): Promise<void> => {
    await Promise.all([...engines, ...servers].map((engine) => engine.close()));
  };
  const stop = (): void => void close();
  signal.addEventListener('abort', stop);
  try {
    const trawl = await startTrawl('trawl', options.index, ['--no-single-flight', '--cache-bytes', '0']);
    servers.push(trawl);
    engines.push(...SEARCH_MODES.map((mode) => trawlOverHttp(trawl, mode, K)));
    const baseline = await baselineOf(options, options.index, skip);
    if (baseline !== undefined) {
      try {
        const server = await baseline();
        servers.push(server);
        engines.push(searchR1OverHttp(server, K));
      } catch (error) {
        if (!(error instanceof EngineUnavailable)) throw error;
        skip(options.against[0]!, error.message);
      }
    }
    engines.push(...(await vectorLibraries(options, questions.map(textOf), { k: K, idOfRow }, skip)));
    engines.push(...(await wordEngines(options, questions, idOfRow, skip)));
    const records = await measure(engines, questions, { options, passages: idOfRow.length, skip });
    return { environment: machineFacts({ engines, loadBefore }), passages: idOfRow.length, records, skipped };
  } finally {
    signal.removeEventListener('abort', stop);
    await close();
  }
}

/** Each run asks every engine, so that other work on the machine slows all of them alike. */
async function measure(
  measured: readonly QuestionEngine[],
  asked: readonly Question[],
  {
    options,
    passages,
    skip,
  }: {
    readonly options: BenchQuestionsOptions;
    readonly passages: number;
    skip(engine: string, reason: string): void;
  },
): Promise<QuestionRecord[]> {
  const { runs, signal, note } = options;
  const texts = asked.map(textOf);
  const judgements = judgementsOf(asked);
  const samples = new Map(measured.map((engine) => [engine, { ms: [] as number[], recall: 0 }]));
  // Run -1 warms up and gives the recall; answers are the same in every run.
  for (let run = -1; run < runs; run++) {
    for (const [engine, sample] of samples) {
      throwIfCancelled(signal);
      await sleep(PAUSE_MS);
      try {
        const { ms, ids } = await engine.ask(texts);
        if (run >= 0) sample.ms.push(...ms);
        else {
          const hits = ids.map((list) => list.map((id, rank) => ({ id, score: -rank })));
          const found = new Map(asked.map(({ id }, i) => [id, hits[i]!]));
          const { means } = evaluateRun({ queryIds: [...judgements.keys()], run: found, judgements, cutoffs: [K] });
          sample.recall = means[`recall@${K}`] ?? 0;
        }
      } catch (error) {
        throwIfCancelled(signal);
        if (engine.name === 'trawl') throw error;
        skip(engine.name, (error as Error).message);
        samples.delete(engine);
      }
    }
    note(run < 0 ? 'measured: the recall' : `measured: run ${run + 1} of ${runs}`);
  }
  const records: QuestionRecord[] = [];
  for (const [engine, { ms, recall }] of samples) {
    const sorted = sortedSamples(ms);
    records.push({
      case: 'questions',
      engine: engine.name,
      version: engine.version,
      mode: engine.mode,
      effort: engine.effort ?? null,
      over: engine.over,
      passages,
      questions: asked.length,
      runs,
      recallAt10: recall,
      p50Ms: median(sorted),
      p99Ms: percentile(sorted, 99),
      residentBytes: await engine.residentBytes(),
    });
  }
  return records;
}

const textOf = ({ question, query }: Question): string => query ?? question;

/** BM25 libraries over the same passages: Trawl's own engine, Lucene and bm25s. */
async function wordEngines(
  options: BenchQuestionsOptions,
  questions: readonly Question[],
  idOfRow: readonly string[],
  skip: (engine: string, reason: string) => void,
): Promise<QuestionEngine[]> {
  const { corpus, words, scratch, signal } = options;
  const kernel = requiredKernel();
  const asked = join(scratch, 'asked.jsonl');
  await writeFile(
    asked,
    questions.map((question) => `${JSON.stringify({ id: question.id, question: textOf(question) })}\n`).join(''),
  );
  const files = { ...options, corpus: [corpus], rows: 0, kernel, withTerms: true };
  const passages = await givenCorpus(files);
  const [list] = await queryLists({ ...options, queryTexts: asked, calls: undefined, kernel });
  const folder = join(scratch, 'words');
  await mkdir(folder);
  const path = join(folder, 'trawl.bm25');
  const engines = [
    await openTrawlBm25(passages, { kernel, threads: options.threads, path, signal }),
    ...(await openBm25Baselines(passages, folder, { ...options, against: words }, skip)),
  ];
  for (const engine of engines) await engine.useQueries(list!);
  return engines.map((engine) => bm25Library(engine, K, idOfRow));
}
