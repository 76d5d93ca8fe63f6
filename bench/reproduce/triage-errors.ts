import { join } from 'node:path';
import type { BenchTriageResult } from '../triage/bench-triage.ts';
import { BUNDLED, type Measurement } from './measurement.ts';

/** Results of `trawl bench triage` over several sets. */
export interface TriageErrorsResult {
  readonly date: string;
  readonly sets: readonly ({ readonly name: string } & BenchTriageResult)[];
}

/** The indexes of a set: their names, and the options of `trawl index`. The first is that of the present encoder. */
type Indexes = Readonly<Record<string, readonly string[]>>;

/** Measures the errors of `trawl triage` with several encoders over three sets. */
export async function measureTriageErrors(run: Measurement): Promise<TriageErrorsResult> {
  const miniLm = await run.miniLm();
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
  const corpus = (set: string): string => run.data(set, 'corpus.jsonl');
  const questions = (set: string): string => run.data(set, 'queries.jsonl');
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
      const folder = join(run.scratch, String(i), name);
      await run.trawl('index', ...set.corpus, ...options, '--out', folder);
      folders.push(folder);
    }
    const [present, ...tried] = folders;
    const sampled = ['--depths', set.depths, '--samples', set.samples, '--runs', '5'];
    const indexes = ['--index', present!, ...tried.flatMap((folder) => ['--tried', folder])];
    const asked = ['--query-texts', questions(set.of), '--questions', '500'];
    const result = await run.bench<BenchTriageResult>(['triage', ...indexes, ...asked, ...sampled]);
    results.push({ name: set.name, ...result });
  }
  return { date: new Date().toISOString().slice(0, 10), sets: results };
}
