import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { contentsOf } from '../../src/index/passages/contents.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { corpusDir, readAll } from './corpus-dir.ts';

for (const [name, rows] of [
  ['pool_wiki_dev/corpus.jsonl', 79_482],
  ['flashrag_sample/sample_data.jsonl', 1_000],
  ['hotpot_val500_pooled/corpus.jsonl', 4_937],
  ['squad_v11_dev/corpus.jsonl', 2_067],
] as const) {
  const path = sharedData(name);
  test(`${name} has ${rows} passages, and each document is its line`, { skip: withoutSharedData(name) }, async () => {
    const lines = readFileSync(path, 'utf8').split('\n');
    const corpus = openCorpus([path]);
    let count = 0;
    for await (const passage of corpus) {
      assert.equal(passage.document, lines[count]);
      assert.equal(passage.location.line, count + 1);
      assert.ok(contentsOf(passage.row)!.length > 0);
      count += 1;
    }
    assert.equal(count, rows);
    assert.equal(corpus.report.readBytes, corpus.report.sizeBytes);
  });
}

const FLASHRAG = 'flashrag_sample/sample_data.jsonl';
test('real passages survive gzip and TSV', { skip: withoutSharedData(FLASHRAG) }, async (t) => {
  const dir = corpusDir(t);
  const passages = await readAll(sharedData(FLASHRAG));
  const zipped = await readAll(dir.write('c.jsonl.gz', gzipSync(readFileSync(sharedData(FLASHRAG)))));
  assert.deepEqual(
    zipped.map(({ document }) => document),
    passages.map(({ document }) => document),
  );
  const flat = passages.map(({ row }) => contentsOf(row)!.replaceAll(/[\r\n]/g, '   '));
  const tsv = await readAll(dir.write('c.tsv', flat.map((contents, i) => `${i}\t${contents}\n`).join('')));
  assert.deepEqual(
    tsv.map(({ id, row }) => [id, row.contents]),
    flat.map((contents, i) => [i, contents]),
  );
});
