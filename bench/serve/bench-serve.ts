import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { throwIfCancelled } from '../../src/base/abort.ts';
import type { Precision } from '../../src/encoder/identity/model-identity.ts';
import { readModelFolder } from '../../src/encoder/model/model-folder.ts';
import { requireVectors } from '../../src/index/manifest/index-manifest.ts';
import { openIndexDirectory } from '../../src/search/opening/index-directory.ts';
import { loadNow, type MachineFacts, machineFacts } from '../environment.ts';
import { EngineUnavailable, ScriptProcess } from '../script-process.ts';
import type { LoadPlan, LoadResult, QueryAnswer } from './load-plan.ts';
import { readSearchCalls, type SearchCall } from './search-calls.ts';
import { AnswerCheck } from './serve-answers.ts';
import { type ServeRecord, serveRecords } from './serve-case.ts';
import { type BaselineOptions, baselineOf, type Contender, contendersFor, WITHOUT_MODEL } from './serve-contenders.ts';
import type { ServeEngine } from './serve-engine.ts';
import { required, type ServedIndexOptions, SHARED, sampleIndex, servedIndex } from './serve-index.ts';
import { LOADS, type ServeLoad } from './serve-loads.ts';

export interface BenchServeOptions extends ServedIndexOptions, BaselineOptions {
  readonly loads: readonly ServeLoad[];
  /** Of Trawl's queries. Undefined: that of the index. */
  readonly precision: Precision | undefined;
  /** Timed repetitions of each load for each engine. */
  readonly runs: number;
  /** Duration of a repetition, for loads that do not end by themselves. */
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

/** Pause before each load: threads of OpenMP spin after their work. */
const PAUSE_MS = 500;
/** Warm-up of each server, in which its JavaScript is compiled. It takes at most as long as two repetitions. */
const WARM_UP_S = 8;
const WARM_UP_CLIENTS = 16;
const WARM_UP_QUERIES = 10_000;
const GENERATOR = fileURLToPath(new URL('./load-generator.js', import.meta.url));

/** Starts the servers and measures them alternately under each load. */
export async function benchServe(options: BenchServeOptions): Promise<BenchServeResult> {
  const { signal, note, loads } = options;
  const loadBefore = loadNow();
  const calls = await readSearchCalls(
    options.calls ?? required('calls', join(SHARED, 'search_calls', 'all_search_calls.jsonl')),
  );
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`Skipped ${engine}: ${reason}`);
  };
  const open = new Map<string, ServeEngine>();
  const generator = new ScriptProcess<LoadResult>('load generator', process.execPath, [GENERATOR]);
  const stop = (): void => {
    void generator.close();
    for (const engine of open.values()) void engine.close();
  };
  signal.addEventListener('abort', stop);
  try {
    const needsModel = loads.some((load) => !WITHOUT_MODEL.includes(load));
    const index = needsModel ? await servedIndex(options) : await sampleIndex(options);
    const model = needsModel && options.model !== undefined ? (await readModelFolder(options.model)).folder : undefined;
    const plainIndex = loads.some((load) => WITHOUT_MODEL.includes(load)) ? await sampleIndex(options) : index;
    const baseline = needsModel ? await baselineOf(options, index, skip) : undefined;
    const records: ServeRecord[] = [];
    const versions = new Map<string, { version: string }>();
    for (const load of loads) {
      const contenders = contendersFor(load, { index, plainIndex, model, baseline, precision: options.precision });
      const own = await measure(load, contenders, { options, calls, generator, open, versions, skip });
      records.push(...own);
      for (const record of own) note(oneLine(record));
    }
    const { manifest } = openIndexDirectory(index);
    return {
      environment: machineFacts({ engines: [...versions.values()], loadBefore }),
      index,
      rows: manifest.rows,
      model: requireVectors(index, manifest).model.name,
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
  /** Running servers by name. */
  readonly open: Map<string, ServeEngine>;
  readonly versions: Map<string, { version: string }>;
  skip(engine: string, reason: string): void;
}

async function measure(load: ServeLoad, contenders: readonly Contender[], context: MeasureContext) {
  const { options, open, versions, skip } = context;
  const definition = LOADS[load];
  const measured = new Map(
    contenders.map((contender) => [
      contender,
      { results: [] as LoadResult[], wrong: 0, residentBytes: null as number | null },
    ]),
  );
  const check = new AnswerCheck();
  for (let repetition = 0; repetition < options.runs; repetition++) {
    for (const [contender, measurement] of measured) {
      throwIfCancelled(options.signal);
      try {
        // Another load may have a running server of the same name.
        const key = contender.restart ? `${contender.name}, restarted` : contender.name;
        let engine = open.get(key);
        const isNew = engine === undefined;
        engine ??= await contender.open();
        open.set(key, engine);
        versions.set(contender.name, { version: engine.version });
        const groups = definition.groups({
          calls: context.calls,
          repetition,
          seconds: options.seconds,
          seed: options.seed,
        });
        if (isNew) await warmUp(engine, context, definition.topk);
        await sleep(PAUSE_MS);
        const { result, answers } = await runLoad(context, {
          port: engine.port,
          topk: definition.topk,
          groups,
          keepAnswers: definition.checksAnswers,
        });
        measurement.results.push(result);
        measurement.wrong += check.wrong(answers, contender.precision);
        measurement.residentBytes = await engine.residentBytes();
        if (contender.restart) {
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
    definition,
    Array.from(measured, ([{ name, isBaseline }, rest]) => ({ engine: name, isBaseline, ...rest })),
  );
}

/** Sends queries that no load sends, so that the measured queries are not cached. */
async function warmUp({ port }: ServeEngine, context: MeasureContext, topk: number): Promise<void> {
  const sequences = Array.from({ length: WARM_UP_QUERIES }, (_, i) => [
    [`warming up${', and up'.repeat(i % 12)}, query number ${i}`],
  ]);
  const group = {
    clients: WARM_UP_CLIENTS,
    sequences,
    keepAlive: true,
    seconds: Math.min(WARM_UP_S, 2 * context.options.seconds),
    pauseMs: 0,
    timed: true,
  };
  await runLoad(context, { port, topk, groups: [group], keepAnswers: false });
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
