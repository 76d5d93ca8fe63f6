import { ERROR_CODES, type ErrorCode, TrawlError } from '../../base/errors.ts';
import type { NativeApi, NativeReply } from './native-api.ts';
import type { ReplyError } from './search-reply.ts';

/** The JSON of a reply. @throws TrawlError of a request that the server refuses. */
export function accepted(api: NativeApi, reply: NativeReply): object {
  if (!reply.ok) throw refusal(api, reply);
  return reply.json;
}

/** The error of a refused request, with the server's code if it is one of Trawl's. */
export function refusal(api: NativeApi, { status, code, message }: Extract<NativeReply, { ok: false }>): TrawlError {
  if (code === undefined) return api.failed(`it answered ${status}`);
  return errorOf({ code, message: `${api.url} refuses the request: ${message}` });
}

/** An error that the server names. */
export function errorOf({ code, message, maxTied }: ReplyError): TrawlError {
  const known = Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : 'INTERNAL';
  return new TrawlError(known, known === code ? message : `${code}: ${message}`, { details: { maxTied } });
}
