import assert from 'node:assert/strict';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { type TestContext, test } from 'node:test';
import { exportIndex } from '../../indexer/export/export-index.ts';
import { bm25Settings } from '../../indexer/lexical/make-lexical.ts';
import { removePassages } from '../../indexer/update/remove-passages.ts';
import { packageRoot } from '../../src/base/package-root.ts';
import { analyser } from '../../src/engine/lexical/analysis/analysers.ts';
import type { AnalyserName } from '../../src/engine/lexical/lexical-settings.ts';
import { documentFields } from '../../src/index/passages/document-fields.ts';
import { CLIENTS } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { build } from '../indexer/build.ts';
import { kernel, skip as withoutEngine } from '../indexer/updated-index.ts';

const SKIP = CLIENTS.missing() || withoutEngine;
const REAL = 'hotpot_val500_pooled/corpus.jsonl';

interface CiffReply {
  readonly differences: readonly string[];
  readonly sameBytes: boolean;
  readonly lists: number;
  readonly postings: number;
}

async function compare(
  t: TestContext,
  corpus: string,
  { name, shardRows, file }: { name: AnalyserName; shardRows: number; file: string },
): Promise<CiffReply> {
  const folder = await tempFolder(t);
  const index = join(folder, 'index');
  const bm25 = bm25Settings({ analyser: name, k1: 0.9, b: 0.4, fields: ['contents'] });
  await build({ corpus: [corpus], out: index, kernel, encoder: undefined, bm25, shardRows });
  const ids: string[] = [];
  const terms: string[][] = [];
  const removed: string[] = [];
  for await (const line of createInterface({ input: createReadStream(corpus) })) {
    const { id } = JSON.parse(line) as { id: string | number };
    if (line.length % 13 === 0) {
      removed.push(String(id));
      continue;
    }
    ids.push(String(id));
    terms.push(analyser(name)(documentFields(line).contents));
  }
  await removePassages(index, removed);
  assert.ok(removed.length > 0);
  const ciff = join(folder, file);
  await exportIndex({ index, files: { ciff } });
  return (await CLIENTS.run('ciff_read.py', { ciff, ids, terms })) as CiffReply;
}

for (const [name, file] of [
  ['english', 'a.ciff'],
  ['cjk', 'a.ciff.gz'],
] as const) {
  test(`ciff-toolkit reads the ${name} terms, frequencies, lengths and ids of the live passages from ${file}`, {
    skip: SKIP,
  }, async (t) => {
    const corpus = join(packageRoot, 'corpus', 'sample', 'passages.jsonl');
    const { differences, sameBytes, postings } = await compare(t, corpus, { name, shardRows: 100, file });
    assert.deepEqual(differences, []);
    assert.ok(sameBytes, 'protobuf encodes the messages in the same bytes');
    assert.ok(postings > 1_000);
  });
}

test('ciff-toolkit reads the index of real passages', { skip: SKIP || withoutSharedData(REAL) }, async (t) => {
  const settings = { name: 'english', shardRows: 2_000, file: 'a.ciff.gz' } as const;
  const { differences, sameBytes, lists, postings } = await compare(t, sharedData(REAL), settings);
  t.diagnostic(`${lists} lists, ${postings} postings`);
  assert.deepEqual(differences, []);
  assert.ok(sameBytes);
});
