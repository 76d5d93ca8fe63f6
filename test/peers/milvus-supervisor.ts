import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

/**
 * Runs in a network namespace of its own, where Milvus, which listens on all addresses, is reached by nobody else: starts Milvus and
 * relays a Unix socket to its port. Lines of standard input are commands; its end ends everything.
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

const commands: Readonly<Record<string, () => void>> = {
  start,
  kill: () => {
    isKilled = true;
    milvus?.kill('SIGKILL');
  },
  freeze: () => milvus?.kill('SIGSTOP'),
  thaw: () => milvus?.kill('SIGCONT'),
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

createInterface(process.stdin)
  .on('line', (line) => commands[line]?.())
  .on('close', end);
// Sent to all processes of an interrupted test.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
