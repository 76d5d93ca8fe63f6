import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TrawlError } from '../errors.ts';
import { RequestError } from './request-error.ts';

/**
 * Deeper nesting is refused before it is parsed: no request needs more than two levels, and JSON.parse takes many times
 * longer for nested lists than for texts, in one go.
 */
const MAX_DEPTH = 64;

const MEDIA_TYPE = /^\s*application\/(?:[\w.!#$&^+-]+\+)?json\s*(?:;.*)?$/i;

/**
 * Bodies reach a handler as bytes. Fastify's own JSON parser refuses `__proto__` keys and answers 400 in its own words;
 * here such a key is a field like any unknown one, since fields are only read where they are the object's own.
 */
export function acceptRawBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) => done(null, body));
}

/** No coding but the body as it is: a compressed one could become any size. */
const CODINGS = 'identity';

/**
 * JSON by name, or no name at all (a bare HTTP library). Anything else is refused before the body is read, curl's default
 * for `-d` included, as the original servers do. So is a body in a content coding: the answer says which are taken (RFC 9110, 15.5.16).
 */
export function requireJsonMediaType(request: FastifyRequest, reply: FastifyReply): void {
  const coding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (coding !== '' && coding !== CODINGS) {
    reply.header('accept-encoding', CODINGS);
    throw new TrawlError(
      'UNSUPPORTED_MEDIA_TYPE',
      `The body says that it is encoded (content-encoding: ${coding.slice(0, 40)}); send it as plain JSON, without that header.`,
    );
  }
  const type = request.headers['content-type'];
  if (type === undefined || type === '' || MEDIA_TYPE.test(type)) return;
  throw new TrawlError(
    'UNSUPPORTED_MEDIA_TYPE',
    'The body must be JSON and say so: add the header "content-type: application/json" (curl: -H).',
  );
}

/** The value of a JSON body. The error says where, never what: a body holds queries, and messages are logged. */
export function parseJsonBody(body: unknown): unknown {
  if (!(body instanceof Uint8Array) || body.length === 0) {
    throw new RequestError('INVALID_REQUEST', 'The request has no body; send a JSON object.', [
      { type: 'missing', loc: ['body'], msg: 'Field required', input: null },
    ]);
  }
  refuseDeepNesting(body);
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body);
  } catch {
    throw invalidJson(0, 'the bytes are not UTF-8');
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    const stated = / at position (\d+)/.exec(message)?.[1];
    const position = stated === undefined ? firstStrangeToken(text) : Number(stated);
    if (position === text.length || message.includes('end of JSON')) {
      throw invalidJson(text.length, 'it ends too early');
    }
    throw invalidJson(position, `unexpected character at ${position}${hintAt(text, position)}`);
  }
}

/** A string, a number, a literal, a bracket, a comma, a colon, or white space, each as JSON has them. */
const TOKEN = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null|[[\]{},:]|[ \t\n\r]+/suy;

/** Where the parser does not say it: the first place where no token begins, else the start. */
function firstStrangeToken(text: string): number {
  TOKEN.lastIndex = 0;
  let position = 0;
  while (TOKEN.test(text)) position = TOKEN.lastIndex;
  return position < text.length ? position : 0;
}

/** What Python's str() writes in place of JSON, with JSON's own word. */
const FOREIGN_WORDS = { True: 'true', False: 'false', None: 'null', NaN: 'null', Infinity: 'a finite number' } as const;

function hintAt(text: string, position: number): string {
  const found = Object.entries(FOREIGN_WORDS).find(([word]) => text.startsWith(word, position));
  if (found !== undefined) return ` (JSON has ${found[1]} for ${found[0]})`;
  return text[position] === "'" ? ' (JSON quotes with ")' : '';
}

/** Looks at brackets outside of strings only; whether it is JSON at all is for the parser to say. */
function refuseDeepNesting(body: Uint8Array): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inString) {
      if (byte === 0x5c) i++;
      else if (byte === 0x22) inString = false;
    } else if (byte === 0x22) {
      inString = true;
    } else if (byte === 0x5b || byte === 0x7b) {
      if (++depth > MAX_DEPTH) throw tooDeep(i);
    } else if (byte === 0x5d || byte === 0x7d) {
      depth--;
    }
  }
}

function tooDeep(position: number): RequestError {
  const reason = `The body is nested deeper than ${MAX_DEPTH} levels`;
  return new RequestError('INVALID_REQUEST', `${reason}, at byte ${position}.`, [
    { type: 'value_error', loc: ['body', position], msg: reason },
  ]);
}

function invalidJson(position: number, reason: string): RequestError {
  return new RequestError('INVALID_JSON', `The body is not valid JSON: ${reason}.`, [
    { type: 'json_invalid', loc: ['body', position], msg: `JSON decode error: ${reason}` },
  ]);
}
