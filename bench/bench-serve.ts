import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { throwIfCancelled } from '../src/abort.ts';
import { readModelFolder } from '../src/embedding/model-folder.ts';
import { TrawlError } from '../src/errors.ts';
import { packageRoot } from '../src/package-root.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { baselinePython } from './baselines.ts';
import { loadNow, type MachineFacts, machineFacts } from './environment.ts';
import type { LoadPlan, LoadResult, QueryAnswer } from './load-plan.ts';
import { EngineUnavailable, ScriptProcess } from './script-process.ts';
import { readSearchCalls, type SearchCall } from './search-calls.ts';
import { AnswerCheck } from './serve-answers.ts';
import { type ServeRecord, serveRecords } from './serve-case.ts';
import {
  knownServeOptions,
  type ServeBaseline,
  type ServeEngine,
  startBaseline,
  startIdleServer,
  startTrawl,
  startTrivialServer,
  TRAWL,
} from './serve-engine.ts';
import { LOAD_KINDS, type ServeLoad } from './serve-loads.ts';

export interface BenchServeOptions {
  readonly loads: readonly ServeLoad[];
  /** Timed repetitions of each load for each engine. */
  readonly runs: number;
  /** That a repetition of a load without an end of its own takes. */
  readonly seconds: number;
  /** The encoder; undefined: the index's. */
  readonly model: string | undefined;
  /** The checkpoint for the baseline; undefined: the model's folder, where it holds one. */
  readonly baselineModel: string | undefined;
  /** An index of the corpus; undefined: built in the cache. */
  readonly index: string | undefined;
  /** JSON lines. */
  readonly corpus: string | undefined;
  /** Recorded search calls. */
  readonly calls: string | undefined;
  readonly against: readonly ServeBaseline[];
  readonly threads: number;
  readonly seed: number;
  readonly cache: string;
  readonly scratch: string;
  readonly python: string | undefined;
  readonly signal: AbortSignal;
  note(text: string): void;
}

export interface BenchServeResult {
  readonly environment: MachineFacts;
  readonly index: string;
  readonly rows: number;
  readonly model: string;
  readonly records: readonly ServeRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** As in flat-case.ts: threads of OpenMP go on spinning after their work. */
const SETTLE_MS = 500;
/** What an engine is asked before anything counts: JavaScript is compiled while it runs. At most twice a repetition. */
const WARM_UP_S = 8;
const WARM_UP_CLIENTS = 16;
const WARM_UP_QUERIES = 10_000;
/** Options of `trawl serve` that switch off what answers a query without computing it. */
const WITHOUT = { 'single-flight': ['--no-single-flight'], cache: ['--cache-bytes', '0'] } as const;
const GENERATOR = fileURLToPath(new URL('./load-generator.js', import.meta.url));
const SHARED = join(packageRoot, '..', 'shared', 'data');
const SAMPLE_CORPUS = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
const FREE: readonly ServeLoad[] = ['free-encoder', 'free-encoder-batch', 'generator'];

/** What a load is put on: opened anew for each repetition where what it remembers would answer the next one. */
interface Contender {
  readonly name: string;
  readonly isBaseline: boolean;
  readonly fresh: boolean;
  open(): Promise<ServeEngine>;
}

/** Starts the servers and puts them under each load in turns. */
export async function benchServe(options: BenchServeOptions): Promise<BenchServeResult> {
  const { signal, note, loads } = options;
  const loadBefore = loadNow();
  const calls = await readSearchCalls(
    options.calls ?? required('calls', join(SHARED, 'search_calls', 'all_search_calls.jsonl')),
  );
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`${engine} is left out: ${reason}`);
  };
  const open = new Map<string, ServeEngine>();
  const generator = new ScriptProcess<LoadResult>('load generator', process.execPath, [GENERATOR]);
  const stop = (): void => {
    void generator.close();
    for (const engine of open.values()) void engine.close();
  };
  signal.addEventListener('abort', stop);
  try {
    const needsModel = loads.some((load) => !FREE.includes(load));
    const index = needsModel ? await servedIndex(options) : await sampleIndex(options);
    const freeIndex = loads.some((load) => FREE.includes(load)) ? await sampleIndex(options) : index;
    const known = await knownServeOptions([WITHOUT['single-flight'][0], WITHOUT.cache[0]]);
    const baseline = needsModel ? await baselineOf(options, index, skip) : undefined;
    const records: ServeRecord[] = [];
    const versions = new Map<string, { version: string }>();
    for (const load of loads) {
      const contenders = contendersFor(load, { index, freeIndex, known, baseline });
      const own = await measure(load, contenders, { options, calls, generator, open, versions, skip });
      records.push(...own);
      for (const record of own) note(oneLine(record));
    }
    const { manifest } = openIndexDirectory(index);
    return {
      environment: machineFacts({ engines: [...versions.values()], loadBefore }),
      index,
      rows: manifest.rows,
      model: manifest.model.name,
      records,
      skipped,
    };
  } finally {
    signal.removeEventListener('abort', stop);
    await Promise.all([generator.close(), ...Array.from(open.values(), (engine) => engine.close())]);
  }
}

