import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { decodeHTML } from 'entities';
import { preparePassages } from '../../indexer/prepare/prepare-passages.ts';
import { joinWords, pythonStrip, splitWords } from '../../indexer/prepare/python-text.ts';
import { readAll } from '../corpus/corpus-dir.ts';
import { PEERS } from '../helpers/peers.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { sharedData, withoutSharedData } from '../helpers/shared-data.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const KILT = 'kilt/filtered_kilt_sample_99.jsonl';

interface Rows {
  readonly ragR1: readonly string[];
  readonly dpr: readonly (readonly [id: string, text: string, title: string])[];
  readonly flashrag: readonly unknown[];
}

test('99 KILT pages are split into the same rows as by Python programs', {
  skip: PEERS.missing() || withoutSharedData(KILT),
}, async (t) => {
  const folder = await tempFolder(t);
  const size = 50;
  const rows = (await PEERS.run('prepare_rows.py', { path: sharedData(KILT), size })) as Rows;
  const documents = [sharedData(KILT)];
  const [tsv, dpr, flashrag] = ['rag.tsv', 'dpr.tsv', 'flashrag.jsonl'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  await preparePassages({ documents, out: tsv, rule: 'rag-r1', workers: 2 });
  assert.equal(readFileSync(tsv, 'utf8'), rows.ragR1.map((row) => `${row}\n`).join(''));
  await preparePassages({ documents, out: dpr, rule: 'dpr', workers: 2 });
  assert.deepEqual(
    (await readAll(dpr)).map(({ row }) => [row['id'], row['text'], row['title']]),
    rows.dpr,
  );
  await preparePassages({ documents, out: flashrag, rule: 'flashrag-words', size, columns: false, workers: 2 });
  assert.deepEqual(
    (await readAll(flashrag)).map(({ row }) => row),
    rows.flashrag,
  );
  t.diagnostic(`${rows.ragR1.length} rows of RAG-R1, ${rows.dpr.length} of DPR, ${rows.flashrag.length} of FlashRAG`);
});

const PARTS = [
  ...[
    'a',
    'é',
    '😀',
    ' ',
    '\n',
    '\r',
    '\t',
    '\u00a0',
    '\ufeff',
    '\x1c',
    '\x1f',
    '\x85',
    '\u2003',
    '\u2028',
    '\u200b',
    '\u3000',
  ],
  ...[
    '&amp;',
    '&lt',
    '&gt;',
    '&quot;',
    '&nbsp;',
    '&#39;',
    '&#x27;',
    '&#128;',
    '&eacute;',
    '&notit;',
    '&copy',
    '&AMP',
    '&#',
  ],
  ...['&', '#', ';', '&amp;lt;', '&ndash;', '&mdash;', '&frac12;', '&thinsp;', '&Sigma;', '&hearts;'],
];

test("words, stripping and HTML entities equal Python's for 2,000 random texts", {
  skip: PEERS.missing(),
}, async () => {
  const random = seededRandom(3);
  const texts = Array.from({ length: 2000 }, () =>
    Array.from({ length: 1 + Math.floor(random() * 15) }, () => PARTS[Math.floor(random() * PARTS.length)]).join(''),
  );
  const python = (await PEERS.run('prepare_rows.py', { texts })) as Record<string, unknown[]>;
  for (const [i, text] of texts.entries()) {
    const words = splitWords(text);
    const found = Array.from({ length: words.count }, (_, word) => joinWords(words, word, word + 1));
    assert.deepEqual(found, python['words']![i], JSON.stringify(text));
    assert.equal(pythonStrip(text), python['stripped']![i], JSON.stringify(text));
    assert.equal(decodeHTML(text), python['unescaped']![i], JSON.stringify(text));
  }
});
