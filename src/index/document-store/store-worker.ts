import { bug } from '../../base/errors.ts';
import { answerCalls } from '../../base/system/thread-calls.ts';
import { writeFailure } from '../../base/system/write-failure.ts';
import { DocumentStore } from './document-store.ts';
import { parseBulk } from './parse-bulk.ts';
import type { StoreCall, WriteAnswer, WriteRequest } from './store-protocol.ts';
import { missingIndexes, type OpenStore, writeDocuments } from './write-documents.ts';

const stores = new Map<string, OpenStore>();

function answer(call: StoreCall): unknown {
  switch (call.name) {
    case 'make': {
      new DocumentStore(call.asked.path).close();
      return null;
    }
    case 'open': {
      const { definition, path } = call.asked;
      const store = new DocumentStore(path);
      stores.set(definition.name, { definition, store });
      return store.lastSeqNo;
    }
    case 'close': {
      stores.get(call.asked.name)?.store.close();
      stores.delete(call.asked.name);
      return null;
    }
    case 'write':
      return write(call.asked);
    case 'read': {
      const open = stores.get(call.asked.name);
      if (open === undefined) throw bug(`documents of ${call.asked.name} were asked for, which is not open`);
      return call.asked.ids.map((id) => open.store.get(id) ?? null);
    }
  }
}

function write({ body, index, refusals }: WriteRequest): WriteAnswer {
  const operations = typeof body === 'string' ? parseBulk(body, index) : body;
  if ('reason' in operations) return { type: 'refused', failure: operations };
  const missing = missingIndexes(operations, stores, refusals);
  if (missing.length > 0) return { type: 'missing', indexes: missing };
  const items = writeDocuments(operations, stores, refusals);
  const named = new Set(items.map((item) => item.index));
  const lastSeqNos = new Map(
    [...named].flatMap((name): [string, number][] => {
      const open = stores.get(name);
      return open === undefined ? [] : [[name, open.store.lastSeqNo]];
    }),
  );
  return { type: 'written', items, lastSeqNos };
}

answerCalls(
  async () => (call: StoreCall) => {
    try {
      return answer(call);
    } catch (error) {
      const path = call.name === 'open' || call.name === 'make' ? call.asked.path : 'the folder of --writable';
      throw writeFailure(error, path);
    }
  },
  () => {
    for (const { store } of stores.values()) store.close();
  },
);
