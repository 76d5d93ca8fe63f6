import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { Writable } from 'node:stream';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { prettyLines } from '../../cli/serve/server-log.ts';

const PROGRAM = fileURLToPath(new URL('../../cli/trawl.js', import.meta.url));

/** Runs a shell pipeline in which `trawl` is the program. */
function shell(line: string): Promise<{ code: number; stdout: string; stderr: string }> {
  const script = `set -o pipefail; trawl() { "${process.execPath}" "${PROGRAM}" "$@"; }; ${line}`;
  return new Promise((resolve) => {
    execFile('bash', ['-c', script], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code), stdout, stderr });
    });
  });
}

test('a reader that closes the pipe early is no error', async () => {
  assert.deepEqual(await shell('trawl index --help | head -1'), {
    code: 0,
    stdout: 'Usage: trawl index <corpus...> [options]\n',
    stderr: '',
  });
  assert.deepEqual(await shell('trawl doctor --json | true'), { code: 0, stdout: '', stderr: '' });
});

test('a command works on if the reader of its standard error has closed the pipe', async () => {
  const { code, stdout } = await shell('exec 3>&1; { trawl bogus 2>&4; echo "code $?" >&3; } 4>&1 | true');
  assert.deepEqual([code, stdout], [0, 'code 2\n']);
});

test('standard output on a full disk is an error of one line', {
  skip: existsSync('/dev/full') ? false : '/dev/full does not exist',
}, async () => {
  const { code, stderr } = await shell('trawl doctor > /dev/full');
  assert.equal(code, 1);
  assert.match(stderr, /^trawl: standard output cannot be written: ENOSPC[^\n]*\n$/);
});

/** Log lines as they are printed on a terminal. */
async function linesOnTerminal(write: (log: ReturnType<typeof pino>) => void, colorize = false): Promise<string> {
  let text = '';
  const sink = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString();
      done();
    },
  });
  write(pino(await prettyLines(sink, colorize)));
  await new Promise((resolve) => setImmediate(resolve));
  return text;
}

test('on a terminal an answer is logged as one line, without queries and process ids', async () => {
  const text = await linesOnTerminal((log) => {
    const stages = { queueMs: 0.7, embedMs: 1.26, searchMs: 2, fetchMs: 0.5, replyMs: 0.04, totalMs: 3.9 };
    log.info({ reqId: 'r', dialect: 'search-r1', queries: 64, k: 3, truncated: 2, ...stages }, 'retrieved');
    log.info({ queries: 1, k: 5, truncated: 0, ...stages }, 'retrieved');
  });
  const [first, second, end] = text.split('\n');
  assert.match(
    first!,
    /^\[\d\d:\d\d:\d\d\] INFO: 64 queries, top 3, 2 truncated: 3\.9 ms \(queue 0\.7, embed 1\.3, search 2\.0, fetch 0\.5, reply 0\.0\)$/,
  );
  assert.match(second!, /INFO: 1 query, top 5: 3\.9 ms/);
  assert.equal(end, '');
});

test('on a terminal other log lines show their fields, and an error its stack', async () => {
  const text = await linesOnTerminal((log) => {
    log.info({ reqId: 'r', code: 'INVALID_REQUEST', status: 422, reason: 'queries is missing' }, 'request refused');
    log.error({ err: new Error('on purpose'), code: 'INTERNAL', details: {} }, 'request failed');
  });
  assert.match(text, /INFO: request refused: code INVALID_REQUEST, status 422, reason queries is missing\n/);
  assert.match(text, /ERROR: request failed: code INTERNAL\n.*Error: on purpose\n\s+at /);
});
