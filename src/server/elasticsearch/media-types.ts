import type { FastifyRequest } from 'fastify';
import { TrawlError } from '../../base/errors.ts';
import { ElasticsearchError } from './elasticsearch-error.ts';

const VENDOR = /^application\/vnd\.elasticsearch\+(?:json|x-ndjson)\s*;\s*compatible-with\s*=\s*([89])\s*$/i;
const BODIES = /^application\/(?:vnd\.elasticsearch\+)?(?:json|x-ndjson)\s*(?:;.*)?$/i;

/**
 * Refuses what Elasticsearch refuses before it reads a body: another content type than JSON, and a version of the protocol in only
 * one of `accept` and `content-type`, or different ones. A missing content type is accepted.
 */
export function checkMediaTypes(request: FastifyRequest): void {
  const { accept = '', 'content-type': type = '' } = request.headers;
  if (!hasBody(request)) return;
  if (type !== '' && !BODIES.test(type)) {
    throw new TrawlError('UNSUPPORTED_MEDIA_TYPE', `Content-Type header [${type.slice(0, 200)}] is not supported`);
  }
  if (type === '' || versionOf(accept) === versionOf(type)) return;
  throw new ElasticsearchError(400, {
    type: 'media_type_header_exception',
    reason:
      'A compatible version is required on both Content-Type and Accept headers if either one has requested a compatible version. ' +
      `Accept=${accept.slice(0, 200)}, Content-Type=${type.slice(0, 200)}`,
  });
}

/** The content type of a JSON reply: the one of `accept` if it names a version. */
export function jsonTypeFor(request: FastifyRequest): string {
  const version = versionOf(request.headers.accept ?? '');
  return version === undefined ? 'application/json' : `application/vnd.elasticsearch+json;compatible-with=${version}`;
}

/** The version of the protocol in a media type, 8 or 9; undefined if it names none. */
function versionOf(header: string): string | undefined {
  return header
    .split(',')
    .map((type) => VENDOR.exec(type.trim())?.[1])
    .find((version) => version !== undefined);
}

function hasBody({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
