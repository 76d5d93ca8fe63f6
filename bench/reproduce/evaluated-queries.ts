import { join } from 'node:path';
import { packageRoot, packageVersion } from '../../src/base/package-root.ts';
import type { Measurement } from './measurement.ts';

const SAMPLE = join(packageRoot, 'corpus', 'sample');

/** Recall of the bundled encoder over the sample corpus, by what is embedded. */
export async function evaluateSample(run: Measurement): Promise<unknown> {
  await run.trawl('index', join(SAMPLE, 'passages.jsonl'), '--out', 'sample', '--quiet');
  const steps = ['--queries', join(SAMPLE, 'sub-queries.jsonl'), '--query-form'];
  return evaluated(run, 'sample', ['--cutoffs', '5,10'], ['recall@5', 'recall@10', 'mrr@10'], {
    'the question': ['--queries', join(SAMPLE, 'questions.jsonl')],
    "an agent's sub-query alone": [...steps, 'query'],
    '`question [SEP] sub-query`': [...steps, 'question-and-query'],
  });
}

/** Recall over HotpotQA with title and text as two fields, searched as Elasticsearch searches them. */
export async function evaluateFields(run: Measurement): Promise<unknown> {
  const set = (name: string): string => run.data('hotpot_val500_pooled', name);
  const fields = ['--bm25', '--bm25-fields', 'title,text', '--analyser', 'standard'];
  await run.trawl('index', set('corpus.jsonl'), ...fields, '--out', 'fields', '--quiet');
  const asked = [
    '--mode',
    'bm25',
    '--bm25-profile',
    'elasticsearch',
    '--queries',
    set('queries.jsonl'),
    '--cutoffs',
    '1,5,10',
  ];
  return evaluated(run, 'fields', asked, ['recall@1', 'recall@5', 'recall@10'], {
    '`multi_match`': [],
    '`multi_match`, `most_fields`': ['--tie-breaker', '1'],
    '`match` on `text`': ['--bm25-weights', 'title=0'],
  });
}

/** What `trawl eval` measures with each row's options. */
async function evaluated(
  run: Measurement,
  index: string,
  asked: readonly string[],
  names: readonly string[],
  options: Readonly<Record<string, readonly string[]>>,
): Promise<unknown> {
  const rows: object[] = [];
  for (const [name, args] of Object.entries(options)) {
    const { metrics, queries } = JSON.parse(await run.trawl('eval', index, ...asked, ...args, '--json', '--quiet'));
    const chosen = Object.fromEntries(names.map((metric) => [metric, metrics[metric]]));
    rows.push({ name, arguments: args.join(' '), queries, metrics: chosen });
  }
  const date = new Date().toISOString().slice(0, 10);
  return { format: 'trawl-evaluations', version: 1, trawl: packageVersion, date, rows };
}
