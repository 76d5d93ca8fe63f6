import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { formatRows } from '../../../indexer/prepare/format-rows.ts';
import { dpr as dprRule, wiki18 as wiki18Rule } from '../../../indexer/prepare/rules/dpr.ts';
import { flashragWords } from '../../../indexer/prepare/rules/flashrag-words.ts';
import { ragR1 as ragR1Rule } from '../../../indexer/prepare/rules/rag-r1.ts';
import { sentences } from '../../../indexer/prepare/rules/sentences.ts';
import type { SplittingRule } from '../../../indexer/prepare/rules/splitting-rule.ts';
import { words as wordsRule } from '../../../indexer/prepare/rules/words.ts';
import { documentFields } from '../../../src/index/passages/document-fields.ts';
import { joinPassages, orderedPassages } from '../../../src/server/documents/join-passages.ts';
import { documentOf, numbered } from '../../indexer/prepare/documents.ts';

const [dpr, ragR1, wiki18] = [dprRule.open(), ragR1Rule.open(), wiki18Rule.open()];

/** The rows that `trawl prepare` writes for one document. */
function rowsOf(rule: SplittingRule, document: object, columns = true): string[] {
  const source = documentOf(document);
  const split = rule.split(source);
  assert.ok(split.ok);
  const options = { format: 'jsonl', idFrom: 'position', columns } as const;
  return formatRows(rule, options, [{ document: source, passages: split.passages }], 0)
    .split('\n')
    .slice(0, -1);
}

function joined(rows: readonly string[]): string {
  const passages = orderedPassages(rows.map((row) => ({ fields: documentFields(row) })));
  return joinPassages(passages.map(({ fields }) => fields));
}

const words = (text: string): string =>
  text
    .split(/\s+/)
    .filter((word) => word !== '')
    .join(' ');

/** Texts of a few words that recur, so that overlaps look alike. */
const TEXT = fc
  .array(
    fc.array(fc.constantFrom('the', 'cat', 'sat', 'on', 'a', 'mat.', 'New', 'York'), { minLength: 1, maxLength: 40 }),
    {
      minLength: 1,
      maxLength: 12,
    },
  )
  .map((paragraphs) => paragraphs.map((each) => each.join(' ')).join('\n'));

test('the passages of every rule, with any size and overlap, are joined to the words of their document', () => {
  const sizes = fc
    .integer({ min: 1, max: 30 })
    .chain((size) => fc.record({ size: fc.constant(size), overlap: fc.integer({ min: 0, max: size - 1 }) }));
  const rules = fc.oneof(
    sizes.map((window) => wordsRule.open(window)),
    sizes.map((window) => sentences.open(window)),
    sizes.map(({ size }) => flashragWords.open({ size, overlap: 0 })),
    fc.constant(ragR1),
  );
  fc.assert(
    fc.property(rules, TEXT, fc.boolean(), (rule, text, reversed) => {
      const rows = rowsOf(rule, { id: 'd', title: 'Title', text });
      assert.equal(words(joined(reversed ? rows.toReversed() : rows)), words(text));
    }),
    { numRuns: 500 },
  );
});

test('the words that fill up the last passage of DPR and wiki-18 are left out, with and without columns', () => {
  for (const [rule, columns] of [
    [dpr, true],
    [wiki18, true],
    [wiki18, false],
    [dpr, false],
  ] as const) {
    for (const count of [99, 100, 198, 199, 200, 250]) {
      const rows = rowsOf(rule, { id: 'd', title: 'Title', text: numbered(count) }, columns);
      assert.equal(joined(rows), `Title ${numbered(count)}`, `${count} ${columns}`);
    }
  }
});

test('without columns, an overlap of at least eight words is left out, and a shorter one may be a coincidence', () => {
  const row = (text: string): string => JSON.stringify({ id: 1, title: 'T', text });
  const [first, second] = [numbered(20), numbered(40, 12)];
  assert.equal(joined([row(first), row(second)]), numbered(40));
  assert.equal(joined([row(numbered(20)), row(numbered(40, 13))]), `${numbered(20)}\n${numbered(40, 13)}`);
  assert.equal(joined([row(`a ${first}`), row(first)]), `a ${first}`);
});

test('passages with different titles are joined with their titles, and missing ones leave the rest as it is', () => {
  const rows = [
    { id: 1, title: 'A', text: 'x' },
    { id: 2, title: 'B', text: 'y' },
  ].map((row) => JSON.stringify(row));
  assert.equal(joined(rows), '"A"\nx\n"B"\ny');
  const prepared = rowsOf(wordsRule.open({ size: 4, overlap: 2 }), { id: 'd', title: 'T', text: numbered(12) });
  assert.equal(prepared.length, 5);
  assert.equal(joined(prepared.toSpliced(1, 1)), 'w0 w1 w2 w3 w4 w5 w6 w7 w8 w9 w10 w11');
  assert.equal(joined([prepared[0]!]), 'w0 w1 w2 w3');
});
