import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Runs in a network namespace of its own, where Milvus, which listens on all addresses, is reached by nobody else: starts Milvus and
 * relays a Unix socket to its port. Lines of standard input are commands, each answered by a line once it has taken effect; the end
 * of the input ends everything.
 */
const [python, script, folder, socket, log] = process.argv.slice(2) as [string, string, string, string, string];
const PORT = 19_530;

let milvus: ChildProcess | undefined;
let isKilled = false;

function start(): void {
  const output = openSync(log, 'a');
  milvus = spawn(python, [script, folder, 'run', 'standalone'], { stdio: ['ignore', output, output] });
  closeSync(output);
  isKilled = false;
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
  thaw: () => void milvus?.kill('SIGCONT'),
};

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

// Sent to all processes of an interrupted test.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
for await (const line of createInterface(process.stdin)) {
  await commands[line]?.();
  process.stdout.write(`${line}\n`);
}
end();
