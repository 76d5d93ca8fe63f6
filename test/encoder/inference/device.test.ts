import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { TrawlError } from '../../../src/base/errors.ts';
import { availableCores } from '../../../src/base/system/cores.ts';
import { cudaFacts } from '../../../src/encoder/inference/cuda-libraries.ts';
import { parseDevice } from '../../../src/encoder/inference/device.ts';
import { readModelFolder } from '../../../src/encoder/model/model-folder.ts';
import { openEncoder, poolOptions } from '../../../src/encoder/open-encoder.ts';
import { tempFolder } from '../../helpers/temp-folder.ts';
import { toyModel } from '../model-fixtures.ts';

test('devices are cpu, cuda, or a list of CUDA devices', () => {
  assert.equal(parseDevice('cpu'), null);
  assert.deepEqual(parseDevice('cuda'), [0]);
  assert.deepEqual(parseDevice('cuda:3'), [3]);
  assert.deepEqual(parseDevice('cuda:1,cuda:0'), [1, 0]);
  for (const wrong of ['', 'gpu', 'CUDA', 'cuda:', 'cuda:x', 'cuda:-1', 'cpu,cuda', 'cuda:0,cuda:0', 'cuda,cuda:0']) {
    assert.throws(() => parseDevice(wrong), /expected cpu, cuda/, wrong);
  }
});

test('if CUDA is unavailable, the reason names what is missing and the page that says how to install it', {
  skip:
    process.platform !== 'linux' || process.arch !== 'x64' ? 'onnxruntime-node supports CUDA on Linux x64 only' : false,
}, () => {
  const without = cudaFacts(() => false);
  assert.equal(without.installed, false);
  assert.match(without.reason, /libonnxruntime_providers_cuda\.so is missing; docs\/gpu\.md/);
  assert.match(cudaFacts((path) => !path.startsWith('/dev')).reason, /no NVIDIA driver/);
  assert.match(cudaFacts(() => true).reason, /a driver are installed; they also need an NVIDIA driver and/);
});

test('what a CUDA library is linked with is read from the library itself', async (t) => {
  const library = join(await tempFolder(t), 'library.so');
  writeFileSync(library, 'x\0libcudart.so.13\0libcublasLt.so.13\0libm.so.6\0libcudart.so.13\0libcudnn.so.9\0');
  assert.match(
    cudaFacts(() => true, library).reason,
    /they also need an NVIDIA driver and libcublasLt\.so\.13, libcudart\.so\.13, libcudnn\.so\.9$/,
  );
  assert.match(cudaFacts(() => true, `${library}.absent`).reason, /the CUDA libraries of their release$/);
});

test('an encoder for unavailable CUDA fails to open and says what to do; it never runs on the CPU', {
  skip: cudaFacts().installed ? 'the CUDA libraries are installed here' : false,
}, async (t) => {
  const folder = await toyModel(t);
  await assert.rejects(openEncoder(folder, { device: 'cuda:1' }), (error: unknown) => {
    assert.ok(error instanceof TrawlError);
    assert.equal(error.code, 'DEVICE_UNAVAILABLE');
    assert.match(error.message, /cuda:1 cannot be used/);
    assert.match(error.message, /docs\/gpu\.md|Linux x64/);
    return true;
  });
  await assert.rejects(openEncoder(folder, { device: 'cuda', workers: 0 }), /workers is 0; it must be a whole number/);
});

test('each CUDA device has as many threads as the size of the weights asks for, at most the cores, or as many as are asked for', async (t) => {
  const model = await readModelFolder(await toyModel(t));
  const threads = Math.min(8, availableCores());
  const chosen = await poolOptions(model, [1, 0], {});
  assert.deepEqual([chosen.workers, chosen.batchTokens], [2 * threads, 65_536]);
  assert.deepEqual(chosen.cudaDevices?.slice(0, 4), threads > 1 ? [1, 0, 1, 0] : [1, 0]);
  assert.deepEqual((await poolOptions(model, [2], { workers: 3 })).cudaDevices, [2, 2, 2]);
});
