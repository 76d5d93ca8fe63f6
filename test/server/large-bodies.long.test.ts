import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TSchema } from 'typebox';
import { DIALECTS } from '../../src/server/dialects/dispatch.ts';
import { FakeRetriever } from '../helpers/fake-retriever.ts';
import { seededRandom } from '../helpers/seeded-random.ts';
import { serve } from './build.ts';
import { filled, NAMES, SLOW_VALUES, shorter, VALUES } from './large-values.ts';

const SEED = 20_261_201;
/** An error that repeats its request is larger. */
const MAX_ERROR_CHARACTERS = 8_192;

/** One of this many fields gets a value of nearly the limit; the others get a shorter one, which takes less time. */
const FIELDS_PER_LONGEST = 4;

/** Ends after a value that make a body invalid. */
const BROKEN_ENDS = [
  'True}',
  'nul',
  '"a',
  '"\\x"}',
  '"\u0001"}',
  '1.}',
  '-',
  "'a'}",
  '[1,]}',
  '{1}',
  '{} {',
  '\ufeff}',
];

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function send(url: string, body: string): Promise<Answer> {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const response = await fetch(url, { method: 'POST', headers, body });
  return { status: response.status, text: await response.text() };
}

/** Asserts a 200, a 4xx, or the 501 of unsupported dialects. */
function assertUnderstood({ status, text }: Answer, what: string): void {
  const start = text.slice(0, 300);
  assert.ok(status < 500 || status === 501, `${what}: ${status} ${start}`);
  assert.ok(!start.includes('INTERNAL'), `${what}: ${start}`);
  if (status >= 400) assert.ok(text.length <= MAX_ERROR_CHARACTERS, `${what}: an error of ${text.length} characters`);
}

/** An object's JSON with one field set to a JSON text. */
function withField(example: object, name: string, value: string): string {
  const rest = Object.entries(example).filter(([field]) => field !== name);
  const members = rest.map(([field, each]) => `${JSON.stringify(field)}:${JSON.stringify(each)}`);
  return `{${[`${JSON.stringify(name)}:${value}`, ...members].join(',')}}`;
}

function isNumeric(schema: TSchema | undefined): boolean {
  return /"(?:integer|number)"/.test(JSON.stringify(schema ?? {}));
}

for (const { name, path, example, onlyIfNamed, request } of DIALECTS) {
  test(`${name}: a field of nearly the body limit is answered or refused, and is never an INTERNAL error`, async (t) => {
    const { url } = await serve(t, new FakeRetriever(), { dialects: onlyIfNamed ? [name] : [] });
    const random = seededRandom(SEED);
    const right = name === 'openai-embeddings' ? { ...example, model: 'fake-encoder' } : example;
    const { properties = {} } = request as { properties?: Readonly<Record<string, TSchema>> };
    for (const [i, field] of [...Object.keys(properties), 'unknown'].entries()) {
      const fill = i % FIELDS_PER_LONGEST === 0 ? filled : shorter;
      const tried = [NAMES[Math.floor(random() * NAMES.length)]!];
      if (isNumeric(properties[field])) tried.push('a number in groups of digits');
      for (const value of tried) {
        const answer = await send(url + path.replace(':index', 'x'), withField(right, field, VALUES[value]!(fill)));
        assertUnderstood(answer, `${field}: ${value}`);
      }
    }
  });
}

test('an invalid body of nearly the limit is never an INTERNAL error', async (t) => {
  const { url } = await serve(t);
  for (const [i, end] of BROKEN_ENDS.entries()) {
    const value = NAMES[i % NAMES.length]!;
    const answer = await send(`${url}/retrieve`, `{"queries":${VALUES[value]!()},"x":${end}`);
    assert.equal(answer.status, 422, `${value} before ${end}`);
    assertUnderstood(answer, `${value} before ${end}`);
    assert.match(answer.text, /INVALID_JSON/);
  }
});

test('bodies of many small values are answered or refused', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), { mcp: { hosts: [] } });
  for (const [name, value] of Object.entries(SLOW_VALUES)) {
    assertUnderstood(await send(`${url}/v1/search`, withField({}, 'queries', value())), name);
  }
  const fields = SLOW_VALUES['an object of many fields']!();
  assertUnderstood(await send(`${url}/v1/search`, fields), 'unknown fields');
  assertUnderstood(await send(`${url}/mcp`, `[${'{},'.repeat(900_000)}{}]`), 'a batch of nothing');
});

test('no MCP message of nearly the body limit is an INTERNAL error', async (t) => {
  const { url } = await serve(t, new FakeRetriever(), { mcp: { hosts: [] } });
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'search', arguments: { query: 'a' } } };
  const random = seededRandom(SEED);
  const pick = (): string => NAMES[Math.floor(random() * NAMES.length)]!;
  for (const name of Object.keys(call)) {
    const value = pick();
    assertUnderstood(await send(`${url}/mcp`, withField(call, name, VALUES[value]!())), `${name}: ${value}`);
  }
  for (const params of ['{"name":$}', '{"name":"search","arguments":$}', '{"name":"search","arguments":{"query":$}}']) {
    const value = pick();
    const body = withField(call, 'params', params.replace('$', VALUES[value]!()));
    assertUnderstood(await send(`${url}/mcp`, body), `${params}: ${value}`);
  }
  const unknown = '{"name":"search","arguments":{"query":"a","x":$}}'.replace('$', VALUES['a text']!());
  assertUnderstood(await send(`${url}/mcp`, withField(call, 'params', unknown)), 'an unknown argument');
});

test('a reload with NUL in a path is a 422', async (t) => {
  const { url } = await serve(t);
  const reload = `${url}/admin/indexes/fake-sample/reload`;
  for (const body of ['{"folder":"\\u0000"}', '{"model":"a\\u0000b"}']) {
    const answer = await send(reload, body);
    assert.equal(answer.status, 422, answer.text);
    assert.match(answer.text, /INVALID_REQUEST/);
  }
  for (const value of ['a text', 'a list of numbers']) {
    assertUnderstood(await send(reload, withField({}, 'folder', VALUES[value]!())), value);
  }
});

test('a path of slashes takes linear time', async (t) => {
  const { url } = await serve(t);
  const before = process.cpuUsage();
  for (let i = 0; i < 20; i++) {
    const response = await fetch(`${url}/${'/'.repeat(15_000)}x`);
    assert.equal(response.status, 404);
    await response.arrayBuffer();
    await sleep(0);
  }
  const { user } = process.cpuUsage(before);
  // In quadratic time, one of these paths took a third of a second.
  assert.ok(user < 2e6, `${user} µs`);
});
