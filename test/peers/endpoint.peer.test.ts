import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { decodeVector } from '../../src/base/base64-vector.ts';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { startTorchPeer } from '../helpers/peer-servers.ts';
import { miniLmFolder, withoutMiniLm, withoutTorch } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const miniLm = importedMiniLm();
const QUERY = 'Which river flows through Vienna?';

interface Hit {
  readonly row: number;
  readonly score: number;
}

/** An OpenAI-compatible Python server of all-MiniLM-L6-v2, and the vectors that sentence-transformers made. */
async function pythonServer(t: TestContext, folder: string): Promise<string> {
  const request = { model: miniLmFolder(), corpus: SAMPLE_PASSAGES, folder };
  const { url } = (await startTorchPeer(t, 'embedding_server.py', request)) as { url: string };
  return url;
}

async function ok(args: readonly string[]): Promise<{ stdout: string; stderr: string }> {
  const ended = await runTrawl(args);
  assert.equal(ended.code, 0, ended.stderr);
  return ended;
}

async function hitsOf(index: string, args: readonly string[]): Promise<readonly Hit[]> {
  const run = await runTrawl(['search', index, QUERY, '--k', '10', '--json', ...args]);
  return jsonOf<{ hits: readonly Hit[] }>(run).hits;
}

test('a Python server of another project is the encoder', {
  skip: withoutTorch() || withoutMiniLm(),
}, async (t) => {
  const folder = await tempFolder(t);
  const url = await pythonServer(t, folder);
  await t.test('an index is built and searched through it, and its model runs here, too', () =>
    builtIndex(folder, url),
  );
  await t.test('vectors of sentence-transformers, FlashRAG and tevatron are imported after a check with it', () =>
    importedVectors(folder, url),
  );
});

async function builtIndex(folder: string, url: string): Promise<void> {
  const [there, here] = [join(folder, 'there'), join(folder, 'here')];
  await ok(['index', SAMPLE_PASSAGES, '--model', url, '--out', there]);
  const { model } = readIndexManifest(there);
  const { name, dimension, normalize, maxTokens, endpoint } = model!;
  assert.deepEqual(
    { name, dimension, normalize, maxTokens, overlong: endpoint!.overlong },
    {
      name: 'all-MiniLM-L6-v2',
      dimension: 384,
      normalize: true,
      maxTokens: { query: 256, passage: 256 },
      overlong: 'truncated',
    },
  );
  await ok(['verify', there, '--model', url, '--require-model']);
  const local = await miniLm();
  await ok(['index', SAMPLE_PASSAGES, '--model', local, '--out', here]);
  // Each encoder embeds the queries of the other's index.
  const lists = await Promise.all([
    hitsOf(there, ['--model', url]),
    hitsOf(there, ['--model', local]),
    hitsOf(here, ['--model', url]),
    hitsOf(here, []),
  ]);
  for (const list of lists) {
    assert.deepEqual(
      list.map(({ row }) => row),
      lists[0]!.map(({ row }) => row),
    );
    for (const [i, { score }] of list.entries()) assert.ok(Math.abs(score - lists[0]![i]!.score) < 1e-5);
  }
  const long = endpoint!.probes.find((probe) => probe.name === 'long')!;
  assert.equal(long.tokens, 256);
  assert.equal(decodeVector(long.vector!).length, 384);
  assert.ok(!readFileSync(join(there, 'manifest.json'), 'utf8').includes(url.slice('http://'.length)));
}

async function importedVectors(folder: string, url: string): Promise<void> {
  const sources: Readonly<Record<string, readonly string[]>> = {
    npy: [join(folder, 'vectors.npy')],
    memmap: [join(folder, 'emb_e5.memmap')],
    pickles: [join(folder, 'corpus.*.pkl')],
  };
  const lists: (readonly Hit[])[] = [];
  for (const [name, files] of Object.entries(sources)) {
    const out = join(folder, `index-${name}`);
    const args = [
      'import',
      ...files,
      '--corpus',
      SAMPLE_PASSAGES,
      '--model',
      url,
      '--check-model',
      '100',
      '--out',
      out,
    ];
    const { stderr } = await ok(args);
    assert.match(
      stderr,
      /100 passages embedded again with all-MiniLM-L6-v2: the median similarity to their vectors is 1\.0/,
    );
    lists.push(await hitsOf(out, ['--model', url]));
  }
  assert.deepEqual(lists[1], lists[0]);
  assert.deepEqual(lists[2], lists[0]);
  const out = join(folder, 'wrong');
  const wrong = ['import', sources['npy']![0]!, '--corpus', SAMPLE_PASSAGES, '--model', url, '--out', out];
  const refused = await runTrawl([...wrong, '--passage-prefix', 'passage: ']);
  assert.match(refused.stderr, /made with no prefix.*--passage-prefix ''.*VECTORS_OF_ANOTHER_MODEL/s);
}
