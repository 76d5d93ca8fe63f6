import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { buildApp } from '../../src/http/app.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { post } from './build.ts';

const SEED = 20_260_301;

/** Bodies near the real ones, so that every branch of reading a request is met. */
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

test('no body makes the server fail: every answer is 200 or a 4xx with a code', async () => {
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
    { numRuns: 2_000, seed: SEED },
  );
  await app.close();
});

test('what a well-formed request asks is what the retriever is asked', async () => {
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
    { numRuns: 300, seed: SEED },
  );
  await app.close();
});
