import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { MilvusCandidates } from '../../src/milvus/milvus-candidates.ts';
import { rowFields } from '../../src/milvus/published-rows.ts';
import { MILVUS_SCORES } from '../../src/milvus/score-bound.ts';
import { CandidateIndex } from '../../src/published/candidate-index.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { MilvusNode } from './milvus-node.ts';

const QUERIES = 50;
const K = 10;
const CALL_ROWS = 400;
const HEAD = [
  'rows',
  'stored s',
  'MB before loading',
  'MB after searches',
  'candidates ms, median (p95)',
  'proved k 10 ms, median (p95)',
  'load average',
];

/**
 * Measures what Milvus needs by the number of rows (docs/cluster.md, "Size"), each with a Milvus of its own. Writes the lines of a table.
 */
export async function measureSizes(
  dimension: number,
  sizes: readonly number[],
  write: (line: string) => void,
): Promise<void> {
  write(`| ${HEAD.join(' | ')} |`);
  write(`| ${HEAD.map(() => '---').join(' | ')} |`);
  for (const rows of sizes) write(await measured(dimension, rows));
}

async function measured(dimension: number, rows: number): Promise<string> {
  const node = await MilvusNode.start();
  const client = await node.client();
  const collection = 'size';
  try {
    const random = seededRandom(rows);
    const vector = (): Float32Array => {
      const values = Float32Array.from({ length: dimension }, () => random() + random() + random() - 1.5);
      const norm = Math.hypot(...values);
      return values.map((value) => value / norm);
    };
    await client.create(collection, { description: '', fields: rowFields(dimension, { pieces: 1 }).slice(0, 2) });
    const start = performance.now();
    for (let at = 0; at < rows; at += CALL_ROWS) {
      const entities = Array.from({ length: Math.min(CALL_ROWS, rows - at) }, (_, i) => ({
        row: at + i,
        vector: Array.from(vector()),
      }));
      await client.upsert(collection, entities);
    }
    await client.flush(collection);
    await client.createIndex(collection, 'vector', { type: 'FLAT', metric: 'IP' });
    while ((await client.indexes(collection)).get('vector')!.pendingRows > 0) await pause(200);
    const storedS = (performance.now() - start) / 1000;
    const before = residentMb(node);
    await client.load(collection, 1);
    const source = new MilvusCandidates(client, {
      collection,
      dimension,
      metric: 'inner-product',
      indexType: 'FLAT',
      rows,
    });
    const facts = { dimension, rows, metric: 'inner-product', liveRows: undefined, scoresEveryRow: true } as const;
    const index = new CandidateIndex(source, { ...facts, largestNorm: 1.000_001, scores: MILVUS_SCORES });
    const queries = Array.from({ length: QUERIES }, vector);
    const candidates = await times(queries, (query) =>
      source.search(query, { count: 1, limit: K + 32, among: rows, condition: { type: 'all' } }),
    );
    const proved = await times(queries, (query) => index.search({ queries: query, count: 1, k: K }));
    const cells = [rows, storedS.toFixed(0), before, residentMb(node), candidates, proved, loadavg()[0]!.toFixed(1)];
    return `| ${cells.join(' | ')} |`;
  } finally {
    await client.close();
    await node.stop();
  }
}

/** Median and 95th percentile, in milliseconds. */
async function times(
  queries: readonly Float32Array[],
  search: (query: Float32Array) => Promise<unknown>,
): Promise<string> {
  const all: number[] = [];
  for (const query of queries) {
    const start = performance.now();
    await search(query);
    all.push(performance.now() - start);
  }
  all.sort((a, b) => a - b);
  const at = (share: number): string => all[Math.floor(share * all.length)]!.toFixed(1);
  return `${at(0.5)} (${at(0.95)})`;
}

/** Resident memory of Milvus, in MB. */
function residentMb({ dataFolder }: MilvusNode): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== dataFolder) continue;
      const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      return Math.round(Number(kb) / 1_000);
    } catch {
      // Another process that has ended, or that is not ours.
    }
  }
  throw new Error('Milvus does not run.');
}
