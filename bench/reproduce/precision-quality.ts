import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ComparedMetric } from '../../evaluation/compare-evaluations.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import type { Measurement } from './measurement.ts';

const PRECISIONS = ['float32', 'bfloat16', 'int8'] as const;
type Precision = (typeof PRECISIONS)[number];
/** Precisions of passages and of queries; the first is what the others are compared with. */
type Pair = readonly [Precision, Precision];
const ALIKE: readonly Pair[] = PRECISIONS.map((precision) => [precision, precision]);
const MIXED: readonly Pair[] = [
  ['float32', 'bfloat16'],
  ['float32', 'int8'],
  ['bfloat16', 'float32'],
  ['int8', 'float32'],
];
/** Questions in another precision than the passages are asked over a part of the larger set. */
const SETS: readonly {
  readonly name: string;
  readonly folder: string;
  readonly every: number;
  readonly pairs: readonly Pair[];
}[] = [
  { name: 'hotpot_val500_pooled', folder: 'hotpot_val500_pooled', every: 1, pairs: ALIKE },
  { name: 'squad_v11_dev', folder: 'squad_v11_dev', every: 1, pairs: ALIKE },
  { name: 'squad_v11_dev, every tenth question', folder: 'squad_v11_dev', every: 10, pairs: [...ALIKE, ...MIXED] },
];
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
 * Embeds passages and questions of each data set with all-MiniLM-L6-v2 in every precision, searches the passages for the questions of the
 * same and of another precision.
 *
 * @throws TrawlError CORPUS_NOT_FOUND without the data sets, MODEL_NOT_FOUND without the model.
 */
export async function comparePrecisions(run: Measurement): Promise<unknown> {
  const { scratch } = run;
  const trawl = (...args: string[]): Promise<string> => run.trawl(...args, '--quiet');
  const model = await run.miniLm(PRECISIONS.join());
  const rows: object[] = [];
  const indexOf = (folder: string, precision: Precision): string => join(scratch, `${folder}-${precision}`);
  for (const folder of new Set(SETS.map((set) => set.folder))) {
    const corpus = run.data(folder, 'corpus.jsonl');
    for (const precision of PRECISIONS) {
      const index = ['index', corpus, '--model', model, '--precision', precision];
      await trawl(...index, '--out', indexOf(folder, precision), '--if-changed');
    }
  }
  for (const { name, folder, every, pairs } of SETS) {
    const questions = join(scratch, `${folder}-${every}.jsonl`);
    const lines = (await readFile(run.data(folder, 'queries.jsonl'), 'utf8')).trimEnd().split('\n');
    await writeFile(questions, `${lines.filter((_, i) => i % every === 0).join('\n')}\n`);
    const runs: string[] = [];
    for (const [passages, queries] of pairs) {
      const run = join(scratch, `${folder}-${every}-${passages}-${queries}.trec`);
      const search = ['--queries', questions, '--k', '10', '--precision', queries, '--out', run];
      await trawl('search', indexOf(folder, passages), ...search);
      runs.push(run);
    }
    const [first, ...others] = runs.map((run, i) => `${pairs[i]!.join(' and ')}=${run}`);
    const compared = others.flatMap((other) => ['--compare', other]);
    const evaluated = ['--queries', questions, '--cutoffs', '10', '--examples', '0', '--json'];
    const report = JSON.parse(await trawl('eval', first!, ...compared, ...evaluated)) as Report;
    const found = await Promise.all(runs.map((run) => passagesOfRun(run)));
    for (const [i, pair] of pairs.entries()) {
      const overlap10 = overlapOf(found[0]!, found[i]!);
      rows.push({ ...rowOf(name, pair, report.systems[i]!, report.comparisons[i - 1]), overlap10 });
    }
  }
  const date = new Date().toISOString().slice(0, 10);
  return { format: 'trawl-precisions', version: 2, trawl: packageVersion, date, rows };
}

/** Query id → ids of the passages of a TREC run. */
async function passagesOfRun(path: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const found = new Map<string, Set<string>>();
  for (const line of (await readFile(path, 'utf8')).trimEnd().split('\n')) {
    const [query, , passage] = line.split(/\s+/);
    const known = found.get(query!) ?? new Set();
    found.set(query!, known.add(passage!));
  }
  return found;
}

/** The share of the passages of the first run that are in the second one, mean over the queries. */
function overlapOf(
  first: ReadonlyMap<string, ReadonlySet<string>>,
  second: ReadonlyMap<string, ReadonlySet<string>>,
): number {
  const shares = Array.from(first, ([query, passages]) => {
    const other = second.get(query) ?? new Set();
    return [...passages].filter((passage) => other.has(passage)).length / passages.size;
  });
  return shares.reduce((sum, share) => sum + share, 0) / shares.length;
}

function rowOf(
  set: string,
  [passages, queries]: Pair,
  { judged, metrics }: Report['systems'][number],
  comparison: Report['comparisons'][number] | undefined,
): object {
  const recall = comparison?.metrics['recall@10'];
  return {
    set,
    passages,
    queries,
    questions: judged,
    metrics: Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]!])),
    difference:
      recall === undefined
        ? null
        : {
            mean: recall.difference,
            low: recall.interval?.low ?? null,
            high: recall.interval?.high ?? null,
            better: recall.better,
            worse: recall.worse,
          },
  };
}
