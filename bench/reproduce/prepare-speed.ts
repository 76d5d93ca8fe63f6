import { execFile } from 'node:child_process';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { packageRoot } from '../../src/base/package-root.ts';
import { median, sortedSamples } from '../../src/base/statistics.ts';
import { loadNow, machineFacts } from '../environment.ts';
import { TRAWL } from '../serve/serve-engine.ts';
import type { PrepareResult } from '../tables/prepare-result.ts';
import type { ReproductionRun } from './reproduction-run.ts';
import { requiredData } from './required-inputs.ts';

const PAGES = join('kilt', 'filtered_kilt_sample_99.jsonl');
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
export async function timePrepare({ file, scratch, signal }: ReproductionRun): Promise<void> {
  const loadBefore = loadNow();
  const pages = await readFile(join(requiredData(), PAGES));
  const documents = join(scratch, 'pages.jsonl');
  await writeFile(documents, Buffer.concat(Array<Buffer>(TIMES).fill(pages)));
  const run = async (program: string, args: readonly string[]): Promise<{ seconds: number; stdout: string }> => {
    const start = performance.now();
    const { stdout } = await promisify(execFile)(program, args, { signal });
    return { seconds: (performance.now() - start) / 1000, stdout };
  };
  const rows = CASES.map((one) => ({ program: 'trawl', ...one, passages: 0, times: [] as number[] }));
  const python = { program: 'python', rule: 'rag-r1', output: '.tsv', threads: 1, passages: 0, times: [] as number[] };
  for (let i = 0; i < RUNS; i++) {
    for (const row of rows) {
      const out = join(scratch, `passages${row.output}`);
      const given = ['--rule', row.rule, '--workers', String(row.threads), '--out', out, '--overwrite', '--json'];
      const { seconds, stdout } = await run(process.execPath, [TRAWL, 'prepare', documents, ...given]);
      row.times.push(seconds);
      row.passages = (JSON.parse(stdout) as { passages: number }).passages;
    }
    const { seconds, stdout } = await run('python3', [SCRIPT, documents, join(scratch, 'python.tsv')]);
    python.times.push(seconds);
    python.passages = Number(stdout);
  }
  const [own, other] = await Promise.all(['passages.tsv', 'python.tsv'].map((name) => readFile(join(scratch, name))));
  if (!own!.equals(other!)) throw new Error('trawl prepare and the Python program wrote different passages.');
  const result: PrepareResult = {
    environment: machineFacts({ engines: [], loadBefore }),
    runs: RUNS,
    bytes: (await stat(documents)).size,
    documents: TIMES * 99,
    rows: [...rows, python].map(({ times, ...row }) => ({ ...row, seconds: median(sortedSamples(times)) })),
  };
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`);
}
