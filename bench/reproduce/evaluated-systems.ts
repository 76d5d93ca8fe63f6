import { join } from 'node:path';
import type { ComparedMetric, MetricIntervals } from '../../evaluation/compare-evaluations.ts';
import { packageVersion } from '../../src/base/package-root.ts';
import { BUNDLED, type Measurement } from './measurement.ts';

const METRICS = ['recall@10', 'all_gold@10', 'ndcg@10', 'mrr@10'];
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
  readonly #rows: object[] = [];
  readonly #run: Measurement;

  constructor(run: Measurement) {
    this.#run = run;
  }

  /** Builds an index with BM25, once. @returns its folder. */
  async indexed(name: string, corpus: string, model: string, precision: string): Promise<string> {
    const out = join(this.#run.scratch, name);
    const chosen = model === BUNDLED ? [] : ['--precision', precision];
    await this.#run.trawl(
      'index',
      corpus,
      '--out',
      out,
      '--model',
      model,
      ...chosen,
      '--bm25',
      '--if-changed',
      '--quiet',
    );
    return out;
  }

  /** Adds a row for each system of `trawl eval`; all are compared with the first. */
  async measure(set: string, queries: string, systems: readonly string[], more: readonly string[] = []): Promise<void> {
    const [first, ...others] = systems;
    const compared = others.flatMap((system) => ['--compare', system]);
    const options = ['--queries', queries, ...more, '--cutoffs', '10', '--examples', '0', '--json', '--quiet'];
    const report = JSON.parse(await this.#run.trawl('eval', first!, ...compared, ...options)) as Report;
    report.systems.forEach(({ name, judged, metrics, intervals }, i) => {
      const difference = report.comparisons[i - 1]?.metrics['recall@10'];
      this.#rows.push({
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

  /** All rows, as of today. */
  result(): unknown {
    const date = new Date().toISOString().slice(0, 10);
    return { format: 'trawl-systems', version: 1, trawl: packageVersion, date, rows: this.#rows };
  }
}
