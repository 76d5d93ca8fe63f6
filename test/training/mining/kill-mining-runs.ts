import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KillCase, type KillRunsResult, killRuns } from '../../helpers/kill-runs.ts';
import { expectOk, runCommand } from '../../helpers/run-command.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

export interface KillMiningTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  readonly onMoment?: (text: string) => void;
}

/** Formats and options of `trawl mine`. Ranks to 2,000 make batches of few queries, so that there are many checkpoints. */
const RUNS: readonly {
  readonly format: string;
  readonly args: readonly string[];
  readonly file?: string;
}[] = [
  { format: 'triplet', args: ['--range-max', '2000', '--sampling-strategy', 'random'] },
  { format: 'flagembedding', args: ['--range-max', '500', '--also-bm25'] },
  { format: 'dpr', args: ['--range-max', '2000', '--mode', 'bm25'] },
  { format: 'agentic-r', args: ['--range-max', '1000', '--num-negatives', '5'] },
  { format: 'labeled-list', args: ['--range-max', '2000'], file: 'rows.parquet' },
];

/** Kills `trawl mine` and runs it again, as `killRuns` says. */
export async function killMining(options: KillMiningTest): Promise<KillRunsResult> {
  const { folder, moments, seed, passages, onMoment } = options;
  const random = seededRandom(seed);
  const [corpus, index, queries] = ['corpus.jsonl', 'ix', 'queries.jsonl'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const words = Array.from({ length: 300 }, (_, i) => `word${i.toString(36)}`);
  const text = (): string => Array.from({ length: 12 }, () => words[Math.floor(random() * words.length)]).join(' ');
  const lines = (count: number, row: (i: number) => object): string =>
    Array.from({ length: count }, (_, i) => `${JSON.stringify(row(i))}\n`).join('');
  writeFileSync(
    corpus,
    lines(passages, (i) => ({ id: `x${i}`, contents: text() })),
  );
  // Every fourth question comes twice, with another relevant passage.
  writeFileSync(
    queries,
    lines(Math.ceil(passages / 10), (i) => ({
      id: `q${i}`,
      question: i % 4 === 3 ? `question ${i - 1}` : `question ${i}`,
      query: text(),
      gold_ids: [`x${Math.floor(random() * passages)}`],
    })),
  );
  expectOk(await runCommand(['index', corpus, '--out', index, '--model', 'token-average-256', '--bm25', '--quiet']));
  const cases = RUNS.map(
    ({ format, args, file = 'rows' }): KillCase => ({
      name: `mine ${format} ${file}`,
      command: (prefix) => [
        'mine',
        index,
        '--queries',
        queries,
        '--out',
        `${prefix}${file}`,
        '--format',
        format,
        ...args,
      ],
      files: [file, `${file}.report.json`, `${file}.origins.jsonl`],
      stateFile: `${file}.work`,
      refusesToRepeat: true,
    }),
  );
  return killRuns({ folder, cases, moments, seed, random, onMoment });
}
