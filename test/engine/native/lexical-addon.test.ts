import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { loadKernel } from '../../../src/engine/native/kernel.ts';
import { ADDON_PATH, type Addon } from '../../../src/engine/native/load-addon.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { writeLexical } from '../lexical/lexical-files.ts';

const loaded = loadKernel();
const skip = loaded.ok ? false : `the native engine is not available: ${loaded.reason}`;
/** Without types, because the tests pass wrong arguments. */
const addon = (loaded.ok ? createRequire(import.meta.url)(ADDON_PATH) : {}) as Record<
  keyof Addon,
  (...args: unknown[]) => unknown
>;
const LUCENE = { k1: 0.9, b: 0.4, k1Factor: false };

async function openTexts(folder: string, texts: readonly string[]): Promise<unknown> {
  const { shards } = await writeLexical(folder, texts, (loaded as Extract<typeof loaded, { ok: true }>).kernel);
  return addon.openLexical(1_000_000, { shards: shards.map(({ path }) => path) });
}

test('searchLexicalFields refuses every wrong argument and every wrong tree, and works afterwards', {
  skip,
}, async (t) => {
  const index = await openTexts(await tempFolder(t), ['a b', 'b c', 'c']);
  const shorter = await openTexts(await tempFolder(t), ['a b']);
  const field = { name: 'text', index };
  const term = { type: 'term', field: 'text', term: 'b' };
  let nextId = 2_000_000;
  const search = async (...args: unknown[]): Promise<{ counts: Uint32Array }> => {
    const [fields = [field], queries = [term], k = 3, parameters = LUCENE, filter] = args;
    return addon.searchLexicalFields(nextId++, fields, { queries, k, parameters, filter }) as Promise<{
      counts: Uint32Array;
    }>;
  };
  const closed = await openTexts(await tempFolder(t), ['x']);
  addon.closeLexical(closed);

  for (const fields of [[], {}, 'text', [null], [{ name: 'text' }], [{ name: 7, index }], [field, field]]) {
    await assert.rejects(search(fields), TypeError, JSON.stringify(fields));
  }
  await assert.rejects(search([{ name: 'text', index: closed }]), /open handle/);
  await assert.rejects(search([field, { name: 'title', index: shorter }]), /same rows/);
  const nested = (levels: number): object =>
    levels === 1 ? term : { type: 'constant-score', query: nested(levels - 1) };
  const circular: { type: string; queries: unknown[] } = { type: 'dis-max', queries: [] };
  circular.queries.push(circular, circular);
  const trees: readonly unknown[] = [
    ...[null, undefined, 7, 'b', [], {}, Symbol('x'), () => term],
    ...[{ type: 'terms' }, { type: 7 }, { ...term, field: 'title' }, { ...term, field: 0 }, { ...term, term: 7 }],
    ...[-1, Number.NaN, Number.POSITIVE_INFINITY, 1e39, '2', null].map((boost) => ({ ...term, boost })),
    { type: 'match', field: 'text' },
    { type: 'match', field: 'text', text: 'b', operator: 'OR' },
    { type: 'match', field: 'text', text: 'b', withoutTerms: 'some' },
    ...[0.5, '1', Number.NaN, 2 ** 40].map((minimum) => ({
      type: 'match',
      field: 'text',
      text: 'b',
      minimumShouldMatch: minimum,
    })),
    ...['must', 'should', 'filter', 'mustNot'].flatMap((name) => [
      { type: 'bool', [name]: term },
      { type: 'bool', [name]: [null] },
    ]),
    { type: 'bool', should: [term], minimumShouldMatch: -1 },
    { type: 'dis-max' },
    { type: 'dis-max', queries: [term], tieBreaker: 1.1 },
    { type: 'constant-score' },
    nested(33),
    { type: 'bool', should: Array.from({ length: 2 ** 18 }, () => term) },
    { type: 'bool', should: new Array(2 ** 32 - 1) },
    circular,
  ];
  for (const [i, tree] of trees.entries()) await assert.rejects(search([field], [term, tree]), TypeError, `tree ${i}`);
  await assert.rejects(search([field], new Array(2 ** 32 - 1)), TypeError);
  await assert.rejects(search([field], term), TypeError);
  const thrown = new Error('from a getter');
  const throwing = {
    get type(): string {
      throw thrown;
    },
  };
  await assert.rejects(search([field], [throwing]), (error) => error === thrown);
  for (const k of [0, 1.5, '3']) await assert.rejects(search([field], [term], k), TypeError);
  await assert.rejects(search([field], [term], 3, { ...LUCENE, b: '1' }), TypeError);
  await assert.rejects(search([field], [term], 3, LUCENE, new Uint8Array(2)), TypeError);

  const { counts } = await search([field], [term, nested(32), { type: 'match', field: 'text', text: 'a c' }]);
  assert.deepEqual([...counts], [2, 2, 3]);
});
