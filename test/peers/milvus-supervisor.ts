import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Runs in a network namespace of its own, where Milvus, which listens on all addresses, is reached by nobody else: starts Milvus and
 * relays a Unix socket to its port. A Milvus that has ended, or that is not healthy for a minute, is started again, as Kubernetes does.
 * Lines of standard input are commands, each answered by a line once it has taken effect; the end of the input ends everything.
 */
const [python, script, folder, socket, log] = process.argv.slice(2) as [string, string, string, string, string];
const PORT = 19_530;
/** Answers 200 if all parts of Milvus are healthy (its Helm chart has this address as liveness probe). */
const HEALTH = 'http://127.0.0.1:9091/healthz';
const UNHEALTHY_MS = 60_000;

let milvus: ChildProcess | undefined;
let isKilled = false;
let isFrozen = false;
/** Milliseconds of `performance.now()`. Infinity before the first healthy moment: the first start unpacks the program, for minutes. */
let healthyAt = Number.POSITIVE_INFINITY;

function start(): void {
  const output = openSync(log, 'a');
  milvus = spawn(python, [script, folder, 'run', 'standalone'], { stdio: ['ignore', output, output] });
  closeSync(output);
  isKilled = false;
  if (healthyAt !== Number.POSITIVE_INFINITY) healthyAt = performance.now();
  // Milvus ends itself if it was frozen for longer than its lease; whoever runs it starts it again.
  milvus.once('exit', () => {
    if (!isKilled) start();
  });
}

async function kill(): Promise<void> {
  isKilled = true;
  if (milvus === undefined || milvus.exitCode !== null || milvus.signalCode !== null) return;
  milvus.kill('SIGKILL');
  await once(milvus, 'exit');
}

/** A signal stops the threads of a process one after the other: waits until all have stopped. */
async function freeze(): Promise<void> {
  isFrozen = true;
  while (!isStopped()) {
    milvus?.kill('SIGSTOP');
    await pause(10);
  }
}

function isStopped(): boolean {
  const threads = `/proc/${milvus?.pid}/task`;
  // proc(5): the state follows the name in parentheses.
  try {
    return readdirSync(threads).every((thread) => /\) T /.test(readFileSync(`${threads}/${thread}/stat`, 'utf8')));
  } catch {
    // A thread ended meanwhile.
    return false;
  }
}

const commands: Readonly<Record<string, () => void | Promise<void>>> = {
  start,
  kill,
  freeze,
  thaw: () => {
    healthyAt = performance.now();
    isFrozen = false;
    milvus?.kill('SIGCONT');
  },
};

/** Milvus can lose its lease without ending itself: it then refuses every call as abnormal until somebody starts it again. */
async function restartIfUnhealthy(): Promise<void> {
  if (isFrozen || isKilled) return;
  const isHealthy = await fetch(HEALTH, { signal: AbortSignal.timeout(5_000) }).then(
    ({ ok }) => ok,
    () => false,
  );
  const now = performance.now();
  if (isHealthy) healthyAt = now;
  else if (!isFrozen && !isKilled && now - healthyAt > UNHEALTHY_MS) {
    process.stderr.write(`Milvus is not healthy for ${UNHEALTHY_MS / 1_000} s and is started again.\n`);
    milvus?.kill('SIGKILL');
    healthyAt = now;
  }
}

createServer((client) => {
  const server = connect(PORT, '127.0.0.1');
  for (const [from, to] of [
    [client, server],
    [server, client],
  ] as const) {
    from.pipe(to);
    from.on('error', () => to.destroy());
    from.on('close', () => to.destroy());
  }
}).listen(socket, () => process.stdout.write('ready\n'));

function end(): void {
  isKilled = true;
  milvus?.kill('SIGKILL');
  process.exit(0);
}

void (async () => {
  for (;;) {
    await pause(1_000);
    await restartIfUnhealthy();
  }
})();
// Sent to all processes of an interrupted test.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
for await (const line of createInterface(process.stdin)) {
  await commands[line]?.();
  process.stdout.write(`${line}\n`);
}
end();
