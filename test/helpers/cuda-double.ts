import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { loadKernel } from '../../src/engine/native/kernel.ts';
import { ADDON_PATH } from '../../src/engine/native/load-addon.ts';

/** Why searches on a GPU cannot be tested here; false if they can. */
export const withoutGpuSearches =
  loadKernel().ok && process.platform === 'linux' ? false : 'searches on a GPU need the native engine on Linux';

/** Compiles the test double of NVIDIA's driver (native/test/gpu/cuda_double.cpp). Returns its path, for TRAWL_CUDA_LIBRARY. */
export function cudaDouble(): string {
  // The addon is in build/addon/.
  const native = join(dirname(ADDON_PATH), '..', '..');
  const library = join('build', 'cuda-double', 'libcuda-double.so');
  const made = spawnSync('make', ['-C', native, library], { encoding: 'utf8' });
  assert.equal(made.status, 0, made.stderr);
  return join(native, library);
}
