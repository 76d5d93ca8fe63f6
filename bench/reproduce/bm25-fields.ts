import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageVersion } from '../../src/base/package-root.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { EvalResult } from '../tables/eval-result.ts';
import type { ReproductionRun } from './reproduction-run.ts';
import { requiredData } from './required-inputs.ts';

const ROWS = [
  { name: '`multi_match`', options: [] },
  { name: '`multi_match`, `most_fields`', options: ['--tie-breaker', '1'] },
  { name: '`match` on `text`', options: ['--bm25-weights', 'title=0'] },
] as const;
const CUTOFFS = [1, 5, 10];

/** Recall over HotpotQA with title and text as two fields, searched as Elasticsearch searches them. */
export async function evaluateFields({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const trawl = async (...args: string[]): Promise<string> =>
    (await promisify(execFile)(process.execPath, [TRAWL, ...args, '--quiet'], { signal, maxBuffer: 2 ** 26 })).stdout;
  const set = join(requiredData(), 'hotpot_val500_pooled');
  const index = join(scratch, 'fields');
  const fields = ['--bm25', '--bm25-fields', 'title,text', '--analyser', 'standard'];
  await trawl('index', join(set, 'corpus.jsonl'), ...fields, '--out', index);
  const rows: EvalResult['rows'][number][] = [];
  for (const { name, options } of ROWS) {
    const asked = ['--mode', 'bm25', '--bm25-profile', 'elasticsearch', ...options, '--cutoffs', CUTOFFS.join()];
    const args = ['eval', index, '--queries', join(set, 'queries.jsonl'), ...asked, '--json'];
    const { metrics, queries } = JSON.parse(await trawl(...args)) as {
      metrics: Record<string, number>;
      queries: number;
    };
    const recalls = CUTOFFS.map((k) => [`recall@${k}`, metrics[`recall@${k}`]!] as const);
    rows.push({ name, arguments: options.join(' '), queries, metrics: Object.fromEntries(recalls) });
  }
  const date = new Date().toISOString().slice(0, 10);
  const result: EvalResult = { format: 'trawl-evaluations', version: 1, trawl: packageVersion, date, rows };
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}
