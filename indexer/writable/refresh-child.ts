import { fork } from 'node:child_process';
import { cancelled } from '../../src/base/abort.ts';
import { deserializeError, TrawlError } from '../../src/base/errors.ts';
import type { RefreshJob, RefreshReply, RefreshResult } from './refresh-job.ts';

/** The end of a child's messages, for an error without a reply. */
const TAIL_CHARACTERS = 2_000;

/**
 * Does a job in a child process, so that neither its work nor its memory is the server's.
 *
 * @throws TrawlError as `runRefresh`; CANCELLED when the signal is aborted; OUT_OF_MEMORY if the system killed the child.
 */
export async function refreshInChild(job: RefreshJob, signal: AbortSignal): Promise<RefreshResult> {
  if (signal.aborted) throw cancelled();
  const child = fork(new URL('./refresh-process.js', import.meta.url), {
    execArgv: [],
    // In a group of its own: Ctrl-C reaches the server, which ends the child.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  const kill = (): void => {
    child.kill('SIGKILL');
  };
  signal.addEventListener('abort', kill, { once: true });
  let tail = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    tail = `${tail}${chunk}`.slice(-TAIL_CHARACTERS);
  });
  try {
    const reply = await new Promise<RefreshReply>((resolve, reject) => {
      child.once('message', (message) => resolve(message as RefreshReply));
      child.once('error', reject);
      child.once('exit', (code, killedBy) => reject(endedEarly(code, killedBy, tail)));
      child.send(job);
    });
    if (reply.ok) return reply.result;
    throw deserializeError(reply.error);
  } catch (error) {
    throw signal.aborted ? cancelled() : error;
  } finally {
    signal.removeEventListener('abort', kill);
  }
}

function endedEarly(code: number | null, signal: NodeJS.Signals | null, tail: string): TrawlError {
  if (signal === 'SIGKILL') {
    return new TrawlError(
      'OUT_OF_MEMORY',
      'The process that indexes the documents was killed; usually the machine has too little memory. The documents are stored: ' +
        'refresh again.',
    );
  }
  return new TrawlError(
    'INTERNAL',
    `The process that indexes the documents ended with ${signal ?? code}: ${tail.trim()}`,
  );
}
