import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { parseTemplate } from '../../corpus/passage-template.ts';
import { openVectorFiles } from '../../indexer/vector-files/open-vector-files.ts';
import type { ModelOverrides } from '../../src/encoder/model/model-overrides.ts';
import { openEncoder } from '../../src/encoder/open-encoder.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { withoutMiniLm } from '../helpers/peers.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';
import { trawlError } from '../helpers/trawl-error.ts';
import { build, writeCorpus } from './build.ts';
import { fileBytes } from './vector-files/vector-files.ts';

const ROWS = 24;
const miniLm = importedMiniLm();
const skip = withoutMiniLm() || withoutSharedData('squad_v11_dev');

/** Imports vectors that the model made with the settings `made`, as though it had made them with its own. */
async function importMadeWith(
  t: TestContext,
  made: ModelOverrides,
  template = '{contents}',
  shift = 0,
): Promise<string[]> {
  const folder = await tempFolder(t);
  const model = await miniLm();
  const lines = readFileSync(sharedData('squad_v11_dev/corpus.jsonl'), 'utf8').split('\n').slice(0, ROWS);
  const documents = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const render = parseTemplate(template);
  const maker = await openEncoder(model, { overrides: made });
  const { vectors } = await maker.encode(
    documents.map((document) => render(document)),
    { inputType: 'passage' },
  );
  await maker.close();
  const path = join(folder, 'emb.npy');
  writeFileSync(path, fileBytes('npy', vectors, maker.dimension));
  const corpus = writeCorpus(folder, { 'corpus.jsonl': [...documents.slice(shift), ...documents.slice(0, shift)] });
  const encoder = await openEncoder(model);
  t.after(() => encoder.close());
  const notes: string[] = [];
  const set = await openVectorFiles([path], { dimension: encoder.dimension });
  const check = { rows: 12, reopen: (overrides: ModelOverrides) => openEncoder(model, { overrides }) };
  await build({
    corpus,
    out: join(folder, 'index'),
    encoder,
    vectors: { set, use: 'adopt', metric: encoder.identity.similarity, check },
    onNote: (text) => notes.push(text),
  });
  return notes;
}

test('vectors of the stated model pass, and the similarities are reported', { skip }, async (t) => {
  const notes = await importMadeWith(t, {});
  assert.match(
    notes.join('\n'),
    /^12 passages embedded again with all-MiniLM-L6-v2: the median similarity to their vectors is (1\.0|0\.9999)/,
  );
});

const WRONG: readonly [string, ModelOverrides, string, RegExp][] = [
  ['pooling', { pooling: 'cls' }, '{contents}', /made with pooling cls \(similarity 1\.0000\)\. Add --pooling cls\./],
  [
    'prefix',
    { passagePrefix: 'passage: ' },
    '{contents}',
    /made with prefix "passage: ".*--passage-prefix 'passage: '/,
  ],
  [
    'template',
    {},
    '{title} {text}',
    /made with template "\{title\} \{text\}".*--passage-template '\{title\} \{text\}'/,
  ],
  ['limit', { maxPassageTokens: 128 }, '{contents}', /made with 128 tokens.*--max-passage-tokens 128/],
];
for (const [what, made, template, message] of WRONG) {
  test(`vectors made with another ${what} are refused, and the error names it`, { skip }, async (t) => {
    await assert.rejects(importMadeWith(t, made, template), trawlError('VECTORS_OF_ANOTHER_MODEL', message));
  });
}

test('a corpus that is shifted by one row against its vectors is recognised', { skip }, async (t) => {
  await assert.rejects(
    importMadeWith(t, {}, '{contents}', 1),
    trawlError('VECTORS_OF_ANOTHER_MODEL', /match the vectors of the next row \(median 1\.0000\).*shifted by one row/),
  );
});
