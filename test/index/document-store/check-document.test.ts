import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { checkRow } from '../../../corpus/check-row.ts';
import { columnValues } from '../../../src/engine/columns/column-values.ts';
import { checkDocument } from '../../../src/index/document-store/check-document.ts';
import type { IndexDefinition } from '../../../src/index/document-store/index-files.ts';
import { sourceOfRow, writtenRow } from '../../../src/index/document-store/written-row.ts';
import { runs } from '../../helpers/runs.ts';

function definition(fields: IndexDefinition['fields'], strict = false): IndexDefinition {
  return {
    format: 'trawl-writable-index',
    version: 1,
    name: 'ix',
    uuid: 'u',
    createdAt: 0,
    fields,
    analyser: 'standard',
    columns: [
      { name: 'source', type: 'string', integer: false },
      { name: 'year', type: 'number', integer: true },
      { name: 'meta.date', type: 'date', integer: false },
      { name: 'open', type: 'boolean', integer: false },
    ],
    strict,
    properties: { title: {}, text: {}, contents: {}, source: {}, year: {}, meta: {}, open: {} },
    settings: { shards: 1, replicas: 0, refreshMs: -1 },
  };
}

const fieldLists = fc.constantFrom<string[]>(
  ['contents'],
  ['title', 'text'],
  ['title', 'other'],
  ['meta.note', 'contents'],
);
const anything = fc.jsonValue({ maxDepth: 2 });
const likely = fc.oneof({ weight: 9, arbitrary: fc.string() }, anything);
const document = fc.record(
  {
    title: likely,
    text: likely,
    contents: likely,
    source: fc.oneof({ weight: 9, arbitrary: fc.oneof(fc.string(), fc.array(fc.string())) }, anything),
    year: fc.oneof({ weight: 9, arbitrary: fc.integer() }, fc.double(), anything),
    meta: fc.oneof(
      fc.record({ date: fc.constantFrom('1883-05-24', '2020-01-01T12:00Z', ['1990-01-01'], null, 'x') }),
      anything,
    ),
    open: fc.oneof({ weight: 9, arbitrary: fc.boolean() }, anything),
    id: likely,
    other: anything,
  },
  { requiredKeys: [] },
);

test('every document that is accepted can be indexed, and comes back as it was sent', () => {
  let accepted = 0;
  fc.assert(
    fc.property(document, fieldLists, fc.nat(4), (members, fields, space) => {
      const made = definition(fields);
      const text = JSON.stringify(members, null, space);
      const checked = checkDocument(text, made);
      if ('failure' in checked) {
        assert.equal(checked.failure.status, 400);
        return;
      }
      accepted++;
      assert.ok(!/[\r\n]/.test(checked.source));
      assert.deepEqual(JSON.parse(checked.source), JSON.parse(text));
      const row = writtenRow(made, '1', checked.source);
      assert.equal(sourceOfRow(row), checked.source.replace(/^\{\s+/, '{').replace(/\s+\}$/, '}'));
      const parsed: unknown = JSON.parse(row);
      assert.ok(checkRow(1, parsed, row).ok, row);
      for (const column of made.columns) assert.ok(!('wrong' in columnValues(parsed, column)), row);
    }),
    { numRuns: runs(800, 3_000) },
  );
  assert.ok(accepted > 300, `${accepted} documents`);
});

test('any text is accepted or refused', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      const checked = checkDocument(text, definition(['title', 'text']));
      if ('failure' in checked) assert.equal(checked.failure.type, 'document_parsing_exception');
    }),
  );
});

for (const [what, text, reason] of [
  ['deeper than 64 levels', `{"a":${'['.repeat(64)}${']'.repeat(64)}}`, /nested deeper than 64 levels/],
  ['larger than the limit', JSON.stringify({ text: 'x'.repeat(17_000_000) }), /at most 16777216 characters/],
  ['with a fraction in an integer', '{"year": 1.5}', /\[year\] has integers up to 2\^53, but found 1.5/],
  ['with an integer beyond 2^53', '{"year": 9007199254740993}', /\[year\] has integers up to 2\^53/],
  ['with a name of Elasticsearch', '{"_source": {}}', /\[_source\] is a metadata field/],
  [
    'with a number in its text',
    '{"text": ["a", 5]}',
    /\[text\] must be a string or a list of strings, but has a number/,
  ],
] as const) {
  test(`a document ${what} is refused`, () => {
    const checked = checkDocument(text, definition(['title', 'text']));
    assert.ok('failure' in checked);
    assert.match(checked.failure.reason, reason);
  });
}

test('a strict index refuses members that are not mapped', () => {
  const checked = checkDocument('{"text":"a","other":1}', definition(['title', 'text'], true));
  assert.ok('failure' in checked);
  assert.equal(checked.failure.type, 'strict_dynamic_mapping_exception');
  assert.ok('source' in checkDocument('{"text":"a","year":1}', definition(['title', 'text'], true)));
});
