import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DIALECT_PATHS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { serve } from './build.ts';

const SEED = 20_261_121;
const CASES = 720;
const AT_ONCE = 60;
/** The server has answered when a connection is silent for this long. */
const QUIET_MS = 1_000;

type Random = () => number;

const pick = <Value>(random: Random, values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!;
const upTo = (random: Random, limit: number): number => Math.floor(random() * limit);

function post(queries: readonly string[], headers = '', path = '/retrieve'): string {
  const body = JSON.stringify({ queries, topk: 2, return_scores: true });
  return `POST ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

const chunked = (chunks: string, headers = ''): string =>
  `POST /retrieve HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n${headers}transfer-encoding: chunked\r\n\r\n${chunks}`;

const words = ['a', 'naïve Ω', '💧', '\u0000', '', 'x'.repeat(300), '"quoted"', '\u2028'];
const queriesOf = (random: Random): string[] => Array.from({ length: upTo(random, 4) }, () => pick(random, words));
/** Without Elasticsearch's, which this server answers with 501. */
const paths = [...DIALECT_PATHS.filter((path) => !path.includes(':')), '/nowhere'];
const oddPaths = [
  '*',
  '//',
  '/%',
  '/%00',
  '/%ff%fe',
  '/..%2f..',
  'http://x/livez',
  '/livez?a=%',
  '/v1/passages/%zz',
  '\\',
];
const oddMethods = [
  'GET',
  'HEAD',
  'PUT',
  'DELETE',
  'PATCH',
  'OPTIONS',
  'TRACE',
  'CONNECT',
  'PROPFIND',
  'get',
  'M-SEARCH',
  'X',
];
const oddLengths = ['-1', '1e3', '0x10', '', ' ', '99999999999999999999', '4294967296', '5, 5', '+5', '5;'];
const oddSizes = [
  'zz',
  '-1',
  '0x5',
  'ffffffffffffffff',
  'fffffffffffffffff',
  '5 5',
  '',
  ';',
  `5;${'e'.repeat(20_000)}`,
];
const oddHeaders = [
  'expect: 100-continue\r\n',
  'expect: something\r\n',
  'upgrade: websocket\r\nconnection: upgrade\r\n',
  'transfer-encoding: gzip, chunked\r\n',
  'transfer-encoding: identity\r\n',
  'content-encoding: gzip\r\n',
  'content-type: text/plain\r\n',
  'content-type: application/json; charset=latin1\r\n',
  'content-type: ;;;\r\n',
  'content-length: 3\r\n',
  'host: y\r\n',
  'x-request-id: \u00e9\u00e9\r\n',
  `x-request-id: ${'r'.repeat(5_000)}\r\n`,
  'accept: nothing/at-all\r\n',
  'connection: close\r\n',
  'connection: keep-alive, close, keep-alive\r\n',
  ': no name\r\n',
  ' folded\r\n',
  'no-colon\r\n',
  'bad name: x\r\n',
  'nul: a\u0000b\r\n',
];

/** Generators of broken messages. */
const MESSAGES: Readonly<Record<string, (random: Random) => string | Buffer>> = {
  'random bytes': (random) => Buffer.from(Array.from({ length: upTo(random, 600) }, () => upTo(random, 256))),
  'a request with bytes changed'(random) {
    const bytes = Buffer.from(post(queriesOf(random), '', pick(random, paths)));
    for (let i = 0; i <= upTo(random, 8); i++) bytes[upTo(random, bytes.length)] = upTo(random, 256);
    return bytes;
  },
  'a request with a piece left out'(random) {
    const bytes = Buffer.from(post(queriesOf(random), '', pick(random, paths)));
    const at = upTo(random, bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + 1 + upTo(random, 20))]);
  },
  'an incomplete request': (random) => Buffer.from(post(queriesOf(random))).subarray(0, upTo(random, 200)),
  'an odd method': (random) => `${pick(random, oddMethods)} ${pick(random, paths)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'an odd path': (random) => `${pick(random, ['GET', 'POST'])} ${pick(random, oddPaths)} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'a long path': (random) => `GET /${'p'.repeat(upTo(random, 40_000))} HTTP/1.1\r\nhost: x\r\n\r\n`,
  'an odd version': (random) =>
    post(['a']).replace(
      'HTTP/1.1',
      pick(random, ['HTTP/1.0', 'HTTP/2.0', 'HTTP/0.9', 'HTTP/1.9', 'HTTP/', 'XTTP/1.1', '']),
    ),
  'another protocol': (random) =>
    pick(random, [
      'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      '\u0016\u0003\u0001',
      '*1\r\n$4\r\nPING\r\n',
      'SSH-2.0-x\r\n',
      '\r\n\r\n\r\n',
    ]),
  'an odd header': (random) => post(queriesOf(random), pick(random, oddHeaders) + pick(random, ['', ...oddHeaders])),
  'large headers': (random) => post(['a'], `x-large: ${'h'.repeat(upTo(random, 60_000))}\r\n`),
  'many headers': (random) =>
    post(['a'], Array.from({ length: upTo(random, 4_000) }, (_, i) => `x-${i}: y\r\n`).join('')),
  'an odd length': (random) =>
    post(['a']).replace(/content-length: \d+/, `content-length: ${pick(random, oddLengths)}`),
  'a length and chunks': (random) => post(queriesOf(random), 'transfer-encoding: chunked\r\n'),
  'odd chunks': (random) => chunked(`${pick(random, oddSizes)}\r\n{}{}{\r\n0\r\n\r\n`),
  'chunks without their line ends': () => chunked('5\r\n{"que0\r\n\r\n'),
  'odd trailers': (random) => chunked(`2\r\n{}\r\n0\r\n${pick(random, oddHeaders)}\r\n`),
  'pipelined requests, then garbage': (random) =>
    `${post(['a'])}${post(['b'])}${pick(random, ['GARBAGE\r\n\r\n', '\u0000', post([]).slice(5)])}`,
};

test(`no bytes make the server fail: on ${CASES} connections every response is HTTP with a status below 500 or 503`, async (t) => {
  const retriever = new FakeRetriever();
  const { port, url } = await serve(t, retriever);
  const seen = new Map<string, number>();
  const names = Object.keys(MESSAGES);
  let next = 0;
  const client = async (): Promise<void> => {
    while (next < CASES) {
      const number = next++;
      const random = seededRandom(SEED + number);
      const name = names[number % names.length]!;
      const message = MESSAGES[name]!(random);
      const bytes = typeof message === 'string' ? Buffer.from(message) : message;
      for (const status of statusesOf(await exchange(port, inPieces(bytes, random)))) {
        assert.ok(status < 500 || status === 503, `${name} (seed ${SEED + number}) was answered with ${status}`);
        const key = `${status}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, client));
  assert.equal((await fetch(`${url}/livez`)).status, 200);
  for (const status of ['200', '400', '404', '405', '415', '431'])
    assert.ok(seen.has(status), `never a ${status}, but ${[...seen.keys()].join(', ')}`);
});

