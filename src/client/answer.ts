import { TrawlResponseError } from './errors.ts';

/** An HTTP response whose body has arrived. */
export interface Answer {
  /** The base URL of the server. */
  readonly url: string;
  readonly path: string;
  readonly response: Response;
  readonly text: string;
}

/**
 * The body as a JSON object.
 * @throws TrawlResponseError if the status is not 2xx, TypeError if the body is not a JSON object.
 */
export function jsonObject(answer: Answer): Record<string, unknown> {
  const { url, path, response, text } = answer;
  const body = parsed(text);
  if (!response.ok) {
    const { code, message } = errorOf(body) ?? {
      code: 'UNKNOWN',
      message: response.statusText || 'The server refused the request.',
    };
    throw new TrawlResponseError(response.status, code, message, response.headers.get('x-request-id'), url);
  }
  if (body !== undefined) return body;
  throw new TypeError(`The response of ${url}${path} is not a JSON object. Check that it is a Trawl server.`);
}

/** The body of GET /readyz, which has status 503 while the server starts or stops. */
export function readyFacts(answer: Answer): Record<string, unknown> {
  return (answer.response.status === 503 ? parsed(answer.text) : undefined) ?? jsonObject(answer);
}

/** Why the server is not ready: it is starting or stopping, or a proxy could not reach it. Undefined if it is ready. */
export function notReady({ path, response, text }: Answer): string | undefined {
  if (response.status !== 503) return undefined;
  const body = parsed(text);
  if (path === '/readyz') return `503, ${String(body?.status)}`;
  const code = errorOf(body)?.code;
  if (code === undefined) return '503 without the error format of a Trawl server';
  return code === 'NOT_READY' ? `503, ${code}` : undefined;
}

function errorOf(body: Record<string, unknown> | undefined): { code: string; message: string } | undefined {
  const error = body?.error as { code?: unknown; message?: unknown } | null;
  return error?.code === undefined ? undefined : { code: String(error.code), message: String(error.message) };
}

function parsed(text: string): Record<string, unknown> | undefined {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && !Array.isArray(body)
      ? (body as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
