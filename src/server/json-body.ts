import { createUnzip } from 'node:zlib';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { TrawlError } from '../base/errors.ts';
import { onResponseEnd } from './connections/client-signal.ts';
import { RequestError } from './errors/request-error.ts';

/** Requests need at most three levels. Deep nesting would overflow the stack of recursive code. */
const MAX_DEPTH = 64;

/** JSON.parse blocks the event loop for about a second per million lists or objects. */
const MAX_CONTAINERS = 1_000_000;

const MEDIA_TYPE = /^\s*application\/(?:[\w.!#$&^+-]+\+)?json\s*(?:;.*)?$/i;

/**
 * Passes bodies to handlers as bytes. Fastify's own JSON parser refuses a `__proto__` key with a 400 in its own format; `field`
 * reads only own properties, so that the key is an ordinary unknown field.
 */
export function acceptRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
  acceptCompressedBodies(app);
}

/** The content codings that `createUnzip` recognises by the first bytes. */
const CODINGS = ['gzip', 'x-gzip', 'deflate'];

/**
 * Decompresses the bodies of every route. Fastify and the budget of bodies count the decompressed bytes, so that a small body cannot
 * expand without limit. `accept-encoding` in a refusal names the accepted codings (RFC 9110, section 15.5.16).
 */
function acceptCompressedBodies(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers }, reply) => {
    const coding = codingOf(headers);
    if (coding === '' || CODINGS.includes(coding)) return;
    reply.header('accept-encoding', 'gzip, deflate');
    throw new TrawlError(
      'UNSUPPORTED_MEDIA_TYPE',
      `Bodies with content-encoding: ${coding.slice(0, 40)} are not supported. Send the body as gzip, or plain without that header.`,
    );
  });
  app.addHook('preParsing', ({ headers, raw: request }, { raw: response }, payload, done) => {
    if (codingOf(headers) === '') return done(null, payload);
    // Fastify compares the bytes that arrived with the header content-length.
    const body = Object.assign(createUnzip(), { receivedEncodedLength: 0 });
    payload.on('data', (chunk: Buffer) => {
      body.receivedEncodedLength += chunk.length;
    });
    payload.on('error', (error) => body.destroy(error));
    // Nobody reads the body of a HEAD, and an error without a listener would end the process.
    body.on('error', () => undefined);
    // A refused body is not decompressed to its end.
    onResponseEnd(request, response, () => {
      payload.unpipe(body);
      body.destroy();
      payload.resume();
    });
    done(null, payload.pipe(body));
  });
}

/** Empty for a body as it is. */
function codingOf({ 'content-encoding': coding = '' }: FastifyRequest['headers']): string {
  const name = coding.trim().toLowerCase();
  return name === 'identity' ? '' : name;
}

/**
 * Refuses a content type other than JSON before the body is read. Like the original servers, it also refuses curl's default content
 * type for `-d`. A missing content type is accepted.
 */
export function requireJsonMediaType(request: FastifyRequest): void {
  const type = request.headers['content-type'];
  if (type === undefined || type === '' || MEDIA_TYPE.test(type)) return;
  throw new TrawlError(
    'UNSUPPORTED_MEDIA_TYPE',
    'The content type of the body is not JSON. Send the header "content-type: application/json" (curl: -H).',
  );
}

/** Parses a JSON body. Errors have the position but never the content, because messages are logged. */
export function parseJsonBody(body: unknown): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0) {
    throw new RequestError('INVALID_REQUEST', 'The request has no body. Send a JSON object.', [
      { type: 'missing', loc: ['body'], msg: 'Field required', input: null },
    ]);
  }
  refuseUnusualNesting(body);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw invalidJson(0, 'the bytes are not UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch {
    const position = jsonFaultAt(text);
    if (position === text.length) throw invalidJson(position, 'it ends too early');
    throw invalidJson(position, `unexpected character at ${position}${hintAt(text, position)}`);
  }
}

/** Words that Python's str() writes, and their spelling in JSON. */
const PYTHON_WORDS = { True: 'true', False: 'false', None: 'null', NaN: 'null', Infinity: 'a finite number' } as const;

function hintAt(text: string, position: number): string {
  const found = Object.entries(PYTHON_WORDS).find(([word]) => text.startsWith(word, position));
  if (found !== undefined) return ` (in JSON, ${found[0]} is ${found[1]})`;
  return text[position] === "'" ? ' (JSON strings have double quotes)' : '';
}

/**
 * Refuses deep nesting, and more lists and objects than any request needs, before the body is parsed. Only counts the brackets
 * outside strings; does not check that the body is JSON.
 */