test('requests are parsed the same however their bytes are split, and responses come in their order', async (t) => {
  const { port, url } = await serve(t);
  const random = seededRandom(SEED);
  for (let round = 0; round < 60; round++) {
    const asked = Array.from({ length: 1 + upTo(random, 6) }, () => queriesOf(random));
    const expected = await Promise.all(
      asked.map(async (queries) => {
        const headers = { 'content-type': 'application/json' };
        const body = JSON.stringify({ queries, topk: 2, return_scores: true });
        return (await fetch(`${url}/retrieve`, { method: 'POST', headers, body })).text();
      }),
    );
    const requests = asked.map((queries, i) => {
      // The last response closes the connection.
      const request = post(queries, i === asked.length - 1 ? 'connection: close\r\n' : '');
      return random() < 0.5 ? Buffer.from(request) : inChunks(request, random);
    });
    const answer = await exchange(port, inPieces(Buffer.concat(requests), random));
    assert.deepEqual(bodiesOf(answer), expected, `round ${round}`);
  }
});

/** Bytes in up to five pieces, mostly one. */
function inPieces(bytes: Buffer, random: Random): Buffer[] {
  const splits = Array.from({ length: random() < 0.5 ? 0 : upTo(random, 5) }, () => upTo(random, bytes.length + 1));
  const ends = [...splits.sort((a, b) => a - b), bytes.length];
  let from = 0;
  return ends.map((end) => {
    const piece = bytes.subarray(from, end);
    from = end;
    return piece;
  });
}

/** The same request with a chunked body; chunks may end within a character. */
function inChunks(request: string, random: Random): Buffer {
  const body = Buffer.from(request.slice(request.indexOf('\r\n\r\n') + 4));
  const pieces = inPieces(body, random).filter((piece) => piece.length > 0);
  const end = Buffer.from('\r\n');
  const chunks = pieces.flatMap((piece) => [Buffer.from(`${piece.length.toString(16)}\r\n`), piece, end]);
  const head = chunked('', request.includes('connection: close') ? 'connection: close\r\n' : '');
  return Buffer.concat([Buffer.from(head), ...chunks, Buffer.from('0\r\n\r\n')]);
}

/** All bytes from the server until it closes the connection or is silent. */
async function exchange(port: number, pieces: readonly Buffer[]): Promise<Buffer> {
  const received: Buffer[] = [];
  const socket = connect(port, '127.0.0.1');
  socket.setNoDelay(true);
  const over = new Promise<void>((resolve) => {
    socket.setTimeout(QUIET_MS, resolve);
    socket.on('close', () => resolve());
    socket.on('error', () => resolve());
  });
  socket.on('data', (chunk: Buffer) => received.push(chunk));
  for (const piece of pieces) {
    if (socket.destroyed) break;
    socket.write(piece);
    if (pieces.length > 1) await sleep(1);
  }
  await over;
  socket.destroy();
  return Buffer.concat(received);
}

/** Parses responses; fails if one is incomplete. */
function answersOf(bytes: Buffer): { status: number; body: string }[] {
  const answers: { status: number; body: string }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf('\r\n\r\n', at);
    const head = bytes.toString('latin1', at, end < 0 ? bytes.length : end);
    const status = Number(/^HTTP\/1\.1 (\d{3})/.exec(head)?.[1] ?? Number.NaN);
    assert.ok(end >= 0 && !Number.isNaN(status), `not an answer: ${JSON.stringify(head.slice(0, 200))}`);
    at = end + 4;
    if (/\r\ntransfer-encoding: chunked/i.test(head)) {
      const last = bytes.indexOf('0\r\n\r\n', at);
      assert.ok(last >= 0, 'a chunked answer without its end');
      at = last + 5;
      answers.push({ status, body: '' });
      continue;
    }
    // 1xx responses and responses to HEAD have no body.
    const length = status < 200 ? 0 : Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
    const isBodyThere = bytes.length >= at + length && !/^HTTP/.test(bytes.toString('latin1', at, at + 4));
    const body = isBodyThere ? bytes.toString('utf8', at, at + length) : '';
    at += isBodyThere ? length : 0;
    answers.push({ status, body });
  }
  return answers;
}

const statusesOf = (bytes: Buffer): number[] => answersOf(bytes).map(({ status }) => status);
const bodiesOf = (bytes: Buffer): string[] => answersOf(bytes).map(({ body }) => body);
