import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { clientError } from '../../../src/server/errors/error-status.ts';

test("clients learn no address and no options of a model's server; other messages stay", () => {
  for (const code of [
    'ENDPOINT_FAILED',
    'ENDPOINT_REFUSED',
    'MODEL_MISMATCH',
    'RERANK_FAILED',
    'RERANK_REFUSED',
  ] as const) {
    const error = new TrawlError(code, 'http://10.0.0.7:8000 failed. Lower --endpoint-batch.', {
      details: { query: 3 },
    });
    const shown = clientError(error);
    assert.equal(shown.code, code);
    assert.doesNotMatch(shown.message, /10\.0\.0\.7|--/);
    assert.match(shown.message, /^Query 3: The server's (?:encoder|reranker)/);
    assert.deepEqual(shown.details, error.details);
  }
  const other = new TrawlError('K_TOO_LARGE', 'k is 9; at most 5');
  assert.equal(clientError(other), other);
});
