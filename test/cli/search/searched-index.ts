import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before } from 'node:test';
import { readParquetRows } from '../../../corpus/read-parquet.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { fileFolder, runTrawl } from '../run-trawl.ts';

const folder = await fileFolder();
export const index = join(folder, 'ix');
export const QUERIES = 700;
export const queries = join(folder, 'queries.jsonl');

export interface Line {
  readonly id: string;
  readonly round_index?: number;
  readonly hits: readonly {
    readonly index?: string;
    readonly row: number;
    readonly id: string;
    readonly score: number;
    readonly firstStage?: { readonly rank: number; readonly score: number };
  }[];
}

const words = Array.from({ length: 60 }, (_, i) => `word${i.toString(36)}`);

export function textOf(random: () => number, length: number): string {
  return Array.from({ length }, () => words[Math.floor(random() * words.length)]).join(' ');
}

/** Ids of all kinds: integers beyond 2^53, strings, none. */
export function corpus(count: number, random: () => number): string {
  return Array.from({ length: count }, (_, i) => {
    const id = i % 3 === 0 ? `"id":${9_007_199_254_740_993n + BigInt(i)},` : i % 3 === 1 ? `"id":"p${i}",` : '';
    return `{${id}"contents":"\\"T${i}\\"\\n${textOf(random, 12)}","part":${i % 10}}\n`;
  }).join('');
}

before(async () => {
  const random = seededRandom(3);
  const file = join(folder, 'corpus.jsonl');
  writeFileSync(file, corpus(400, random));
  const args = [
    'index',
    file,
    '--out',
    index,
    '--model',
    'token-average-256',
    '--bm25',
    '--column',
    'part:number',
    '--quiet',
  ];
  assert.equal((await runTrawl(args)).code, 0);
  const lines = Array.from({ length: QUERIES }, (_, i) =>
    JSON.stringify({
      // Each question has two rounds, and every tenth pair has the id of the first.
      id: i % 20 < 2 ? 'again' : `train_${i >> 1}`,
      question: textOf(random, 6),
      ...(i % 2 === 1 ? { query: textOf(random, 3), history_queries: [textOf(random, 2)] } : {}),
      round_index: 1 + (i % 2),
    }),
  );
  writeFileSync(queries, `${lines.join('\n')}\n`);
});

export async function search(out: string, ...args: string[]): Promise<Buffer> {
  const command = ['search', index, '--queries', queries, '--k', '7', '--out', out, ...args];
  const { code, stderr } = await runTrawl(command);
  assert.equal(code, 0, stderr);
  return readFileSync(out);
}

export function linesOf(bytes: Buffer): Line[] {
  return bytes
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Line);
}

export async function parquetOf(path: string): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for await (const some of readParquetRows(path)) {
    rows.push(...some.map(({ row }) => JSON.parse(row as string) as Record<string, unknown>));
  }
  return rows;
}
