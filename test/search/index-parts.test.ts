import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../src/base/errors.ts';
import { QueuedIndex } from '../../src/search/dense/queued-index.ts';
import { IndexRetriever } from '../../src/search/index-retriever.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { FakeEncoder, FakeIndex, FakeStore } from './fakes.ts';

test('a retriever reports the failure of its encoder and of its passages', () => {
  const { info } = new FakeRetriever();
  for (const broken of ['encoder', 'passages']) {
    const failure = new TrawlError('INTERNAL', `The threads of the ${broken} have died.`);
    const parts = { encoder: new FakeEncoder([]), passages: new FakeStore([]) };
    Object.assign(broken === 'encoder' ? parts.encoder : parts.passages, { failure });
    assert.equal(
      new IndexRetriever(info, {
        dense: { encoder: parts.encoder, index: new FakeIndex([]) },
        passages: parts.passages,
      }).failure,
      failure,
    );
  }
});

test("a queue in front of an engine reports the engine's bytes", () => {
  const engine = Object.assign(new FakeIndex([]), { residentBytes: 1, touchedBytes: 2, mappedBytes: 3 });
  const { residentBytes, touchedBytes, mappedBytes } = new QueuedIndex(engine);
  assert.deepEqual([residentBytes, touchedBytes, mappedBytes], [1, 2, 3]);
});
