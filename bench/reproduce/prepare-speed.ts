import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { packageRoot } from '../../src/base/package-root.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import { loadNow, machineFacts } from '../environment.ts';
import type { Measurement } from './measurement.ts';

const PAGES = ['kilt', 'filtered_kilt_sample_99.jsonl'];
const TIMES = 130;
const RUNS = 3;
const SCRIPT = join(packageRoot, 'bench', 'baselines', 'prepare_rag_r1.py');
const CASES = [
  { rule: 'rag-r1', output: '.tsv', threads: 2 },
  { rule: 'rag-r1', output: '.tsv', threads: 1 },
  { rule: 'dpr', output: '.jsonl', threads: 2 },
  { rule: 'words', output: '.jsonl', threads: 2 },
  { rule: 'sentences', output: '.jsonl', threads: 2 },
  { rule: 'rag-r1', output: '.jsonl.gz', threads: 2 },
  { rule: 'rag-r1', output: '.jsonl.zst', threads: 2 },
];

/** Times `trawl prepare` from start to end by rule and output, in turns with a Python program of one thread. */
export async function timePrepare(run: Measurement): Promise<unknown> {
  const { scratch } = run;
  const loadBefore = loadNow();
  const pages = await readFile(run.data(...PAGES));
  const documents = join(scratch, 'pages.jsonl');
  await writeFile(documents, Buffer.concat(Array<Buffer>(TIMES).fill(pages)));
  const timed = async (program: Promise<string>): Promise<{ seconds: number; stdout: string }> => {
    const start = performance.now();
    return { stdout: await program, seconds: (performance.now() - start) / 1000 };
  };
  const rows = CASES.map((one) => ({ program: 'trawl', ...one, passages: 0, times: [] as number[] }));
  const python = { program: 'python', rule: 'rag-r1', output: '.tsv', threads: 1, passages: 0, times: [] as number[] };
  for (let i = 0; i < RUNS; i++) {
    for (const row of rows) {
      const out = join(scratch, `passages${row.output}`);
      const given = ['--rule', row.rule, '--workers', String(row.threads), '--out', out, '--overwrite', '--json'];
      const { seconds, stdout } = await timed(run.trawl('prepare', documents, ...given));
      row.times.push(seconds);
      row.passages = (JSON.parse(stdout) as { passages: number }).passages;
    }
    const { seconds, stdout } = await timed(run.run('python3', [SCRIPT, documents, join(scratch, 'python.tsv')]));
    python.times.push(seconds);
    python.passages = Number(stdout);
  }
  const [own, other] = await Promise.all(['passages.tsv', 'python.tsv'].map((name) => readFile(join(scratch, name))));
  if (!own!.equals(other!)) throw new Error('trawl prepare and the Python program wrote different passages.');
  return {
    environment: machineFacts({ engines: [], loadBefore }),
    runs: RUNS,
    bytes: (await stat(documents)).size,
    documents: TIMES * 99,
    rows: [...rows, python].map(({ times, ...row }) => ({ ...row, seconds: median(sortedSamples(times)) })),
  };
}
