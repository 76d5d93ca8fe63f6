import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gpuLines } from '../../cli/commands/doctor.ts';
import { banner } from '../../cli/serve/start-messages.ts';
import { IndexRegistry } from '../../src/server/indexes/index-registry.ts';
import { cudaDouble, withoutGpuSearches } from '../helpers/cuda-double.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { fileFolder, jsonOf, postJson, runTrawl, sampleIndex, serveIndex } from './run-trawl.ts';

const skip = withoutGpuSearches;
const folder = await fileFolder();

interface Gpu {
  readonly name: string;
  readonly bytes: number;
  readonly failed: boolean;
}

test('a server says that it searches on a GPU, and after a failure that the CPU gives the answers', {
  skip,
}, async (t) => {
  const index = await sampleIndex(folder);
  // A search has at least three launches: the GPU fails in one of those below.
  const env = { TRAWL_CUDA_LIBRARY: cudaDouble(), TRAWL_CUDA_DOUBLE_LAUNCHES: '20' };
  const { url, child, ended } = await serveIndex(t, index, ['--search-device', 'cuda'], { env });
  const cpu = await serveIndex(t, index);
  const gpuOf = async (at: string): Promise<Gpu | undefined> =>
    ((await (await fetch(`${at}/v1/indexes`)).json()) as { indexes: { gpu?: Gpu }[] }).indexes[0]!.gpu;
  const found = await gpuOf(url);
  assert.deepEqual([found?.name, found?.failed], ['a test double', false]);
  assert.ok(found!.bytes > 270 * 256);
  assert.equal(await gpuOf(cpu.url), undefined);
  const metrics = async (): Promise<string> => (await fetch(`${url}/metrics`)).text();
  assert.match(
    await metrics(),
    new RegExp(`^trawl_index_gpu_bytes{index="sample",gpu="a test double"} ${found!.bytes}$`, 'm'),
  );
  assert.match(await metrics(), /^trawl_index_gpu_failed{.*} 0$/m);
  for (let i = 0; i < 10; i++) {
    const body = { queries: [`what is river ${i}`], topk: 5, return_scores: true };
    const [expected, actual] = [await postJson(cpu.url, body), await postJson(url, body)];
    assert.deepEqual(actual, expected);
    assert.equal(actual.status, 200);
  }
  assert.equal((await gpuOf(url))?.failed, true);
  assert.match(await metrics(), /^trawl_index_gpu_failed{.*} 1$/m);
  assert.equal((await fetch(`${url}/readyz`)).status, 200);
  child.kill('SIGTERM');
  const { stderr } = await ended;
  assert.equal(
    stderr.match(/The GPU failed \(.*CUDA_ERROR_LAUNCH_FAILED.*\)\. Searches run on the CPU from now on/g)?.length,
    1,
  );
});

test('the start line of a server names the GPU', async () => {
  const retriever = new FakeRetriever({ index: 'wiki' });
  const gpu = { name: 'NVIDIA H100 80GB HBM3', cuda: '13.0', bytes: 7.9e9, failed: false };
  Object.assign(retriever.info, { gpu });
  const holder = IndexRegistry.opening([{ name: 'wiki', folder: '/somewhere/wiki' }], async () => retriever);
  await holder.open();
  assert.match(
    banner('http://127.0.0.1:8000', holder, false).join('\n'),
    /wiki \(\d+ passages, fake-encoder, searched on NVIDIA H100 80GB HBM3, 7\.90 GB, reranker fake-reranker\)/,
  );
  gpu.failed = true;
  assert.doesNotMatch(banner('http://127.0.0.1:8000', holder, false).join('\n'), /searched on/);
});

test('doctor lists the GPUs for searches, or says why there are none', { skip }, async () => {
  const env = { TRAWL_CUDA_LIBRARY: cudaDouble() };
  const { stdout } = await runTrawl(['doctor'], { env });
  assert.match(stdout, /^ {2}cuda:0 +a test double, 1\.07 GB of 1\.07 GB free, driver for CUDA 13\.0$/m);
  const missing = await runTrawl(['doctor', '--json'], { env: { TRAWL_CUDA_LIBRARY: 'libtrawl-missing.so.1' } });
  assert.match(jsonOf<{ search: { gpus: string } }>(missing).search.gpus, /driver cannot be loaded/);
  const old = { name: 'an old one', freeBytes: 1, totalBytes: 1, problem: 'it has compute capability 7.5' };
  assert.deepEqual(
    [...gpuLines({ cuda: '12.0', gpus: [old] }), ...gpuLines({ cuda: '12.0', gpus: [] }), ...gpuLines('no driver')].map(
      (line) => line.trim().replace(/ +/g, ' '),
    ),
    ['cuda:0 no: an old one: it has compute capability 7.5', 'GPU no: the driver lists no GPU', 'GPU no: no driver'],
  );
});
