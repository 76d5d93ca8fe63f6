import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { BM25_PROFILES, type Bm25Ranking } from '../../../src/engine/lexical/bm25.ts';
import { openNativeLexicalFields } from '../../../src/engine/lexical/native-lexical.ts';
import { type Kernel, loadKernel } from '../../../src/engine/native/kernel.ts';
import { referenceLexicalFields } from '../../../src/engine/reference/lexical/composed-fields.ts';
import { LexicalSearch } from '../../../src/search/lexical/lexical-search.ts';
import { writeLexical } from '../../engine/lexical/lexical-files.ts';
import { seededRandom } from '../../helpers/seeded-random.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;

test('the terms of two fields give the score: the best field, and the share of the other', { skip }, async (t) => {
  const { kernel } = loaded as { kernel: Kernel };
  const random = seededRandom(17);
  const texts = (length: number): string[] =>
    Array.from({ length: 400 }, () =>
      Array.from({ length: Math.floor(length * random()) }, () => `w${Math.floor(60 ** random())}`).join(' '),
    );
  const folder = await tempFolder(t);
  const sources = new Map();
  for (const [field, length] of [
    ['title', 4],
    ['text', 40],
  ] as const) {
    mkdirSync(join(folder, field));
    sources.set(field, await writeLexical(join(folder, field), texts(length), kernel, { shardRows: [150, 250] }));
  }
  const rankings: Bm25Ranking[] = [
    BM25_PROFILES.lucene,
    { ...BM25_PROFILES.elasticsearch, weights: { title: 2.3, text: 0.7 }, tieBreaker: 0.3 },
    { ...BM25_PROFILES.lucene, weights: { title: 0 } },
  ];
  for (const fields of [await openNativeLexicalFields(sources, kernel), await referenceLexicalFields(sources)]) {
    t.after(() => fields.close());
    for (const ranking of rankings) {
      const text = 'w3 w9 w9 w30 unknown';
      const lexical = new LexicalSearch(fields, { index: 'x', rows: 100, bm25: null, model: null });
      const found = await lexical.search([text], { k: 50, bm25: ranking });
      const rows = [...found.rows].slice(0, found.counts[0]);
      const [explained] = await lexical.explain([{ text, rows }], ranking, undefined);
      assert.ok(rows.length > 20);
      for (const [i, terms] of explained!.entries()) {
        const sums = (['title', 'text'] as const).map((field) =>
          Math.fround(terms.filter((term) => term.field === field).reduce((sum, { score }) => sum + score, 0)),
        );
        const share = Math.fround(ranking.tieBreaker ?? 0);
        assert.equal(found.scores[i], Math.fround(Math.max(...sums) + share * Math.min(...sums)));
        if (ranking.weights?.title === 0) assert.ok(terms.every(({ field }) => field === 'text'));
        for (const { term, field, boost } of terms) {
          const weight = Math.fround(ranking.weights?.[field] ?? 1);
          assert.equal(boost, Math.fround((term === 'w9' ? 2 : 1) * weight));
        }
      }
    }
  }
});

test('a call whose rows have more than a million terms of its queries is refused, in both engines', {
  skip,
}, async (t) => {
  const { kernel } = loaded as { kernel: Kernel };
  const text = Array.from({ length: 2_000 }, (_, i) => `w${i}`).join(' ');
  const folder = await tempFolder(t);
  const sources = new Map();
  for (const field of ['title', 'text']) {
    mkdirSync(join(folder, field));
    sources.set(field, await writeLexical(join(folder, field), new Array(250).fill(text), kernel));
  }
  const rows = Array.from({ length: 250 }, (_, row) => row);
  const unknown = Array.from({ length: 5_000 }, (_, i) => `x${i}`).join(' ');
  for (const fields of [await openNativeLexicalFields(sources, kernel), await referenceLexicalFields(sources)]) {
    t.after(() => fields.close());
    const lexical = new LexicalSearch(fields, { index: 'x', rows: 100, bm25: null, model: null });
    const explain = (...queries: { text: string; rows: number[] }[]) => lexical.explain(queries, undefined, undefined);
    const explained = await explain({ text: `${text} ${unknown}`, rows });
    assert.equal(explained.flat(2).length, 1_000_000);
    const refused = trawlError('K_TOO_LARGE', /more than 1000000 terms .*shorter queries .*leave out explain/);
    await assert.rejects(explain({ text, rows }, { text: 'w7', rows: [3] }), refused);
    await assert.rejects(explain({ text, rows: [...rows, 0] }), refused);
  }
});
