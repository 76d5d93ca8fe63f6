import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cudaFacts } from '../../../src/embedding/inference/cuda-libraries.ts';
import { parseDevice } from '../../../src/embedding/inference/device.ts';
import { openEncoder } from '../../../src/embedding/open-encoder.ts';
import { TrawlError } from '../../../src/errors.ts';
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

test('if CUDA is unavailable, the reason names what is missing and the command that installs it', {
  skip:
    process.platform !== 'linux' || process.arch !== 'x64' ? 'onnxruntime-node supports CUDA on Linux x64 only' : false,
}, () => {
  const without = cudaFacts(() => false);
  assert.equal(without.installed, false);
  assert.match(
    without.reason,
    /libonnxruntime_providers_cuda\.so is missing.*install\.js --onnxruntime-node-install=cuda12/,
  );
  assert.match(cudaFacts((path) => !path.startsWith('/dev')).reason, /no NVIDIA driver/);
  assert.match(cudaFacts(() => true).reason, /CUDA 12.*cuDNN 9/);
});

test('an encoder for unavailable CUDA fails to open and names the install command; it never runs on the CPU', {
  skip: cudaFacts().installed ? 'the CUDA libraries are installed here' : false,
}, async (t) => {
  const folder = await toyModel(t);
  await assert.rejects(openEncoder(folder, { device: 'cuda:1' }), (error: unknown) => {
    assert.ok(error instanceof TrawlError);
    assert.equal(error.code, 'DEVICE_UNAVAILABLE');
    assert.match(error.message, /cuda:1 cannot be used/);
    assert.match(error.message, /--onnxruntime-node-install=cuda12|Linux on x64/);
    return true;
  });
  await assert.rejects(
    openEncoder(folder, { device: 'cuda', workers: 2 }),
    /2 workers were requested for 1 CUDA devices/,
  );
});
