import { randomUUID } from 'node:crypto';
import type { FastifyRequest } from 'fastify';
import { asTrawlError, TrawlError } from '../../../base/errors.ts';
import type { IndexDefinition } from '../../../index/document-store/index-definition.ts';
import type { Failure } from '../../../index/document-store/operations.ts';
import type { WritableIndexes } from '../../../index/document-store/writable-indexes.ts';
import { isLimited } from '../../indexes/view-choice.ts';
import { ElasticsearchError, indexNotFound } from '../elasticsearch-error.ts';
import type { ElasticsearchRequest } from '../elasticsearch-route.ts';
import { type IndexMapping, readMapping } from './index-mapping.ts';
import { nameProblem } from './index-name.ts';
import { DEFAULT_SETTINGS } from './index-settings.ts';

/**
 * The writable indexes of the server.
 *
 * @throws ElasticsearchError cluster_block_exception without `--writable`; security_exception for a request that is limited to a
 * view, which could leave it by changing documents.
 */
export function writableOf({ request, routes, path }: ElasticsearchRequest): WritableIndexes {
  const { writable } = routes.config;
  if (writable !== null && isLimited(request, routes.config)) {
    const reason = 'A request that is limited to a view cannot write. Use a key or an address without a view.';
    throw new ElasticsearchError(403, { type: 'security_exception', reason });
  }
  if (writable !== null) return writable;
  const what = path.index === undefined ? 'this server' : `index [${path.index.slice(0, 100)}]`;
  throw blocked(what, 'start the server with --writable FOLDER to make and fill indexes over HTTP');
}

/**
 * The definition of an index that a request changes.
 *
 * @throws ElasticsearchError index_not_found_exception, or cluster_block_exception for an index that was not made over HTTP.
 */
export function requireWritable(asked: ElasticsearchRequest, name: string): IndexDefinition {
  const definition = writableOf(asked).definition(name);
  if (definition !== undefined) return definition;
  if (!asked.routes.holder.slots.some((slot) => slot.name === name)) throw indexNotFound(name);
  throw blocked(`index [${name}]`, 'it was not made over HTTP. Change it with trawl index --update');
}

function blocked(what: string, wayOut: string): ElasticsearchError {
  const reason = `${what} blocked by: [FORBIDDEN/8/index write (api)]; ${wayOut}`;
  return new ElasticsearchError(403, { type: 'cluster_block_exception', reason });
}

/**
 * Refuses a body without a content type, which a page of another site can send without asking. Other types are refused for every
 * route.
 */
export function requireContentType({ headers }: FastifyRequest, body: string): void {
  if (body === '' || (headers['content-type'] ?? '') !== '') return;
  throw new TrawlError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type header is missing');
}

export function newDefinition(
  name: string,
  mapping: IndexMapping,
  settings: IndexDefinition['settings'],
): IndexDefinition {
  return {
    format: 'trawl-writable-index',
    version: 1,
    name,
    uuid: Buffer.from(randomUUID().replaceAll('-', ''), 'hex').toString('base64url'),
    createdAt: Date.now(),
    ...mapping,
    settings,
  };
}

/** The index that a write makes if it names one that does not exist. */
export function definitionForWrite(name: string): IndexDefinition | Failure {
  const problem = nameProblem(name);
  if (problem === undefined) return newDefinition(name, readMapping(undefined), DEFAULT_SETTINGS);
  const reason = `Invalid index name [${name.slice(0, 100)}], ${problem}`;
  return { status: 400, type: 'invalid_index_name_exception', reason };
}

/** Runs a change of the indexes, and words a full disk as Elasticsearch does. `kept`: what is not lost. */
export async function storing<T>(kept: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (asTrawlError(error).code !== 'DISK_FULL') throw error;
    const reason = `No space is left on the disk of --writable. ${kept} Free some space, and send the request again.`;
    throw new ElasticsearchError(429, { type: 'cluster_block_exception', reason });
  }
}

/** @param more members of the error beside those of the failure. */
export function failureError({ status, ...cause }: Failure, more: object = {}): ElasticsearchError {
  return new ElasticsearchError(status, { ...cause, ...more });
}
