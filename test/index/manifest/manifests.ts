import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { IndexManifest } from '../../../src/index/manifest/index-manifest.ts';
import type { ShardManifest } from '../../../src/index/manifest/shard-manifest.ts';
import { modelIdentity } from '../../helpers/model-identity.ts';

const MODEL = modelIdentity({
  name: 'a-model',
  sha256: 'a'.repeat(64),
  dimension: 4,
  normalize: true,
  similarity: 'cosine',
  prefixes: { query: 'query: ', passage: '' },
});

const CORPUS: IndexManifest['corpus'] = {
  files: [{ name: 'corpus.jsonl', bytes: 1000, sha256: 'b'.repeat(64), passages: 9 }],
  skippedLines: 1,
  duplicateIds: 0,
  truncatedPassages: 2,
  passageTemplate: '{contents}',
};

/** Three shards with 4, 0 and 5 rows, and one deleted row. */
export function validIndexManifest(): IndexManifest {
  return {
    format: 'trawl-index',
    version: 1,
    generation: '0'.repeat(32),
    rows: 9,
    dimension: 4,
    metric: 'cosine',
    model: structuredClone(MODEL),
    corpus: structuredClone(CORPUS),
    shards: [
      { path: 'shard-00000', firstRow: 0, rows: 4, generation: '1'.repeat(32) },
      { path: 'shard-00001', firstRow: 4, rows: 0, generation: '2'.repeat(32) },
      { path: '/elsewhere/shard', firstRow: 4, rows: 5, generation: '3'.repeat(32) },
    ],
    tombstones: { path: 'tombstones.bin', bytes: 2, sha256: 'c'.repeat(64), rows: 1 },
    writer: 'trawl 0.1.0',
  };
}

export function validShardManifest(): ShardManifest {
  return {
    format: 'trawl-shard',
    version: 1,
    generation: '1'.repeat(32),
    rows: 4,
    dimension: 4,
    metric: 'cosine',
    model: structuredClone(MODEL),
    corpus: structuredClone(CORPUS),
    vectors: [
      { path: 'part_0', offset: 45, bytes: 30, dtype: 'float32' },
      { path: 'part_1', offset: 0, bytes: 34, dtype: 'float32' },
    ],
    codes: { path: 'codes.bin' },
    passages: { path: 'passages.sqlite', sha256: 'd'.repeat(64) },
    files: [{ path: 'part_0', bytes: 75, sha256: 'e'.repeat(64) }],
  };
}

export function writeText(folder: string, name: string, text: string): string {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, name), text);
  return folder;
}
