import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type PrepareOptions, preparePassages } from '../../../indexer/prepare/prepare-passages.ts';
import { packageRoot } from '../../../src/base/package-root.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

test('trawl prepare makes the rows shown in docs/corpora.md of the page shown there', async (t) => {
  const page = readFileSync(join(packageRoot, 'docs', 'corpora.md'), 'utf8').split('\n');
  const folder = await tempFolder(t);
  const documents = [join(folder, 'page.jsonl')];
  writeFileSync(documents[0]!, page.find((line) => line.startsWith('{"wikipedia_id"'))!);
  const examples: readonly (Pick<PrepareOptions, 'rule' | 'size' | 'overlap'> & { rows: number; name: string })[] = [
    { rule: 'words', size: 8, overlap: 2, rows: 3, name: 'words.jsonl' },
    { rule: 'flashrag-words', size: 8, rows: 2, name: 'flashrag.jsonl' },
    { rule: 'rag-r1', rows: 1, name: 'rag.tsv' },
  ];
  for (const { rows, name, ...rule } of examples) {
    const out = join(folder, name);
    await preparePassages({ documents, out, workers: 1, ...rule });
    const lines = readFileSync(out, 'utf8').trimEnd().split('\n');
    assert.equal(lines.length, rows);
    const first = page.indexOf(lines[0]!);
    assert.deepEqual(page.slice(first, first + rows), lines, name);
  }
});
