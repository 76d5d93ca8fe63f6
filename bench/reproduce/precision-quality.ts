import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { ComparedMetric } from '../../evaluation/compare-evaluations.ts';
import { TrawlError } from '../../src/errors.ts';
import { packageRoot, packageVersion } from '../../src/package-root.ts';
import { installedMiniLm } from '../all/bench-inputs.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { PrecisionResult } from '../tables/precision-result.ts';

const DATA = join(packageRoot, '..', 'shared', 'data');
const SETS = ['hotpot_val500_pooled', 'squad_v11_dev'] as const;
const PRECISIONS = ['float32', 'bfloat16', 'int8'] as const;
const METRICS = ['recall@10', 'ndcg@10', 'mrr@10'] as const;

interface Report {
  readonly systems: readonly {
    readonly name: string;
    readonly judged: number;
    readonly metrics: Readonly<Record<string, number>>;
  }[];
  /** Of each system but the first. */
  readonly comparisons: readonly { readonly metrics: Readonly<Record<string, ComparedMetric>> }[];
}

/**
 * Embeds each data set with all-MiniLM-L6-v2 in every precision, answers its questions, and writes a PrecisionResult.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export async function comparePrecisions(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  if (!existsSync(DATA))
    throw new TrawlError('CORPUS_NOT_FOUND', `The data sets of this table are expected in ${DATA}.`);
  const checkpoint = installedMiniLm(join(homedir(), '.cache', 'trawl'));
  if (checkpoint === undefined) {
    throw new TrawlError(
      'MODEL_NOT_FOUND',
      'all-MiniLM-L6-v2 is not installed. Install it: trawl bench baselines embed.',
    );
  }
  const run = promisify(execFile);
  const trawl = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [TRAWL, ...args, '--quiet'], { cwd: scratch, signal, maxBuffer: 1 << 28 })).stdout;
  const model = join(scratch, 'all-MiniLM-L6-v2');
  await trawl('model', 'add', checkpoint, '--out', model, '--precision', PRECISIONS.join());
  const rows: PrecisionResult['rows'][number][] = [];
  for (const set of SETS) {
    const indexOf = (precision: string): string => join(scratch, `${set}-${precision}`);
    for (const precision of PRECISIONS) {
      const corpus = join(DATA, set, 'corpus.jsonl');
      await trawl('index', corpus, '--model', model, '--precision', precision, '--out', indexOf(precision));
    }
    const [first, ...others] = PRECISIONS.map((precision) => `${precision}=${indexOf(precision)}`);
    const compared = others.flatMap((other) => ['--compare', other]);
    const questions = ['--queries', join(DATA, set, 'queries.jsonl'), '--cutoffs', '10', '--examples', '0', '--json'];
    const report = JSON.parse(await trawl('eval', first!, ...compared, ...questions)) as Report;
    rows.push(...report.systems.map((system, i) => rowOf(set, system, report.comparisons[i - 1])));
  }
  const result: PrecisionResult = {
    format: 'trawl-precisions',
    version: 1,
    trawl: packageVersion,
    date: new Date().toISOString().slice(0, 10),
    rows,
  };
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}

function rowOf(
  set: string,
  { name, judged, metrics }: Report['systems'][number],
  comparison: Report['comparisons'][number] | undefined,
): PrecisionResult['rows'][number] {
  const recall = comparison?.metrics['recall@10'];
  return {
    set,
    precision: name,
    questions: judged,
    metrics: Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]!])),
    difference:
      recall === undefined
        ? null
        : { mean: recall.difference, ...recall.interval!, better: recall.better, worse: recall.worse },
  };
}
