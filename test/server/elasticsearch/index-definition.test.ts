import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ElasticsearchError } from '../../../src/server/elasticsearch/elasticsearch-error.ts';
import { type Members, parseJson } from '../../../src/server/elasticsearch/json-node.ts';
import {
  DEFAULT_SETTINGS,
  readMapping,
  readSettings,
} from '../../../src/server/elasticsearch/write/index-definition.ts';

function membersOf(value: object): Members {
  return parseJson(JSON.stringify(value)).object('the value');
}

const field = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ type: fc.constantFrom('keyword', 'long', 'date', 'boolean', 'float', 'text', 'x') }),
  },
  fc.record({ type: fc.constant('text'), analyzer: fc.constantFrom('standard', 'english', 'x') }),
  fc.record({
    properties: fc.dictionary(fc.constantFrom('a', 'b'), fc.record({ type: fc.constantFrom('date', 'text') })),
  }),
  fc.jsonValue({ maxDepth: 2 }),
);
const mapping = fc.record(
  {
    properties: fc.oneof(
      {
        weight: 4,
        arbitrary: fc.dictionary(fc.constantFrom('title', 'text', 'contents', 'a', 'b', '_c', '__proto__'), field),
      },
      fc.jsonValue(),
    ),
    dynamic: fc.constantFrom(false, 'false', 'strict', true, 1),
    _source: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
/** Mappings that have no fault. */
const readableMapping = fc.record({
  properties: fc.record(
    {
      title: fc.constant({ type: 'text' }),
      text: fc.constant({ type: 'text' }),
      a: fc.record({ type: fc.constantFrom('keyword', 'long', 'date', 'boolean') }),
      b: fc.record({ properties: fc.record({ a: fc.constant({ type: 'date' }) }) }),
    },
    { requiredKeys: [] },
  ),
});

test('a mapping is read or refused, and what is read maps each of its fields', () => {
  let read = 0;
  fc.assert(
    fc.property(fc.oneof({ weight: 4, arbitrary: mapping }, readableMapping), (generated) => {
      // Objects as JSON has them.
      const value = JSON.parse(JSON.stringify(generated)) as typeof generated;
      let found: ReturnType<typeof readMapping>;
      try {
        found = readMapping(membersOf(value));
      } catch (error) {
        assert.ok(error instanceof ElasticsearchError);
        assert.deepEqual([error.status, error.failure.type], [400, 'mapper_parsing_exception']);
        return;
      }
      read++;
      const properties = (value.properties ?? {}) as Record<string, { type?: string }>;
      for (const [name, { type }] of Object.entries(properties)) {
        const isField = found.fields.includes(name);
        const isColumn = found.columns.some((column) => column.name === name || column.name.startsWith(`${name}.`));
        assert.ok(type === 'text' ? isField : isColumn || type === undefined, name);
        assert.deepEqual(found.properties[name], properties[name]);
      }
      const isUsual = found.fields.every((name) => name === 'title' || name === 'text');
      if (isUsual && !Object.hasOwn(properties, 'title')) assert.ok(found.fields.includes('title'));
      if (isUsual) assert.ok(found.fields.includes('text'));
    }),
    { numRuns: 2_000 },
  );
  assert.ok(read > 200, `${read} mappings`);
});

test('settings are read or refused', () => {
  const key = fc.constantFrom(
    'index',
    'number_of_shards',
    'number_of_replicas',
    'refresh_interval',
    'index.refresh_interval',
    'x',
  );
  const value = fc.oneof(
    fc.constantFrom('1', 2, '-1', '5s', null),
    fc.jsonValue(),
    fc.dictionary(key, fc.constantFrom('1', '10m')),
  );
  fc.assert(
    fc.property(fc.dictionary(key, value), (settings) => {
      try {
        const { shards, replicas, refreshMs } = readSettings(membersOf(settings), DEFAULT_SETTINGS, true);
        for (const number of [shards, replicas, refreshMs]) assert.ok(Number.isSafeInteger(number) && number >= -1);
      } catch (error) {
        assert.ok(error instanceof ElasticsearchError, String(error));
        assert.equal(error.status, 400);
      }
    }),
    { numRuns: 1_000 },
  );
});
