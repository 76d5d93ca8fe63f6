import { test } from 'node:test';
import fc from 'fast-check';
import { parseBulk, type RequestedOperation } from '../../../src/index/document-store/parse-bulk.ts';
import assert from '../../helpers/assert.ts';

const name = fc.constantFrom('a', 'b', 'wiki_en');
const requested: fc.Arbitrary<RequestedOperation> = fc
  .record({
    action: fc.constantFrom('index' as const, 'create' as const, 'delete' as const, 'update' as const),
    index: name,
    id: fc.option(fc.string(), { nil: undefined }),
    source: fc.json({ noUnicodeString: false }),
  })
  .filter(({ action, id }) => id !== undefined || action === 'index' || action === 'create')
  .map(({ source, ...rest }) => (rest.action === 'delete' ? rest : { ...rest, source }));

test('a body has the operations that were written to it', () => {
  fc.assert(
    fc.property(fc.array(requested, { minLength: 1 }), name, fc.boolean(), (operations, ofPath, blank) => {
      const lines = operations.flatMap(({ action, index, id, source }) => [
        JSON.stringify({ [action]: { ...(index === ofPath ? {} : { _index: index }), _id: id } }),
        ...(source === undefined ? [] : [source]),
        ...(blank ? [''] : []),
      ]);
      const parsed = parseBulk(lines.map((line) => `${line}\n`).join(''), ofPath);
      assert.deepEqual(
        parsed,
        operations.map(({ action, index, id, source }) => ({
          action,
          id,
          failure: undefined,
          index,
          source,
        })),
      );
    }),
  );
});

test('any text is read or refused', () => {
  const line = fc.oneof(
    fc.json(),
    fc.constantFrom('{"index":{}}', '{"delete":{"_id":"1"}}', '{}', '{"index":1}', ''),
    fc.string(),
  );
  fc.assert(
    fc.property(fc.array(line), (lines) => {
      const parsed = parseBulk(lines.join('\n'), 'ix');
      if (!('reason' in parsed)) assert.ok(parsed.length > 0);
      else assert.equal(parsed.status, 400);
    }),
  );
});

for (const [why, body, reason] of [
  ['no line', '', /request body is required/],
  ['blank lines', '\n\n', /request body is required/],
  ['no line end at the end', '{"index":{}}\n{}', /must be terminated by a newline/],
  ['a line that is not JSON', '{"index":{}}\n{}\n{index}\n{}\n', /action\/metadata line \[3\], .*not JSON/],
  ['an action that is no object', '"index"\n{}\n', /line \[1\], expected START_OBJECT but found \[VALUE_STRING\]/],
  ['an unknown action', '{"foo":{}}\n{}\n', /\[create\], \[delete\], \[index\] or \[update\] but found \[foo\]/],
  ['an empty action', '{}\n{}\n', /but found \[END_OBJECT\]/],
  ['two actions in a line', '{"index":{},"create":{}}\n{}\n', /expected END_OBJECT but found \[FIELD_NAME\]/],
  ['metadata that are no object', '{"index":[]}\n{}\n', /expected START_OBJECT but found \[START_ARRAY\]/],
  ['an unknown parameter', '{"index":{"_foo":1}}\n{}\n', /contains an unknown parameter \[_foo\]/],
  [
    'an id that is an object',
    '{"index":{"_id":{}}}\n{}\n',
    /simple value for field \[_id\] but found \[START_OBJECT\]/,
  ],
  ['no document at the end', '{"index":{}}\n', /no document after its action in line 1/],
] as const) {
  test(`a body with ${why} is refused as a whole`, () => {
    const parsed = parseBulk(body, 'ix');
    assert.ok('reason' in parsed, JSON.stringify(parsed));
    assert.match(parsed.reason, reason);
  });
}

test('operations need an index, in their line or in the path', () => {
  const parsed = parseBulk('{"index":{}}\n{}\n{"delete":{"_id":"1"}}\n', undefined);
  assert.deepEqual(parsed, {
    status: 400,
    type: 'action_request_validation_exception',
    reason: 'Validation Failed: 1: index is missing;2: index is missing;',
  });
});

test('a deletion and an update need an id, and an id has at most 512 bytes', () => {
  const long = 'ü'.repeat(257);
  const parsed = parseBulk(`{"delete":{}}\n{"update":{}}\n{}\n{"index":{"_id":"${long}"}}\n{}\n`, 'ix');
  assert.ok('reason' in parsed);
  assert.equal(
    parsed.reason,
    `Validation Failed: 1: id is missing;2: id is missing;3: id [${long.slice(0, 100)}…] is too long, must be no longer than 512 bytes but was: 514;`,
  );
});

test('ids beyond 2^53 keep their digits', () => {
  const parsed = parseBulk('{"delete":{"_id":12345678901234567890}}\n', 'ix');
  assert.ok(!('reason' in parsed));
  assert.equal(parsed[0]!.id, '12345678901234567890');
});

test('parameters that would change what is done are refused for their operation alone', () => {
  const parsed = parseBulk(
    '{"index":{"routing":"a"}}\n{}\n{"index":{"routing":null,"require_alias":false}}\n{}\n',
    'ix',
  );
  assert.ok(!('reason' in parsed));
  assert.deepEqual(
    parsed.map(({ failure }) => failure?.reason),
    ['[routing] is not supported; leave it out', undefined],
  );
});
