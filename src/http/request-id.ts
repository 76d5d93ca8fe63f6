import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** What can stand in a header and a log line without being taken for something else. */
const USABLE = /^[\w.:+/=@-]{1,128}$/;

/** The caller's own id where it sent a usable one, so that one request has one name on both sides. */
export function requestId(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id'];
  return typeof given === 'string' && USABLE.test(given) ? given : randomUUID();
}
