import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { packageRoot } from '../../src/base/package-root.ts';
import { freePort } from '../cli/free-port.ts';
import { infinityLibraryFolder, torchPython } from './peers.ts';

/** Starts Infinity with a folder of sentence-transformers, in float32 on the CPU. Returns its address; ended after the test. */
export async function startInfinity(t: TestContext, model: string, name: string): Promise<string> {
  const port = await freePort();
  const child = spawn(
    torchPython(),
    [
      ...['-c', 'from infinity_emb.cli import cli; cli()', 'v2', '--model-id', model, '--served-model-name', name],
      ...['--host', '127.0.0.1', '--port', String(port), '--engine', 'torch', '--device', 'cpu', '--dtype', 'float32'],
      ...['--no-bettertransformer', '--no-model-warmup'],
    ],
    {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: {
        ...process.env,
        PYTHONPATH: infinityLibraryFolder(),
        HF_HUB_OFFLINE: '1',
        DO_NOT_TRACK: '1',
        INFINITY_ANONYMOUS_USAGE_STATS: '0',
      },
    },
  );
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    stderr = `${stderr}${part}`.slice(-2_000);
  });
  const ended = once(child, 'close');
  t.after(async () => {
    // SIGTERM waits for requests that a failed test has left.
    child.kill('SIGKILL');
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  while (child.exitCode === null) {
    if (
      await fetch(`${url}/health`).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return url;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`Infinity ended with exit code ${child.exitCode}: ${stderr}`);
}

/**
 * Starts a script that needs torch and answers requests until its stdin ends. Writes JSON as a line to stdin; resolves to the JSON of
 * the first line that the script prints. Ended after the test.
 */
export async function startTorchPeer(t: TestContext, script: string, input: unknown): Promise<unknown> {
  const child = spawn(torchPython(), [join(packageRoot, 'test', 'peers', script)], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, HF_HUB_OFFLINE: '1', TOKENIZERS_PARALLELISM: 'false' },
  });
  const ended = once(child, 'close');
  t.after(async () => {
    child.stdin.end();
    await ended;
  });
  child.stdin.write(`${JSON.stringify(input)}\n`);
  let text = '';
  const line = new Promise<string>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (part: string) => {
      text += part;
      const [first, rest] = text.split('\n');
      if (rest !== undefined) resolve(first!);
    });
  });
  return JSON.parse(
    await Promise.race([
      line,
      ended.then(([code]) => Promise.reject(new Error(`${script} ended with exit code ${code}`))),
    ]),
  );
}
