import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { readIndexManifest } from '../../src/index/manifest/read-manifest.ts';
import { jsonOf, runTrawl, SAMPLE_PASSAGES } from '../cli/run-trawl.ts';
import { importedMiniLm } from '../helpers/minilm.ts';
import { startInfinity } from '../helpers/peer-servers.ts';
import { miniLmFolder, withoutInfinity, withoutMiniLm } from '../helpers/peers.ts';
import { tempFolder } from '../helpers/temp-folder.ts';

const miniLm = importedMiniLm();
const NAME = 'all-MiniLM-L6-v2';
/** A slow machine embeds 256 passages in more than the default time limit. */
const SLOW = ['--endpoint-batch', '16', '--endpoint-requests', '2', '--endpoint-timeout-ms', '300000'];

interface Hit {
  readonly row: number;
  readonly score: number;
}

test('Infinity is the encoder: an index is built, verified and searched through it, with the hits of the model here', {
  skip: withoutInfinity() || withoutMiniLm(),
}, async (t) => {
  const folder = await tempFolder(t);
  const url = await startInfinity(t, miniLmFolder()!, NAME);
  const local = await miniLm();
  const [there, here] = [join(folder, 'there'), join(folder, 'here')];
  for (const args of [
    ['index', SAMPLE_PASSAGES, '--model', url, '--out', there, ...SLOW],
    ['index', SAMPLE_PASSAGES, '--model', local, '--out', here],
    ['verify', there, '--model', url, '--require-model', ...SLOW],
  ]) {
    const { code, stderr } = await runTrawl(args);
    assert.equal(code, 0, stderr);
  }
  const { name, dimension, normalize, endpoint } = readIndexManifest(there).model!;
  assert.deepEqual(
    { name, dimension, normalize, api: endpoint!.api, software: endpoint!.software },
    { name: NAME, dimension: 384, normalize: true, api: 'openai', software: 'infinity' },
  );
  const hitsOf = async (index: string, model: string): Promise<readonly Hit[]> => {
    const search = ['search', index, 'Which river flows through Vienna?', '--k', '10', '--json', '--model', model];
    return jsonOf<{ hits: readonly Hit[] }>(await runTrawl(search)).hits;
  };
  const expected = await hitsOf(here, local);
  for (const [index, model] of [
    [there, url],
    [there, local],
    [here, url],
  ] as const) {
    const hits = await hitsOf(index, model);
    assert.deepEqual(
      hits.map(({ row }) => row),
      expected.map(({ row }) => row),
    );
    for (const [i, { score }] of hits.entries()) assert.ok(Math.abs(score - expected[i]!.score) < 1e-5);
  }
});