function contendersFor(
  load: ServeLoad,
  {
    index,
    freeIndex,
    known,
    baseline,
  }: {
    index: string;
    freeIndex: string;
    known: ReadonlySet<string>;
    baseline: (() => Promise<ServeEngine>) | undefined;
  },
): Contender[] {
  if (load === 'generator') {
    return [{ name: 'a server that does nothing', isBaseline: false, fresh: false, open: startTrivialServer }];
  }
  if (FREE.includes(load)) {
    const open = (): Promise<ServeEngine> => startIdleServer(freeIndex);
    return [{ name: 'trawl, free encoder', isBaseline: false, fresh: false, open }];
  }
  const ours = (without: readonly (keyof typeof WITHOUT)[], fresh: boolean): Contender => {
    const args = without.map((what) => WITHOUT[what]).filter(([option]) => known.has(option));
    const name = ['trawl', ...args.flat()].join(' ');
    return { name, isBaseline: false, fresh, open: () => startTrawl(name, index, args.flat()) };
  };
  const contenders =
    load === 'rollouts'
      ? [
          ours([], true),
          ours(['single-flight'], true),
          ours(['cache'], true),
          ours(['single-flight', 'cache'], true),
        ].filter(({ name }, i, all) => all.findIndex((other) => other.name === name) === i)
      : [ours(['single-flight', 'cache'], false)];
  if (baseline !== undefined && LOAD_KINDS[load].compared) {
    contenders.push({ name: 'search-r1', isBaseline: true, fresh: false, open: baseline });
  }
  return contenders;
}

interface MeasureContext {
  readonly options: BenchServeOptions;
  readonly calls: readonly SearchCall[];
  readonly generator: ScriptProcess<LoadResult>;
  /** Running engines by name. */
  readonly open: Map<string, ServeEngine>;
  readonly versions: Map<string, { version: string }>;
  skip(engine: string, reason: string): void;
}

async function measure(load: ServeLoad, contenders: readonly Contender[], context: MeasureContext) {
  const { options, open, versions, skip } = context;
  const kind = LOAD_KINDS[load];
  const measured = new Map(contenders.map((contender) => [contender, { results: [] as LoadResult[], wrong: 0 }]));
  const check = new AnswerCheck();
  for (let repetition = 0; repetition < options.runs; repetition++) {
    for (const [contender, measurement] of measured) {
      throwIfCancelled(options.signal);
      try {
        // What is fresh may have the name of one that runs.
        const key = contender.fresh ? `${contender.name}, fresh` : contender.name;
        let engine = open.get(key);
        const isNew = engine === undefined;
        engine ??= await contender.open();
        open.set(key, engine);
        versions.set(contender.name, { version: engine.version });
        const lanes = kind.lanes({ calls: context.calls, repetition, seconds: options.seconds, seed: options.seed });
        if (isNew) await warmUp(engine, context, kind.topk);
        await sleep(SETTLE_MS);
        const { result, answers } = await runLoad(context, {
          port: engine.port,
          topk: kind.topk,
          lanes,
          keepAnswers: kind.checked,
        });
        measurement.results.push(result);
        measurement.wrong += check.wrong(answers);
        if (contender.fresh) {
          open.delete(key);
          await engine.close();
        }
      } catch (error) {
        throwIfCancelled(options.signal);
        if (!(error instanceof EngineUnavailable) || !contender.isBaseline) throw error;
        skip(contender.name, error.message);
        measured.delete(contender);
      }
    }
  }
  return serveRecords(
    load,
    kind,
    Array.from(measured, ([{ name, isBaseline }, rest]) => ({ engine: name, isBaseline, ...rest })),
  );
}

/** With queries that no load asks, for as long as a compiler takes to see what is asked often. */
async function warmUp({ port }: ServeEngine, context: MeasureContext, topk: number): Promise<void> {
  const sequences = Array.from({ length: WARM_UP_QUERIES }, (_, i) => [
    [`warming up${', and up'.repeat(i % 12)}, query number ${i}`],
  ]);
  const lane = {
    clients: WARM_UP_CLIENTS,
    sequences,
    keepAlive: true,
    seconds: Math.min(WARM_UP_S, 2 * context.options.seconds),
    pauseMs: 0,
    timed: true,
  };
  await runLoad(context, { port, topk, lanes: [lane], keepAnswers: false });
}

