import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KillCase, type KillRunsResult, killRuns } from '../../helpers/kill-runs.ts';
import { expectOk, runCommand } from '../../helpers/run-command.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';

export interface KillSearchTest {
  /** Empty folder to work in. */
  readonly folder: string;
  /** Number of kills. */
  readonly moments: number;
  readonly seed: number;
  readonly passages: number;
  readonly onMoment?: (text: string) => void;
}

/** Outputs and options of a bulk search. */
const SEARCHES: readonly { readonly files: readonly string[]; readonly args: readonly string[] }[] = [
  { files: ['hits.parquet'], args: ['--k', '100'] },
  { files: ['rows.npy', 'scores.npy'], args: ['--k', '20'] },
  { files: ['hits.jsonl'], args: ['--k', '10', '--shard', '1/2'] },
  { files: ['hits.run'], args: ['--k', '10', '--mode', 'bm25'] },
];

/** Kills bulk searches and runs them again, as `killRuns` says. */
export async function killSearches(options: KillSearchTest): Promise<KillRunsResult> {
  const { folder, moments, seed, passages, onMoment } = options;
  const random = seededRandom(seed);
  const [corpus, index, queries] = ['corpus.jsonl', 'ix', 'queries.jsonl'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(corpus, linesOf(passages, random, 'contents'));
  writeFileSync(queries, linesOf(4 * passages, random, 'question'));
  expectOk(await runCommand(['index', corpus, '--out', index, '--model', 'token-average-256', '--bm25', '--quiet']));
  const cases = SEARCHES.map(({ files: [first, second], args }): KillCase => {
    const report = `${first}.report.json`;
    return {
      name: first!,
      command: (prefix) => {
        const scores = second === undefined ? [] : ['--scores-out', prefix + second];
        const search = ['search', index, '--queries', queries, '--checkpoint-seconds', '0', ...args];
        return [...search, '--out', prefix + first!, ...scores];
      },
      files: [first!, report, ...(second === undefined ? [] : [second])],
      stateFile: `${first}.progress`,
    };
  });
  return killRuns({ folder, cases, moments, seed, random, onMoment });
}

function linesOf(count: number, random: () => number, column: string): string {
  const words = Array.from({ length: 300 }, (_, i) => `word${i.toString(36)}`);
  return Array.from({ length: count }, (_, i) => {
    const text = Array.from({ length: 12 }, () => words[Math.floor(random() * words.length)]).join(' ');
    const id = i % 5 === 0 ? 'again' : `x${i}`;
    return `${JSON.stringify({ id, [column]: text, ...(i % 2 === 0 ? { round_index: i % 7 } : {}) })}\n`;
  }).join('');
}
