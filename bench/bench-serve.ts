import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { throwIfCancelled } from '../src/abort.ts';
import { openIndexDirectory } from '../src/retrieval/index-directory.ts';
import { loadNow, type MachineFacts, machineFacts } from './environment.ts';
import type { LoadPlan, LoadResult, QueryAnswer } from './load-plan.ts';
import { EngineUnavailable, ScriptProcess } from './script-process.ts';
import { readSearchCalls, type SearchCall } from './search-calls.ts';
import { AnswerCheck } from './serve-answers.ts';
import { type ServeRecord, serveRecords } from './serve-case.ts';
import { type BaselineOptions, baselineOf, type Contender, contendersFor, FREE, SWITCHES } from './serve-contenders.ts';
import { knownServeOptions, type ServeEngine } from './serve-engine.ts';
import { required, type ServedIndexOptions, SHARED, sampleIndex, servedIndex } from './serve-index.ts';
import { LOAD_KINDS, type ServeLoad } from './serve-loads.ts';

export interface BenchServeOptions extends ServedIndexOptions, BaselineOptions {
  readonly loads: readonly ServeLoad[];
  /** Timed repetitions of each load for each engine. */
  readonly runs: number;
  /** That a repetition of a load without an end of its own takes. */
  readonly seconds: number;
  /** Recorded search calls. */
  readonly calls: string | undefined;
  readonly seed: number;
  readonly scratch: string;
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
const GENERATOR = fileURLToPath(new URL('./load-generator.js', import.meta.url));
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
    const known = await knownServeOptions(SWITCHES);
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

function oneLine({ load, engine, queriesPerS, p50Ms, p99Ms, errors, wrong, ratioToBaseline }: ServeRecord): string {
  const ratio = ratioToBaseline === null ? '' : `, ${ratioToBaseline.toFixed(2)} × the baseline`;
  return `${load}: ${engine}: ${queriesPerS.toFixed(1)} queries/s, p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms, ${errors} errors, ${wrong} wrong${ratio}`;
}
