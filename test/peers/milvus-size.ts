import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { loadavg } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { median, percentile, sortedSamples } from '../../src/base/statistics.ts';
import { milvusCandidates } from '../../src/stores/milvus/milvus-candidates.ts';
import { rowFields } from '../../src/stores/milvus/published-rows.ts';
import { MILVUS_SCORES } from '../../src/stores/milvus/score-bound.ts';
import { CandidateIndex } from '../../src/stores/published/candidate-index.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { MilvusNode } from './milvus-node.ts';

/** Of single queries, in milliseconds. */
interface MilvusTimes {
  readonly medianMs: number;
  readonly p95Ms: number;
}

export interface MilvusSizeRow {
  readonly rows: number;
  /** Until all rows are stored and in Milvus's index. */
  readonly storedS: number;
  /** Resident memory of Milvus before its rows are loaded, and after the searches. */
  readonly beforeLoadingBytes: number;
  readonly afterSearchesBytes: number;
  /** Searches for 42 candidates. */
  readonly candidates: MilvusTimes;
  /** Searches for ten hits, proved. */
  readonly proved: MilvusTimes;
  /** Load average of the last minute. */
  readonly load: number;
}

const QUERIES = 50;
const K = 10;
const CALL_ROWS = 400;

/**
 * Measures what Milvus needs by the number of rows (docs/cluster.md, "Size"), each with a Milvus of its own.
 *
 * @param onSize called with each size that has been measured.
 */
export async function measureSizes(
  dimension: number,
  sizes: readonly number[],
  onSize: (row: MilvusSizeRow) => void,
): Promise<MilvusSizeRow[]> {
  const rows: MilvusSizeRow[] = [];
  for (const size of sizes) {
    const row = await measured(dimension, size);
    onSize(row);
    rows.push(row);
  }
  return rows;
}

async function measured(dimension: number, rows: number): Promise<MilvusSizeRow> {
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
    const before = residentBytes(node);
    await client.load(collection, 1);
    const source = milvusCandidates(client, {
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
    return {
      rows,
      storedS,
      beforeLoadingBytes: before,
      afterSearchesBytes: residentBytes(node),
      candidates,
      proved,
      load: loadavg()[0]!,
    };
  } finally {
    await client.close();
    await node.stop();
  }
}

async function times(
  queries: readonly Float32Array[],
  search: (query: Float32Array) => Promise<unknown>,
): Promise<MilvusTimes> {
  const all: number[] = [];
  for (const query of queries) {
    const start = performance.now();
    await search(query);
    all.push(performance.now() - start);
  }
  const samples = sortedSamples(all);
  return { medianMs: median(samples), p95Ms: percentile(samples, 95) };
}

/** Resident memory of Milvus. */
function residentBytes({ dataFolder }: MilvusNode): number {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readlinkSync(`/proc/${pid}/cwd`) !== dataFolder) continue;
      const [, kb] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      return Number(kb) * 1024;
    } catch {
      // Another process that has ended, or that is not ours.
    }
  }
  throw new Error('Milvus does not run.');
}