function refuseUnusualNesting(body: Uint8Array): void {
  let depth = 0;
  let containers = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) {
      inString = true;
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > MAX_DEPTH) throw tooNested(`nested deeper than ${MAX_DEPTH} levels`, i);
      if (++containers > MAX_CONTAINERS) throw tooNested(`too large: more than ${MAX_CONTAINERS} lists and objects`, i);
    } else if (byte === 0x5d || byte === 0x7d) {
      depth--;
    }
  }
}

function tooNested(how: string, position: number): RequestError {
  const reason = `The body is ${how}`;
  return new RequestError('INVALID_REQUEST', `${reason}, at byte ${position}.`, [
    { type: 'value_error', loc: ['body', position], msg: reason },
  ]);
}

function invalidJson(position: number, reason: string): RequestError {
  return new RequestError('INVALID_JSON', `The body is not valid JSON: ${reason}.`, [
    { type: 'json_invalid', loc: ['body', position], msg: `JSON decode error: ${reason}` },
  ]);
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Characters below a space are control characters, which a string must escape. */
const SPACE = 0x20;

const ESCAPED = '"\\/bfnrt';
const HEX_DIGIT = /[\da-f]/i;

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERALS = ['true', 'false', 'null'] as const;

/** What the grammar allows next; `after` means after a value. */
type State = 'value' | 'first item' | 'first key' | 'key' | 'colon' | 'after';

/**
 * The position of the first character that makes a text invalid as JSON; the text's length if it only ends too early.
 *
 * The messages of JSON.parse cannot be used: some have no position, and some quote the text, which may look like a position. The
 * function is not recursive, so that no text can overflow the stack.
 *
 * @internal
 */
export function jsonFaultAt(text: string): number {
  const open: ('{' | '[')[] = [];
  let state: State = 'value';
  let at = 0;
  for (;;) {
    at = skipSpace(text, at);
    const character = text[at];
    if (character === undefined) return text.length;
    if (state === 'after') {
      const container = open.at(-1);
      if (container !== undefined && character === ',') state = container === '{' ? 'key' : 'value';
      else if (character === (container === '{' ? '}' : ']') && container !== undefined) open.pop();
      else return at;
      at++;
    } else if (state === 'colon') {
      if (character !== ':') return at;
      state = 'value';
      at++;
    } else if ((state === 'first key' && character === '}') || (state === 'first item' && character === ']')) {
      open.pop();
      state = 'after';
      at++;
    } else if (state === 'key' || state === 'first key') {
      if (character !== '"') return at;
      const end = stringEnd(text, at);
      if (!end.valid) return end.at;
      at = end.at;
      state = 'colon';
    } else if (character === '{' || character === '[') {
      open.push(character);
      state = character === '{' ? 'first key' : 'first item';
      at++;
    } else {
      const end = character === '"' ? stringEnd(text, at) : wordEnd(text, at);
      if (!end.valid) return end.at;
      at = end.at;
      state = 'after';
    }
  }
}

/** The end of a valid token, or the position of its fault. */
interface TokenEnd {
  readonly valid: boolean;
  readonly at: number;
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text[at] === ' ' || text[at] === '\n' || text[at] === '\r' || text[at] === '\t') at++;
  return at;
}

function stringEnd(text: string, start: number): TokenEnd {
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === QUOTE) return { valid: true, at: at + 1 };
    if (unit < SPACE) return { valid: false, at };
    if (unit === BACKSLASH) {
      const escaped = escapeEnd(text, at);
      if (!escaped.valid) return escaped;
      at = escaped.at - 1;
    }
  }
  return { valid: false, at: text.length };
}

function escapeEnd(text: string, start: number): TokenEnd {
  const letter = text[start + 1];
  if (letter === undefined) return { valid: false, at: text.length };
  if (ESCAPED.includes(letter)) return { valid: true, at: start + 2 };
  if (letter !== 'u') return { valid: false, at: start + 1 };
  for (let at = start + 2; at < start + 6; at++) {
    if (!HEX_DIGIT.test(text[at] ?? '')) return { valid: false, at };
  }
  return { valid: true, at: start + 6 };
}

/** A number or a literal. */
function wordEnd(text: string, start: number): TokenEnd {
  for (const literal of LITERALS) {
    if (text.startsWith(literal, start)) return { valid: true, at: start + literal.length };
    if (text.length - start < literal.length && literal.startsWith(text.slice(start))) {
      return { valid: false, at: text.length };
    }
  }
  NUMBER.lastIndex = start;
  return NUMBER.test(text) ? { valid: true, at: NUMBER.lastIndex } : { valid: false, at: start };
}
