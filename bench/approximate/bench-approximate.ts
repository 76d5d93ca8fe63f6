import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { throwIfCancelled } from '../../src/base/abort.ts';
import { TrawlError } from '../../src/base/errors.ts';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import type { BenchCommon } from '../bench-common.ts';
import { type Environment, environment, loadNow } from '../environment.ts';
import { heldOutQueries } from '../flat/queries.ts';
import { openTrawlEngine } from '../flat/trawl-engine.ts';
import { EngineUnavailable } from '../script-process.ts';
import { encodeNpy } from '../vectors/npy.ts';
import { basisFor } from '../vectors/vector-basis.ts';
import { syntheticFile } from '../vectors/vector-cache.ts';
import { type ApproximateBaseline, type ApproximateEngine, exactEngine } from './approximate-engine.ts';
import { type ApproximateRecord, recallOf } from './approximate-record.ts';
import { openBaselines } from './open-baselines.ts';

export interface BenchApproximateOptions extends BenchCommon {
  readonly rows: number;
  readonly dimension: number;
  readonly queries: number;
  readonly k: number;
  /** Settings of the graphs. */
  readonly efforts: readonly number[];
  readonly against: readonly ApproximateBaseline[];
}

export interface BenchApproximateResult {
  readonly environment: Environment;
  readonly vectors: string;
  readonly records: readonly ApproximateRecord[];
  readonly skipped: readonly { readonly engine: string; readonly reason: string }[];
}

/** Pause before each turn: threads of OpenMP spin after their work. */
const PAUSE_MS = 150;

interface Samples {
  readonly ms: number[];
  readonly rates: number[];
  recall: number;
}

/** Measures exact engines and graphs over the same rows and queries, in turns. */
export async function benchApproximate(options: BenchApproximateOptions): Promise<BenchApproximateResult> {
  const { rows, dimension, queries: count, k, threads, seed, runs, signal, note } = options;
  const loadBefore = loadNow();
  const loaded = loadKernel();
  const kernel = loaded.ok ? loaded.kernel : undefined;
  if (k > rows) throw new TrawlError('USAGE', `k is ${k}, but there are ${rows} rows. Use more rows.`);
  const context = { folder: join(options.cache, 'bench'), kernel, signal, note };
  const basis = basisFor({ dimension });
  const file = await syntheticFile({ rows, dimension, dtype: 'float32', seed, basis }, context);
  const queries = heldOutQueries(basis, count, seed);
  const queriesFile = join(options.scratch, 'approximate-queries.npy');
  await writeFile(queriesFile, encodeNpy(queries));
  const files = { vectors: file.segment.path, queries: queriesFile };
  const skipped: { engine: string; reason: string }[] = [];
  const skip = (engine: string, reason: string): void => {
    skipped.push({ engine, reason });
    note(`Skipped ${engine}: ${reason}`);
  };
  const engines: ApproximateEngine[] = [];
  try {
    engines.push(exactEngine(await openTrawlEngine(file, queries, { threads, withPrefilter: true }, context)));
    engines.push(...(await openBaselines(options, { ...files, rows, dimension }, skip)));
    const settings = engines.flatMap((engine) => engine.efforts.map((effort) => ({ engine, effort })));
    const samples = new Map(settings.map((setting) => [setting, { ms: [], rates: [], recall: 1 } as Samples]));
    const lost = new Set<ApproximateEngine>();
    let exact: readonly number[] = [];
    // Run -1 warms up and has the answers, which are the same in every run.
    for (let run = -1; run < runs; run++) {
      for (const setting of settings) {
        const { engine, effort } = setting;
        if (lost.has(engine)) continue;
        throwIfCancelled(signal);
        await sleep(PAUSE_MS);
        try {
          const answer = await engine.lone(count, k, effort);
          const batchMs = await engine.batch(count, k, effort);
          const sample = samples.get(setting)!;
          if (run < 0) {
            if (engine.name === 'trawl') exact = answer.rows;
            sample.recall = recallOf(exact, answer.rows, count, k);
          } else {
            sample.ms.push(...answer.ms);
            sample.rates.push(count / (batchMs / 1000));
          }
        } catch (error) {
          if (!(error instanceof EngineUnavailable)) throw error;
          skip(engine.name, error.message);
          lost.add(engine);
        }
      }
      note(run < 0 ? 'measured: the recall' : `measured: run ${run + 1} of ${runs}`);
    }
    const records: ApproximateRecord[] = [];
    for (const engine of engines) {
      if (lost.has(engine)) continue;
      const residentBytes = await engine.residentBytes();
      for (const [setting, { ms, rates, recall }] of samples) {
        if (setting.engine !== engine) continue;
        const sorted = sortedSamples(ms);
        records.push({
          case: 'approximate',
          engine: engine.name,
          version: engine.version,
          effort: setting.effort,
          ...{ rows, dimension, k, queries: count, threads, recall },
          p50Ms: median(sorted),
          p99Ms: percentile(sorted, 99),
          queriesPerS: median(sortedSamples(rates)),
          buildSeconds: engine.buildSeconds,
          residentBytes,
        });
      }
    }
    const facts = { kernel, engines, loadBefore, bandwidthGbPerS: null };
    return { environment: environment(facts), vectors: `synthetic, like ${basis.name}`, records, skipped };
  } finally {
    await Promise.all(engines.map((engine) => engine.close()));
  }
}
