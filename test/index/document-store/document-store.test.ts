import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { DocumentStore, StoreSnapshot } from '../../../src/index/document-store/document-store.ts';
import type { Operation } from '../../../src/index/document-store/operations.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';

const operation: fc.Arbitrary<Operation> = fc
  .record({
    action: fc.constantFrom('index', 'create', 'delete'),
    index: fc.constant('ix'),
    id: fc.constantFrom('a', 'b', 'c', 'd'),
    source: fc.integer().map((number) => `{"n":${number}}`),
  })
  .map(({ source, ...rest }) => (rest.action === 'delete' ? rest : { ...rest, source }));

test('a store has the last version of every document, also after it was closed and opened', async (t) => {
  const folder = await tempFolder(t);
  let files = 0;
  await fc.assert(
    fc.property(fc.array(fc.array(operation, { minLength: 1 }), { maxLength: 8 }), (batches) => {
      const path = join(folder, `${files++}.sqlite`);
      const expected = new Map<string, { version: number; source: string | undefined; seqNo: number }>();
      let seqNo = -1;
      for (const operations of batches) {
        const store = new DocumentStore(path);
        const outcomes = store.apply(operations);
        for (const [i, { action, id, source }] of operations.entries()) {
          const before = expected.get(id);
          const exists = before?.source !== undefined;
          if (action === 'create' && exists) {
            assert.equal('failure' in outcomes[i]! && outcomes[i].failure.status, 409);
            continue;
          }
          const version = (before?.version ?? 0) + 1;
          expected.set(id, { version, source, seqNo: ++seqNo });
          const result = action === 'delete' ? (exists ? 'deleted' : 'not_found') : exists ? 'updated' : 'created';
          assert.deepEqual(outcomes[i], { result, version, seqNo });
        }
        assert.equal(store.lastSeqNo, seqNo);
        for (const [id, { source, ...facts }] of expected) {
          assert.deepEqual(store.get(id), source === undefined ? undefined : { ...facts, source });
        }
        assert.equal(store.get('none'), undefined);
        store.close();
      }
      if (batches.length === 0) return;
      const snapshot = new StoreSnapshot(path);
      const changes = [...expected].sort(([, a], [, b]) => a.seqNo - b.seqNo);
      for (const after of [-1, Math.floor(seqNo / 2)]) {
        assert.deepEqual(
          [...snapshot.changesAfter(after)],
          changes
            .filter(([, change]) => change.seqNo > after)
            .map(([id, { source }]) => ({ id, source: source ?? null })),
        );
      }
      assert.equal(snapshot.lastSeqNo, seqNo);
      snapshot.close();
    }),
    { numRuns: 30 },
  );
});

test('a snapshot does not see what is written after it was taken', async (t) => {
  const path = join(await tempFolder(t), 'documents.sqlite');
  const store = new DocumentStore(path);
  t.after(() => store.close());
  store.apply([{ action: 'index', index: 'ix', id: 'a', source: '{}' }]);
  const snapshot = new StoreSnapshot(path);
  t.after(() => snapshot.close());
  store.apply([{ action: 'index', index: 'ix', id: 'b', source: '{}' }]);
  assert.deepEqual(
    [...snapshot.changesAfter(-1)].map(({ id }) => id),
    ['a'],
  );
  assert.equal(snapshot.lastSeqNo, 0);
});
