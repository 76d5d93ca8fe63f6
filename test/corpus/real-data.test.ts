import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { contentsOf } from '../../corpus/contents-of.ts';
import { openCorpus } from '../../corpus/open-corpus.ts';
import { corpusDir, readAll } from './corpus-dir.ts';

const sharedData = join(repositoryRoot(), '..', 'shared', 'data');

function repositoryRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, 'package.json'))) folder = dirname(folder);
  return folder;
}

function needs(file: string): { path: string; skip: string | false } {
  const path = join(sharedData, file);
  return { path, skip: !existsSync(path) && `${path} is not there` };
}

for (const [name, rows] of [
  ['pool_wiki_dev/corpus.jsonl', 79_482],
  ['flashrag_sample/sample_data.jsonl', 1_000],
  ['hotpot_val500_pooled/corpus.jsonl', 4_937],
  ['squad_v11_dev/corpus.jsonl', 2_067],
] as const) {
  const { path, skip } = needs(name);
  test(`${name} is read whole: ${rows} passages, each document its line`, { skip }, async () => {
    const lines = readFileSync(path, 'utf8').split('\n');
    const corpus = openCorpus([path]);
    let count = 0;
    for await (const passage of corpus) {
      assert.equal(passage.document, lines[count]);
      assert.equal(passage.location.line, count + 1);
      assert.ok(contentsOf(passage.row).length > 0);
      count += 1;
    }
    assert.equal(count, rows);
    assert.equal(corpus.report.readBytes, corpus.report.sizeBytes);
  });
}

const flashrag = needs('flashrag_sample/sample_data.jsonl');
test('real passages come out of gzip and TSV as they went in', { skip: flashrag.skip }, async (t) => {
  const dir = corpusDir(t);
  const passages = await readAll(flashrag.path);
  const zipped = await readAll(dir.write('c.jsonl.gz', gzipSync(readFileSync(flashrag.path))));
  assert.deepEqual(
    zipped.map(({ document }) => document),
    passages.map(({ document }) => document),
  );
  const flat = passages.map(({ row }) => contentsOf(row).replaceAll(/[\r\n]/g, '   '));
  const tsv = await readAll(dir.write('c.tsv', flat.map((contents, i) => `${i}\t${contents}\n`).join('')));
  assert.deepEqual(
    tsv.map(({ id, row }) => [id, row.contents]),
    flat.map((contents, i) => [i, contents]),
  );
});
