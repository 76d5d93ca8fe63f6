import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { QueuedIndex } from '../../../src/search/dense/queued-index.ts';
import { BoundedRetriever } from '../../../src/search/layers/bounded-retriever.ts';
import { RerankingRetriever } from '../../../src/search/layers/reranking-retriever.ts';
import { SharingRetriever } from '../../../src/search/layers/sharing-retriever.ts';
import type { Retriever } from '../../../src/search/retriever.ts';
import { SearchRetriever } from '../../../src/search/search-retriever.ts';
import { shedding } from '../../../src/server/limits/shedding.ts';
import { FakeReranker } from '../../helpers/fake-reranker.ts';
import { FakeRetriever } from '../../helpers/fake-retriever.ts';
import { FakeEncoder, FakeIndex, FakeStore } from '../fakes.ts';

const DECORATORS: Readonly<Record<string, (inner: Retriever) => Retriever>> = {
  bounded: (inner) => new BoundedRetriever(inner, 1),
  reranking: (inner) => new RerankingRetriever(inner, new FakeReranker(), 1),
  sharing: (inner) => new SharingRetriever(inner, { singleFlight: true }),
  shedding: (inner) => shedding(inner, { shedAfterMs: 1 }),
};

for (const [name, decorate] of Object.entries(DECORATORS)) {
  test(`a ${name} retriever reports the failure of the retriever it wraps`, () => {
    const inner = new FakeRetriever();
    const outer = decorate(inner);
    assert.equal(outer.failure, undefined);
    inner.failure = new TrawlError('INTERNAL', 'The encoder threads have died.');
    assert.equal(outer.failure, inner.failure);
    assert.equal(outer.info, inner.info);
  });
}

test('a retriever reports the failure of its encoder and of its passages', () => {
  const { info } = new FakeRetriever();
  for (const broken of ['encoder', 'passages']) {
    const failure = new TrawlError('INTERNAL', `The threads of the ${broken} have died.`);
    const parts = { encoder: new FakeEncoder([]), passages: new FakeStore([]) };
    Object.assign(broken === 'encoder' ? parts.encoder : parts.passages, { failure });
    assert.equal(
      new SearchRetriever(info, {
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
