import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot, packageVersion } from '../../src/base/package-root.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { EvalResult } from '../tables/eval-result.ts';

const SAMPLE = join('corpus', 'sample');
const ROWS = [
  { name: 'the question', args: ['--queries', join(SAMPLE, 'questions.jsonl')] },
  {
    name: "an agent's sub-query alone",
    args: ['--queries', join(SAMPLE, 'sub-queries.jsonl'), '--query-form', 'query'],
  },
  {
    name: '`question [SEP] sub-query`',
    args: ['--queries', join(SAMPLE, 'sub-queries.jsonl'), '--query-form', 'question-and-query'],
  },
] as const;
const CUTOFFS = '5,10';
const METRICS = ['recall@5', 'recall@10', 'mrr@10'] as const;

const run = promisify(execFile);

/** Builds the index of the sample corpus with the bundled encoder, evaluates the three query forms, and writes an EvalResult. */
export async function evaluateSample(file: string, scratch: string, signal: AbortSignal): Promise<void> {
  const trawl = async (...args: string[]): Promise<string> =>
    (await run(process.execPath, [TRAWL, ...args], { cwd: packageRoot, signal })).stdout;
  const index = join(scratch, 'sample');
  await trawl('index', join(SAMPLE, 'passages.jsonl'), '--out', index, '--quiet');
  const rows: EvalResult['rows'][number][] = [];
  for (const { name, args } of ROWS) {
    const all = [...args, '--cutoffs', CUTOFFS];
    const { metrics, queries } = JSON.parse(await trawl('eval', index, ...all, '--json', '--quiet')) as {
      metrics: Record<string, number>;
      queries: number;
    };
    const chosen = Object.fromEntries(METRICS.map((metric) => [metric, metrics[metric]!]));
    rows.push({ name, arguments: all.join(' '), queries, metrics: chosen });
  }
  const result: EvalResult = {
    format: 'trawl-evaluations',
    version: 1,
    trawl: packageVersion,
    date: new Date().toISOString().slice(0, 10),
    rows,
  };
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}
