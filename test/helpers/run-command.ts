import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));

export interface EndedCommand {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stderr: string;
}

/** Runs a command line in a process of its own, which may be killed after a time. */
export async function runCommand(
  args: readonly string[],
  { env = {}, killAfterMs }: { env?: Record<string, string>; killAfterMs?: number } = {},
): Promise<EndedCommand> {
  const child: ChildProcess = spawn(process.execPath, [PROGRAM, ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let stderr = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill('SIGKILL'), killAfterMs);
  const [code, signal] = (await once(child, 'close')) as [number | null, NodeJS.Signals | null];
  clearTimeout(timer);
  return { code, signal, stderr };
}

export function expectOk({ code, signal, stderr }: EndedCommand): void {
  assert.equal(code, 0, `ended with ${code ?? signal}: ${stderr}`);
}
