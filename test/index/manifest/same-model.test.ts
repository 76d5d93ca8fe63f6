import assert from 'node:assert/strict';
import { test } from 'node:test';
import { encodeVector } from '../../../src/base/base64-vector.ts';
import type { EndpointRecord } from '../../../src/encoder/identity/endpoint-record.ts';
import type { ModelIdentity } from '../../../src/encoder/identity/model-identity.ts';
import { compareProbes, isSameModel } from '../../../src/encoder/identity/same-model.ts';
import { modelIdentity } from '../../helpers/model-identity.ts';

function endpointModel(values: readonly number[] | null, fields: Partial<ModelIdentity> = {}): ModelIdentity {
  const endpoint: EndpointRecord = {
    api: 'openai',
    software: null,
    revision: null,
    requests: { query: {}, passage: {} },
    separator: null,
    overlong: 'truncated',
    probes: [
      {
        name: 'query',
        inputType: 'query',
        text: 'a',
        vector: values && encodeVector(Float32Array.from(values)),
        tokens: 3,
      },
    ],
  };
  return { ...modelIdentity({ name: 'm', dimension: 4 }), precision: null, endpoint, ...fields };
}

test('endpoints are compared by the vectors of their probes, not by name, checksum and last bits', () => {
  const model = endpointModel([1, 0, 0, 0]);
  assert.ok(isSameModel(model, endpointModel([1, 0, 0, 0.01], { name: 'other', sha256: '1'.repeat(64) })));
  for (const other of [
    endpointModel([1, 0, 0, 0.1]),
    endpointModel([2, 0, 0, 0]),
    endpointModel([1, 0, 0]),
    endpointModel(null),
    endpointModel([1, 0, 0, 0], { prefixes: { query: 'query: ', passage: '' } }),
    endpointModel([1, 0, 0, 0], { normalize: true }),
    modelIdentity({ name: 'm', dimension: 4 }),
    null,
  ]) {
    assert.equal(isSameModel(model, other), false);
  }
  assert.ok(isSameModel(endpointModel(null), endpointModel(null)), 'both refuse the text');
  assert.ok(isSameModel(null, null));
});

test('model folders are the same only with every field equal', () => {
  const model = modelIdentity({ name: 'm', dimension: 4 });
  assert.ok(isSameModel(model, { ...model }));
  assert.equal(isSameModel(model, { ...model, name: 'n' }), false);
});

test('probes are compared by name, so that later programs may have others', () => {
  const probes = endpointModel([1, 0, 0, 0]).endpoint!.probes;
  const further = { ...probes[0]!, name: 'further' };
  assert.deepEqual(compareProbes(probes, [further, ...probes]), [{ name: 'query', cosine: 1 }]);
  assert.deepEqual(compareProbes(probes, [further]), []);
  const refused = { ...probes[0]!, vector: null };
  const both = [{ name: 'further', cosine: 1 }];
  assert.deepEqual(compareProbes([refused, further], [...probes, further]), both, 'a refused text shows nothing');
  assert.deepEqual(compareProbes([...probes, further], [refused, further]), both);
});
