import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before } from 'node:test';
import type { MiningSummary } from '../../../training/mining/mine-negatives.ts';
import { linesOf, QUESTIONS, writePlantedCorpus } from '../../training/mining/mining-corpus.ts';
import { type Ended, fileFolder, jsonOf, runTrawl } from '../run-trawl.ts';

export const folder = await fileFolder();
export const index = join(folder, 'planted');
let count = 0;

before(async () => {
  const corpus = writePlantedCorpus(folder);
  const { code, stderr } = await runTrawl([
    'index',
    corpus,
    '--out',
    index,
    '--model',
    'token-average-256',
    '--bm25',
    '--quiet',
  ]);
  assert.equal(code, 0, stderr);
});

interface TevatronPassage {
  readonly docid: string;
  readonly text: string;
  readonly rank: number;
  readonly score: number;
}

interface TevatronRow {
  readonly query_id: string;
  readonly query: string;
  readonly positive_passages: readonly TevatronPassage[];
  readonly negative_passages: readonly TevatronPassage[];
}

/** A line of the file of origins. */
interface Origin {
  readonly group: string;
  readonly generation: string;
  readonly model: string;
}

interface Mined {
  readonly out: string;
  readonly rows: readonly TevatronRow[];
  readonly origins: readonly Origin[];
  readonly report: MiningSummary;
}

export async function mine(args: readonly string[] = [], queries = QUESTIONS): Promise<Mined> {
  const out = join(folder, `mined-${count++}.jsonl`);
  const run = ['mine', index, '--queries', queries, '--out', out, '--format', 'tevatron', ...args, '--json', '--quiet'];
  const report = jsonOf<MiningSummary>(await runTrawl(run));
  return { out, rows: linesOf<TevatronRow>(out), origins: linesOf<Origin>(`${out}.origins.jsonl`), report };
}

export function mineRefused(...args: readonly string[]): Promise<Ended> {
  return runTrawl(['mine', index, ...args, '--quiet']);
}

interface RecordOptions {
  readonly query: string;
  readonly question?: string;
  readonly questionId?: string;
  readonly dataset?: string;
  readonly generation?: string;
  readonly split?: string;
  readonly trajectory?: string;
  readonly turn?: number;
  readonly error?: string;
}

export function writeRecords(name: string, generation: string, records: readonly RecordOptions[]): string {
  const path = join(folder, name);
  const lines = records.map((record, place) => ({
    time: '2026-11-20T12:00:00.000Z',
    requestId: `r${place}`,
    dialect: 'search-r1',
    index: 'planted',
    generation,
    place: 0,
    k: 3,
    ...record,
    rows: [],
    scores: [],
    ids: [],
  }));
  writeFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
  return path;
}
