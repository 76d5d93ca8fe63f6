import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { TrawlError } from '../base/errors.ts';
import { RequestError } from './errors/request-error.ts';
import { jsonFaultAt } from './json-fault.ts';

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
}

/** The only accepted content coding, because a compressed body could expand to any size. */
const CODINGS = 'identity';

/**
 * Refuses a content type other than JSON and any content coding, before the body is read. Like the original servers, it also refuses
 * curl's default content type for `-d`. A missing content type is accepted. `accept-encoding` in the response names the accepted
 * coding (RFC 9110, section 15.5.16).
 */
export function requireJsonMediaType(request: FastifyRequest, reply: FastifyReply): void {
  const coding = request.headers['content-encoding']?.trim().toLowerCase() ?? '';
  if (coding !== '' && coding !== CODINGS) {
    reply.header('accept-encoding', CODINGS);
    throw new TrawlError(
      'UNSUPPORTED_MEDIA_TYPE',
      `Compressed bodies are not supported (content-encoding: ${coding.slice(0, 40)}). Send plain JSON without that header.`,
    );
  }
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
