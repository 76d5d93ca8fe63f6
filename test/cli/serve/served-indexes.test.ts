import assert from 'node:assert/strict';
import { test } from 'node:test';
import { indexOpener, parseGroups } from '../../../cli/serve/served-indexes.ts';
import { EncoderPools } from '../../../src/encoder/pool/encoder-pools.ts';
import type { OpenRetrieverOptions } from '../../../src/search/opening/open-retriever.ts';
import type { OpenRetriever, Retriever } from '../../../src/search/retriever.ts';
import { IndexRegistry } from '../../../src/server/indexes/index-registry.ts';
import { IndexSlot } from '../../../src/server/indexes/index-slot.ts';
import { toyModel } from '../../encoder/model-fixtures.ts';
import { buildSampleIndex } from '../../helpers/sample-index.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { trawlError } from '../../helpers/trawl-error.ts';

function opener(encoderPools: EncoderPools, options: OpenRetrieverOptions = {}) {
  const settings = { encoderPools, encoderThreads: 1, searchThreads: 1, ...options };
  return indexOpener(settings, { warm: false, signal: new AbortController().signal });
}

async function firstId(retriever: Retriever): Promise<string> {
  const { outcomes } = await retriever.retrieve({ queries: ['designer of the Brooklyn Bridge'], k: 1 });
  const [outcome] = outcomes;
  assert.ok(outcome?.ok);
  return (JSON.parse(outcome.hits[0]!.document) as { id: string }).id;
}

test('twelve indexes of one model share one encoder pool, without a warning about listeners', async (t) => {
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  t.after(() => process.removeListener('warning', onWarning));
  const folder = await buildSampleIndex(await tempFolder(t));
  const pools = new EncoderPools();
  const open = opener(pools);
  const holder = new IndexRegistry(Array.from({ length: 12 }, (_, i) => new IndexSlot(`index-${i}`, { folder }, open)));
  t.after(() => holder.close());
  await holder.open();
  assert.equal(pools.size, 1);
  const ids = await Promise.all(holder.slots.map(({ retriever }) => firstId(retriever!)));
  assert.equal(new Set(ids).size, 1);
  const texts = holder.slots.map(({ statistics }) => statistics!.encoder.texts);
  assert.deepEqual(
    texts,
    new Array(12).fill(2),
    'each index counts its own texts: the query at its start and this one',
  );
  await holder.close();
  assert.equal(pools.size, 0);
  // Warnings are emitted on a later tick.
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(warnings, []);
});

test('a reload shares the encoder pool of the index it replaces, and a failed opening leaves no pool behind', async (t) => {
  const folder = await buildSampleIndex(await tempFolder(t));
  const pools = new EncoderPools();
  const slot = new IndexSlot('sample', { folder }, opener(pools));
  t.after(() => slot.close());
  await slot.load();
  let stop = false;
  const client = async (): Promise<number> => {
    let answers = 0;
    for (; !stop; answers++) {
      const lease = slot.lease()!;
      await firstId(lease.retriever);
      lease.release();
    }
    return answers;
  };
  const clients = [client(), client(), client()];
  for (let i = 0; i < 3; i++) {
    await slot.load();
    assert.equal(pools.size, 1);
  }
  await assert.rejects(slot.load({ model: 'no-such-model' }), trawlError('MODEL_NOT_FOUND'));
  stop = true;
  assert.ok((await Promise.all(clients)).every((answers) => answers > 0));
  await slot.close();
  assert.equal(pools.size, 0);
  const other = opener(pools, { model: await toyModel(t) });
  await assert.rejects(
    other('other', { folder }, () => undefined),
    trawlError('MODEL_MISMATCH'),
  );
  assert.equal(pools.size, 0, 'the pool of the wrong encoder is closed');
});

test('indexes of one model share a pool and keep their own prefixes and token limits', async (t) => {
  const folder = await buildSampleIndex(await tempFolder(t));
  const overrides = { queryPrefix: 'designer of the ', maxQueryTokens: 16 };
  const prefixed = await buildSampleIndex(await tempFolder(t), { overrides });
  const pools = new EncoderPools();
  const open = opener(pools);
  const [plain, other] = await Promise.all(
    [folder, prefixed].map((each, i) => open(`index-${i}`, { folder: each }, () => undefined)),
  );
  t.after(() => Promise.all([plain!.close(), other!.close()]));
  assert.equal(pools.size, 1);
  const vector = async (retriever: OpenRetriever, text: string): Promise<Float32Array> =>
    (await retriever.embed({ inputs: [text], inputType: 'query' })).vectors;
  assert.deepEqual(await vector(other!, 'Brooklyn Bridge'), await vector(plain!, 'designer of the Brooklyn Bridge'));
  assert.notDeepEqual(await vector(other!, 'Brooklyn Bridge'), await vector(plain!, 'Brooklyn Bridge'));
  const { outcomes } = await other!.embed({ inputs: ['word '.repeat(50)], inputType: 'query' });
  assert.ok(outcomes[0]!.ok && outcomes[0]!.tokens === 16 && outcomes[0]!.truncated);
});

test('--group names several indexes; commas separate them, and in an environment variable also the groups', () => {
  const expected = new Map([
    ['all', ['wiki', 'news']],
    ['one', ['wiki']],
  ]);
  assert.deepEqual(parseGroups(['all=wiki,news', 'one=wiki']), expected);
  assert.deepEqual(parseGroups(['all=wiki', 'news', 'one=wiki']), expected);
  for (const wrong of [
    ['wiki,news'],
    ['=wiki'],
    ['all='],
    ['all=wiki,'],
    ['all=wiki,wiki'],
    ['all=a', 'all=b'],
    ['a/b=c'],
  ]) {
    assert.throws(() => parseGroups(wrong), trawlError('USAGE', /expected NAME=INDEX,INDEX/), wrong.join(' '));
  }
});

test('--warm says that it has no effect on a published index', async () => {
  const notes: string[] = [];
  const settings = { onWarning: (text: string) => void notes.push(text) };
  const open = indexOpener(settings, { warm: true, signal: new AbortController().signal });
  await assert.rejects(
    Promise.resolve(open('wiki', { folder: 'milvus://127.0.0.1:1/c' }, () => undefined)),
    trawlError('STORE_FAILED', /could not/),
  );
  assert.deepEqual(notes, ['--warm has no effect on wiki: Milvus holds its rows, not this machine.']);
});
