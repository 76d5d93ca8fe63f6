import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeVector } from '../../../src/base/base64-vector.ts';
import type { EndpointRecord } from '../../../src/encoder/identity/endpoint-record.ts';
import { embedAlike } from '../../../src/search/group/group-info.ts';
import type { RetrieverInfo } from '../../../src/search/retriever-info.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';

test('indexes of endpoints have one encoder if their probes are alike, whatever the last bits', () => {
  const infoOf = (index: string, values: readonly number[]): RetrieverInfo => {
    const { info } = new FakeRetriever({ index, documents: ['{}'] });
    const vector = encodeVector(Float32Array.from(values));
    const endpoint: EndpointRecord = {
      api: 'openai',
      software: null,
      revision: null,
      requests: { query: {}, passage: {} },
      separator: null,
      overlong: 'unknown',
      probes: [{ name: 'query', inputType: 'query', text: 'a', vector, tokens: null }],
    };
    return { ...info, model: { ...info.model!, precision: null, sha256: index.repeat(64), endpoint } };
  };
  const model = infoOf('a', [1, 0]);
  assert.ok(embedAlike(model, infoOf('b', [1, 0.001])));
  assert.ok(!embedAlike(model, infoOf('b', [0, 1])));
  assert.ok(!embedAlike(model, new FakeRetriever({ index: 'c', documents: ['{}'] }).info));
  assert.ok(!embedAlike({ ...model, model: null }, { ...model, model: null }), 'without vectors');
});
