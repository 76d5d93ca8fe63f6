import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import Value from 'typebox/value';
import { buildApp } from '../../src/server/app.ts';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { runs } from '../helpers/runs.ts';
import { getFrom, post, postTo } from './build.ts';

const SEED = 20_260_301;

/** Bodies similar to real ones, so that every branch of parsing is reached. */
const request = fc.record(
  {
    queries: fc.oneof(
      fc.array(fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()), { maxLength: 4 }),
      fc.jsonValue(),
    ),
    query: fc.oneof(fc.string(), fc.jsonValue()),
    topk: fc.oneof(fc.integer({ min: -5, max: 5_000 }), fc.double(), fc.string({ maxLength: 4 }), fc.jsonValue()),
    return_scores: fc.oneof(fc.boolean(), fc.constantFrom('yes', 'off', 1, 0, 2), fc.jsonValue()),
    questions: fc.oneof(fc.array(fc.option(fc.string()), { maxLength: 4 }), fc.jsonValue()),
    ['__proto__']: fc.jsonValue(),
    constructor: fc.jsonValue(),
  },
  { requiredKeys: [] },
);

test('no body makes the server fail: every response is a 200, or a 4xx with a code', async () => {
  const app = buildApp(new FakeRetriever());
  const body = fc.oneof(
    request.map((value) => JSON.stringify(value)),
    fc.json(),
    fc.string({ unit: 'binary' }),
    fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
  );
  await fc.assert(
    fc.asyncProperty(body, async (payload) => {
      const { status, json } = await post(app, payload);
      if (status === 200) {
        assert.ok(Array.isArray((json as { result: unknown }).result));
      } else {
        assert.ok(status >= 400 && status < 500, `status ${status}`);
        const { detail, error } = json as { detail: unknown; error: { code: string; message: string } };
        assert.ok(detail !== undefined && error.code.length > 0 && error.message.length > 0);
      }
    }),
    { numRuns: runs(400, 2_000), seed: SEED },
  );
  await app.close();
});

test('the retriever is called with the queries and k of the request', async () => {
  const retriever = new FakeRetriever();
  const app = buildApp(retriever);
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.string({ unit: 'binary' }), { maxLength: 6 }),
      fc.integer({ min: 1, max: 2_048 }),
      fc.boolean(),
      async (queries, topk, withScores) => {
        const { status, json } = await post(app, { queries, topk, return_scores: withScores });
        assert.equal(status, 200);
        const call = retriever.calls.at(-1);
        assert.deepEqual([call?.queries, call?.k], [queries, topk]);
        assert.equal((json as { result: unknown[] }).result.length, queries.length);
      },
    ),
    { numRuns: runs(100, 300), seed: SEED },
  );
  await app.close();
});

/** Values for a field: nearly right, of another type, huge, or arbitrary. */
const anyValue = fc.oneof(
  fc.constantFrom(null, true, 0, -1, 2.5, 1e308, 2 ** 53, '', ' ', '2', '2.0', '\u0000', '\ud800', [], {}, [null]),
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.string({ maxLength: 8 }), { maxLength: 4 }),
  fc.integer({ min: -3, max: 4_000 }),
  fc.jsonValue({ maxDepth: 2 }),
);

for (const { name, method, path, example, onlyIfNamed, request: schema, replyType } of DIALECTS) {
  test(`${name}: for any values of its fields the response is a reply of its path or a 4xx with a code`, async () => {
    const app = buildApp(new FakeRetriever(), { dialects: onlyIfNamed ? [name] : [], maxQueries: 50, maxK: 100 });
    const replies = DIALECTS.filter((each) => each.path === path && each.method === method).map(({ reply }) => reply);
    const { properties, anyOf } = schema as { properties?: object; anyOf?: readonly { properties?: object }[] };
    const names = [...Object.keys(properties ?? anyOf?.[0]?.properties ?? {}), 'unknown', 'constructor'];
    const right = name === 'openai-embeddings' ? { ...example, model: 'fake-encoder' } : example;
    const change = fc.dictionary(fc.constantFrom(...names), fc.option(anyValue, { nil: undefined }), { maxKeys: 3 });
    await fc.assert(
      fc.asyncProperty(change, async (changes) => {
        const fields = { ...right, ...changes };
        const { status, json, text } = await (method === 'GET'
          ? getFrom(app, path, fields)
          : postTo(app, path.replace(':index', 'x'), fields));
        if (status === 200) {
          assert.ok(
            replies.some((reply) => Value.Check(reply, replyType === undefined ? json : text)),
            text,
          );
        } else {
          assert.ok((status >= 400 && status < 500) || status === 501, `status ${status}`);
          const { error } = json as { error: string | { code: string; message: string } };
          // TEI's errors are texts.
          if (typeof error === 'string') assert.ok(name.startsWith('tei-') && error.length > 0);
          else assert.ok(error.code.length > 0 && error.message.length > 0);
        }
      }),
      { numRuns: runs(40, 150), seed: SEED },
    );
    await app.close();
  });
}
