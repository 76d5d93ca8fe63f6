import { fork } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { GPU_CHECKPOINTS } from './gpu-checkpoints.ts';

/** A model folder with a float32 and a float16 graph, and the checkpoint that it was made from. */
export interface GpuModel {
  readonly name: string;
  readonly folder: string;
  readonly checkpoint: string;
  /** Reads from left to right; the vector is that of the last token. */
  readonly isDecoder: boolean;
}

/**
 * Makes models with random weights in the shapes of `GPU_CHECKPOINTS`, each in a process of its own. Those that the folder has from an
 * earlier run are taken.
 *
 * @param small with a few hundred thousand weights, to try the test itself.
 */
export async function makeGpuModels(folder: string, small: boolean): Promise<GpuModel[]> {
  mkdirSync(join(folder, 'models'), { recursive: true });
  const models = Object.keys(GPU_CHECKPOINTS).map((name) => modelIn(folder, name));
  await Promise.all(models.filter(({ folder: made }) => !existsSync(made)).map((model) => makeInProcess(model, small)));
  return models;
}

function modelIn(folder: string, name: string): GpuModel {
  const [made, checkpoint] = [join(folder, 'models', name), join(folder, 'checkpoints', name)];
  return { name, folder: made, checkpoint, isDecoder: name === 'qwen3-shape' };
}

function makeInProcess({ name, folder, checkpoint }: GpuModel, small: boolean): Promise<void> {
  const program = fileURLToPath(new URL('./make-gpu-model.js', import.meta.url));
  const child = fork(program, [name, checkpoint, folder, small ? 'small' : 'whole'], {
    execArgv: [],
    stdio: ['ignore', 2, 2, 'ipc'],
  });
  const kill = (): unknown => child.kill('SIGKILL');
  // Before the listener that removes the files.
  process.prependOnceListener('exit', kill);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      process.off('exit', kill);
      if (code === 0) resolve();
      else reject(new Error(`${name} was not made`));
    });
  });
}
