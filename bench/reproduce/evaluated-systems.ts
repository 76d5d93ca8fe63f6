import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import type { ComparedMetric } from '../../evaluation/compare-evaluations.ts';
import type { MetricIntervals } from '../../evaluation/metric-intervals.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { SystemsResult } from '../tables/systems-result.ts';

const METRICS = ['recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10'];
/** The encoder that ships with Trawl. */
export const BUNDLED = 'token-average-256';

export interface EvaluatedSystemsOptions {
  /** Where models and indexes are made, and kept between runs. */
  readonly work: string;
  readonly signal: AbortSignal;
  note(text: string): void;
}

interface Report {
  readonly systems: readonly {
    readonly name: string;
    readonly judged: number;
    readonly metrics: Readonly<Record<string, number>>;
    readonly intervals: MetricIntervals;
  }[];
  readonly comparisons: readonly { readonly metrics: Readonly<Record<string, ComparedMetric>> }[];
}

/** Builds indexes and measures systems with `trawl eval`, and collects the rows. */
export class EvaluatedSystems {
  readonly rows: SystemsResult['rows'][number][] = [];
  readonly #options: EvaluatedSystemsOptions;

  constructor(options: EvaluatedSystemsOptions) {
    this.#options = options;
  }

  /** Imports a checkpoint in each precision, once. @returns the model's folder. */
  async imported(checkpoint: string, precisions: readonly string[]): Promise<string> {
    const model = join(
      this.#options.work,
      basename(checkpoint) === 'model' ? 'all-MiniLM-L6-v2' : basename(checkpoint),
    );
    if (!existsSync(model))
      await this.trawl('model', 'add', checkpoint, '--out', model, '--precision', precisions.join());
    return model;
  }

  /** Builds an index with BM25, once. @returns its folder. */
  async indexed(name: string, corpus: string, model: string, precision: string): Promise<string> {
    const out = join(this.#options.work, name);
    const chosen = model === BUNDLED ? [] : ['--precision', precision];
    await this.trawl('index', corpus, '--out', out, '--model', model, ...chosen, '--bm25', '--if-changed');
    return out;
  }

  /** Adds a row for each system of `trawl eval`; all are compared with the first. */
  async measure(set: string, queries: string, systems: readonly string[], more: readonly string[] = []): Promise<void> {
    const [first, ...others] = systems;
    const compared = others.flatMap((system) => ['--compare', system]);
    const options = ['--queries', queries, ...more, '--cutoffs', '10', '--examples', '0', '--json'];
    const report = JSON.parse(await this.trawl('eval', first!, ...compared, ...options)) as Report;
    report.systems.forEach(({ name, judged, metrics, intervals }, i) => {
      const difference = report.comparisons[i - 1]?.metrics['recall@10'];
      this.rows.push({
        set,
        system: name,
        questions: judged,
        metrics: Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]!])),
        recallInterval: intervals['recall@10']!,
        difference: difference?.difference ?? null,
        p: difference?.p ?? null,
      });
    });
  }

  async trawl(...args: string[]): Promise<string> {
    const { work, signal, note } = this.#options;
    note(`trawl ${args.join(' ')}`);
    const options = { cwd: work, signal, maxBuffer: 1 << 28 };
    return (await promisify(execFile)(process.execPath, [TRAWL, ...args, '--quiet'], options)).stdout;
  }
}

/** The text of a file with these rows, as of today. */
export function systemsFile(rows: SystemsResult['rows']): string {
  const result: SystemsResult = {
    format: 'trawl-systems',
    version: 1,
    trawl: packageVersion,
    date: new Date().toISOString().slice(0, 10),
    rows,
  };
  return `${JSON.stringify(result, null, 1)}\n`;
}
