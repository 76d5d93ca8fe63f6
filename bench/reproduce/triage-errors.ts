import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runTrawl } from '../serve/serve-index.ts';
import type { TriageErrorsResult } from '../tables/triage-errors-result.ts';
import type { BenchTriageResult } from '../triage/bench-triage.ts';
import { importMiniLm } from './mini-lm.ts';
import type { ReproductionRun } from './reproduction-run.ts';

const BUNDLED = 'token-average-256';

/** The indexes of a set: their names, and the options of `trawl index`. The first is that of the present encoder. */
type Indexes = Readonly<Record<string, readonly string[]>>;

/** Measures the errors of `trawl triage` with several encoders over three sets, and writes a TriageErrorsResult. */
export async function measureTriageErrors({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const { data, model: miniLm } = await importMiniLm({ scratch, signal });
  const trawl = (...args: string[]): Promise<void> => runTrawl(args, signal);
  const bundled: Indexes = {
    'all dimensions': ['--model', BUNDLED],
    'first 64 dimensions': ['--model', BUNDLED, '--dimension', '64'],
    'first 16 dimensions': ['--model', BUNDLED, '--dimension', '16'],
  };
  const all: Indexes = {
    ...bundled,
    'MiniLM-L6': ['--model', miniLm],
    'MiniLM-L6, passages cut at 8 tokens': ['--model', miniLm, '--max-passage-tokens', '8'],
  };
  const corpus = (set: string): string => join(data, set, 'corpus.jsonl');
  const questions = (set: string): string => join(data, set, 'queries.jsonl');
  const [hotpot, squad] = ['hotpot_val500_pooled', 'squad_v11_dev'] as const;
  const wikipedia = corpus('pool_wiki_dev');
  const sets = [
    { name: 'HotpotQA', corpus: [corpus(hotpot)], of: hotpot, indexes: all, depths: '0,10', samples: '1,5,20' },
    { name: 'SQuAD', corpus: [corpus(squad)], of: squad, indexes: all, depths: '0,2', samples: '1,5,20' },
    {
      name: 'SQuAD in Wikipedia',
      corpus: [corpus(squad), wikipedia],
      of: squad,
      indexes: bundled,
      depths: '0,10,100',
      samples: '0.2,1,5',
    },
  ];
  const results: TriageErrorsResult['sets'][number][] = [];
  for (const [i, set] of sets.entries()) {
    const folders: string[] = [];
    for (const [name, options] of Object.entries(set.indexes)) {
      const folder = join(scratch, String(i), name);
      await trawl('index', ...set.corpus, ...options, '--out', folder);
      folders.push(folder);
    }
    const [present, ...tried] = folders;
    const sampled = ['--depths', set.depths, '--samples', set.samples, '--runs', '5'];
    const indexes = ['--index', present!, ...tried.flatMap((folder) => ['--tried', folder])];
    const asked = ['--query-texts', questions(set.of), '--questions', '500'];
    const out = join(scratch, 'triage.json');
    await trawl('bench', 'triage', ...indexes, ...asked, ...sampled, '--out', out);
    results.push({ name: set.name, ...(JSON.parse(await readFile(out, 'utf8')) as BenchTriageResult) });
  }
  const date = new Date().toISOString().slice(0, 10);
  await writeFile(file, `${JSON.stringify({ date, sets: results } satisfies TriageErrorsResult, null, 1)}\n`);
}