async function runLoad(
  { options, generator }: MeasureContext,
  plan: LoadPlan,
): Promise<{ result: LoadResult; answers: QueryAnswer[] }> {
  const files = { plan: join(options.scratch, 'plan.json'), answers: join(options.scratch, 'answers.json') };
  await writeFile(files.plan, JSON.stringify(plan));
  const result = await generator.ask({ do: 'run', ...files });
  return { result, answers: JSON.parse(await readFile(files.answers, 'utf8')) as QueryAnswer[] };
}

/** The index that is named, or one of the corpus in the cache, built where it is not there yet. */
async function servedIndex({ index, model, corpus, cache, signal, note }: BenchServeOptions): Promise<string> {
  if (index !== undefined) return resolve(index);
  if (model === undefined) {
    throw new TrawlError('USAGE', '`trawl bench serve` needs --model, the encoder, or --index, an index made with it.');
  }
  const { identity, folder } = await readModelFolder(model);
  const out = join(cache, `serve-index-${identity.sha256.slice(0, 12)}`);
  await mkdir(cache, { recursive: true });
  const passages = corpus ?? required('corpus', join(SHARED, 'pool_wiki_dev', 'corpus.jsonl'));
  note(`The index ${out} (built once; with 80,000 paragraphs and all-MiniLM-L6-v2 some ten minutes on 2 cores)`);
  await runTrawl(['index', passages, '--model', folder, '--out', out, '--if-changed'], signal);
  return out;
}

async function sampleIndex({ cache, signal }: BenchServeOptions): Promise<string> {
  const out = join(cache, 'serve-index-sample');
  await mkdir(cache, { recursive: true });
  await runTrawl(['index', SAMPLE_CORPUS, '--out', out, '--if-changed', '--quiet'], signal);
  return out;
}

async function runTrawl(args: readonly string[], signal: AbortSignal): Promise<void> {
  // Its progress is for the person, not for a pipe.
  const child = spawn(process.execPath, [TRAWL, ...args], {
    signal,
    stdio: ['ignore', process.stderr, process.stderr],
  });
  const code = await new Promise<number | null>((settle, reject) => {
    child.on('error', reject);
    child.on('close', settle);
  });
  throwIfCancelled(signal);
  if (code !== 0) throw new TrawlError('USAGE', `trawl ${args.join(' ')} ended with ${code}.`);
}

/** How the baseline over the index's own vectors is started; undefined, and said, where it cannot be. */
async function baselineOf(
  options: BenchServeOptions,
  index: string,
  skip: (engine: string, reason: string) => void,
): Promise<(() => Promise<ServeEngine>) | undefined> {
  const [name] = options.against;
  if (name === undefined) return undefined;
  const python = options.python ?? baselinePython(options.cache, 'serve');
  const { source, manifest } = openIndexDirectory(index);
  const vectors = source.shards[0]?.segments[0]?.path;
  const corpus = options.corpus ?? join(SHARED, 'pool_wiki_dev', 'corpus.jsonl');
  const model =
    options.baselineModel ?? (options.model === undefined ? undefined : (await readModelFolder(options.model)).folder);
  const reason =
    python === undefined
      ? 'no Python environment: trawl bench baselines serve makes one'
      : model === undefined || !existsSync(join(model, 'config.json'))
        ? 'its checkpoint is not known: name the folder with --baseline-model'
        : vectors === undefined || source.shards.length > 1 || source.shards[0]!.segments.length > 1
          ? `${index} has more than one file of vectors, and faiss reads one`
          : !existsSync(corpus)
            ? `there is no corpus ${corpus}: name the index's with --corpus`
            : undefined;
  if (reason !== undefined) {
    skip(name, reason);
    return undefined;
  }
  const { prefixes, maxTokens } = manifest.model;
  return () =>
    startBaseline(name, {
      python: python!,
      threads: options.threads,
      model: resolve(model!),
      vectors: vectors!,
      corpus: resolve(corpus),
      prefix: prefixes.query,
      maxTokens: maxTokens.query,
      topk: 3,
    });
}

function required(option: string, path: string): string {
  if (existsSync(path)) return path;
  throw new TrawlError('USAGE', `\`trawl bench serve\` needs --${option}: ${path}, the default, is not there.`);
}

function oneLine({ load, engine, queriesPerS, p50Ms, p99Ms, errors, wrong, ratioToBaseline }: ServeRecord): string {
  const ratio = ratioToBaseline === null ? '' : `, ${ratioToBaseline.toFixed(2)} × the baseline`;
  return `${load}: ${engine}: ${queriesPerS.toFixed(1)} queries/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${errors} errors, ${wrong} wrong${ratio}`;
}
