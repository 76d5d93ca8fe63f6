import { asTrawlError, TrawlError } from '../../../base/errors.ts';
import { isSameJson } from '../../../base/objects.ts';
import type { IndexDefinition } from '../../../index/document-store/index-files.ts';
import type { WriteItem, Written } from '../../../index/document-store/operations.ts';
import type { RequestedOperation } from '../../../index/document-store/parse-bulk.ts';
import type { WritableIndexes } from '../../../index/document-store/writable-indexes.ts';
import { separated } from '../../dialects/parts/search-plan.ts';
import { isLimited } from '../../indexes/view-choice.ts';
import { elapsedMs } from '../../metrics/server-timing.ts';
import { ElasticsearchError, illegalArgument, indexNotFound } from '../elasticsearch-error.ts';
import {
  type ElasticsearchReply,
  type ElasticsearchRequest,
  type ElasticsearchRoute,
  jsonReply,
} from '../elasticsearch-route.ts';
import { type JsonNode, type Members, parseJson } from '../json-node.ts';
import { indexesInPath } from '../leased-indexes.ts';
import { readMembers } from '../query/clause.ts';
import { COMMON_PARAMETERS, INDEX_PARAMETERS, refuseUnknownParameters } from '../search-request.ts';
import {
  checkIndexName,
  DEFAULT_SETTINGS,
  definitionForWrite,
  newDefinition,
  readMapping,
  readSettings,
  readSimilarities,
} from './index-definition.ts';

export const WRITE_ROUTES: readonly ElasticsearchRoute[] = [
  { method: ['POST', 'PUT'], url: '/_bulk', handle: bulk },
  { method: ['POST', 'PUT'], url: '/:index/_bulk', handle: bulk },
  { method: 'POST', url: '/:index/_doc', handle: (asked) => writeOne(asked, actionOf(asked)) },
  { method: ['POST', 'PUT'], url: '/:index/_doc/:id', handle: (asked) => writeOne(asked, actionOf(asked)) },
  { method: ['POST', 'PUT'], url: '/:index/_create/:id', handle: (asked) => writeOne(asked, 'create') },
  { method: 'DELETE', url: '/:index/_doc/:id', handle: (asked) => writeOne(asked, 'delete') },
  { method: 'POST', url: '/:index/_update/:id', handle: refuseUpdate },
  { method: 'POST', url: '/:index/_update_by_query', handle: refuseUpdate },
  { method: 'POST', url: '/:index/_delete_by_query', handle: refuseUpdate },
  { method: 'PUT', url: '/:index', handle: create },
  { method: 'DELETE', url: '/:index', handle: remove },
  { method: ['PUT', 'POST'], url: '/:index/_mapping', handle: changeMapping },
  { method: 'PUT', url: '/:index/_settings', handle: changeSettings },
  { method: ['GET', 'POST'], url: '/_refresh', handle: refresh },
  { method: ['GET', 'POST'], url: '/:index/_refresh', handle: refresh },
];

/** Parameters that change nothing here, and `refresh`. */
const PARAMETERS = [
  ...COMMON_PARAMETERS,
  'include_source_on_error',
  'op_type',
  'refresh',
  'timeout',
  'wait_for_active_shards',
];
/** Parameters that may have this value only. */
const NEUTRAL: Readonly<Record<string, string>> = {
  list_executed_pipelines: 'false',
  pipeline: '_none',
  require_alias: 'false',
  require_data_stream: 'false',
  version_type: 'internal',
};

type Refresh = 'no' | 'wait' | 'forced';

async function bulk(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const refresh = checkWrite(asked);
  const items = await write(asked, asked.body, asked.path.index, refresh);
  const texts = separated(items, (item) => {
    const { action, index, id } = item;
    const { status, written, error } = itemReply(asked, item, refresh);
    return JSON.stringify({ [action]: written ? { ...written, status } : { _index: index, _id: id, status, error } });
  });
  const errors = items.some(({ outcome }) => 'failure' in outcome);
  const took = Math.round(elapsedMs(asked.request));
  return { pieces: [`{"errors":${errors},"took":${took},"items":[`, ...texts, ']}'] };
}

async function writeOne(
  asked: ElasticsearchRequest,
  action: RequestedOperation['action'],
): Promise<ElasticsearchReply> {
  const { body, path } = asked;
  const refresh = checkWrite(asked);
  if (action !== 'delete' && body.trim() === '') {
    throw new ElasticsearchError(400, { type: 'parse_exception', reason: 'request body is required' });
  }
  const source = action === 'delete' ? undefined : body;
  const [item] = await write(asked, [{ action, index: path.index ?? '', id: path.id, source }], undefined, refresh);
  const { status, written, error } = itemReply(asked, item!, refresh);
  if (error !== undefined) throw new ElasticsearchError(status, error);
  return { status, pieces: [JSON.stringify(written)] };
}

function refuseUpdate(asked: ElasticsearchRequest): never {
  writableOf(asked);
  throw illegalArgument(
    'Updates and deletions by query are not supported. Send whole documents, and delete documents by their ids.',
  );
}

async function write(
  asked: ElasticsearchRequest,
  body: string | readonly RequestedOperation[],
  index: string | undefined,
  refresh: Refresh,
): Promise<readonly WriteItem[]> {
  const writable = writableOf(asked);
  const items = await storing('Nothing of the request is stored.', () =>
    writable.write(body, index, definitionForWrite),
  );
  if ('reason' in items) {
    const { status, ...cause } = items;
    throw new ElasticsearchError(status, cause);
  }
  if (refresh === 'no') return items;
  const written = new Set(items.flatMap((item) => ('failure' in item.outcome ? [] : [item.index])));
  await storing('The documents are stored, but searches do not find them yet.', async () => {
    for (const name of written) await unlessRemoved(writable.refresh(name));
  });
  return items;
}

const STATUSES: Readonly<Record<Written['result'], number>> = {
  created: 201,
  updated: 200,
  deleted: 200,
  not_found: 404,
};

/** The status of an operation, and what the reply says of its success or failure. */
function itemReply({ routes }: ElasticsearchRequest, { index, id, outcome }: WriteItem, refresh: Refresh) {
  // Undefined if the index was removed meanwhile.
  const definition = routes.config.writable?.definition(index);
  if ('failure' in outcome) {
    const { status, ...error } = outcome.failure;
    const place = status === 409 && definition ? { index_uuid: definition.uuid, shard: '0', index } : {};
    return { status, error: { ...error, ...place } };
  }
  const { version, result, seqNo } = outcome;
  const written = {
    _index: index,
    _id: id,
    _version: version,
    result,
    forced_refresh: refresh === 'forced' || undefined,
    // An index is one shard, and has no copies but those that its settings name.
    _shards: { total: 1 + (definition?.settings.replicas ?? 0), successful: 1, failed: 0 },
    _seq_no: seqNo,
    _primary_term: 1,
  };
  return { status: STATUSES[result], written };
}

function actionOf({ parameters: { op_type: type } }: ElasticsearchRequest): 'index' | 'create' {
  if (type === undefined || type === 'index') return 'index';
  if (type === 'create') return 'create';
  throw illegalArgument(`opType must be 'create' or 'index', found: [${type.slice(0, 100)}]`);
}

/** Refuses a write that the request may not make or that has wrong parameters. Returns when searches find the documents. */
function checkWrite(asked: ElasticsearchRequest): Refresh {
  writableOf(asked);
  requireContentType(asked);
  const { parameters } = asked;
  for (const [name, value] of Object.entries(NEUTRAL)) {
    if ((parameters[name] ?? value) !== value)
      throw illegalArgument(`The parameter [${name}] can only be [${value}] here`);
  }
  refuseUnknownParameters(asked, [...PARAMETERS, ...Object.keys(NEUTRAL)]);
  const { refresh } = parameters;
  if (refresh === undefined || refresh === 'false') return 'no';
  if (refresh === '' || refresh === 'true') return 'forced';
  if (refresh === 'wait_for') return 'wait';
  throw illegalArgument(`Unknown value for refresh: [${refresh.slice(0, 100)}].`);
}

const INDEX_ROUTE_PARAMETERS = [...COMMON_PARAMETERS, ...INDEX_PARAMETERS, 'master_timeout', 'timeout'];
const ACKNOWLEDGED = { acknowledged: true };

async function create(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const writable = writableOf(asked);
  requireContentType(asked);
  refuseUnknownParameters(asked, [...INDEX_ROUTE_PARAMETERS, 'wait_for_active_shards']);
  const name = asked.path.index ?? '';
  checkIndexName(name);
  const { mappings, settings } = readNewIndex(asked.body);
  const definition = newDefinition(
    name,
    readMapping(mappings, readSimilarities(settings)),
    readSettings(settings, DEFAULT_SETTINGS, true),
  );
  try {
    await storing('The index was not made.', () => writable.create(definition));
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'INDEX_EXISTS') {
      throw alreadyExists(name, writable.definition(name)?.uuid ?? '_na_');
    }
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') throw illegalArgument(error.message);
    throw error;
  }
  return jsonReply({ acknowledged: true, shards_acknowledged: true, index: name });
}

function readNewIndex(text: string): { readonly mappings?: Members; readonly settings?: Members } {
  if (text.trim() === '') return {};
  const root = parseJson(text);
  root.object('an index');
  const readObject = (node: JsonNode, what: string): Members => node.object(what);
  const readers = {
    mappings: readObject,
    settings: readObject,
    aliases(node: JsonNode, what: string): void {
      if (node.object(what).size > 0) throw illegalArgument('[aliases] are not supported');
    },
  };
  return readMembers(root, readers, (name) => {
    const reason = `unknown key [${name.slice(0, 100)}] for create index`;
    return new ElasticsearchError(400, { type: 'parse_exception', reason });
  });
}

function alreadyExists(name: string, uuid: string): ElasticsearchError {
  return new ElasticsearchError(400, {
    type: 'resource_already_exists_exception',
    reason: `index [${name}/${uuid}] already exists`,
    index_uuid: uuid,
    index: name,
  });
}

async function remove(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const writable = writableOf(asked);
  refuseUnknownParameters(asked, INDEX_ROUTE_PARAMETERS);
  const { index = '' } = asked.path;
  if (index.includes('*') || index === '_all') {
    throw illegalArgument('Wildcard expressions or all indices are not allowed');
  }
  const names = indexesInPath(asked);
  for (const name of names) requireWritable(asked, name);
  for (const name of names) await unlessRemoved(storing('The index stays.', () => writable.remove(name)));
  return jsonReply(ACKNOWLEDGED);
}

/** A mapping cannot change, but clients send it again to be sure of it. */
function changeMapping(asked: ElasticsearchRequest): ElasticsearchReply {
  const { properties, strict } = requireWritable(asked, asked.path.index ?? '');
  requireContentType(asked);
  refuseUnknownParameters(asked, INDEX_ROUTE_PARAMETERS);
  const sent = parseJson(asked.body).object('a mapping');
  const wanted = readMapping(sent);
  const isSame = (name: string): boolean =>
    Object.hasOwn(properties, name) && isSameJson(properties[name], wanted.properties[name]);
  const other = [...(sent.get('properties')?.members?.keys() ?? [])].find((name) => !isSame(name));
  if (other !== undefined) {
    throw illegalArgument(
      `mapper [${other.slice(0, 100)}] cannot be added or changed in an index that exists; make the index anew with this field`,
    );
  }
  if (sent.has('dynamic') && wanted.strict !== strict) {
    throw illegalArgument('[dynamic] cannot be changed in an index that exists; make the index anew with it');
  }
  return jsonReply(ACKNOWLEDGED);
}

async function changeSettings(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const writable = writableOf(asked);
  const { name, settings } = requireWritable(asked, asked.path.index ?? '');
  requireContentType(asked);
  refuseUnknownParameters(asked, [...INDEX_ROUTE_PARAMETERS, 'flat_settings', 'preserve_existing']);
  const root = parseJson(asked.body).object('settings');
  const changed = readSettings(root.get('settings')?.members ?? root, settings, false);
  await storing('The settings stay.', () => writable.change(name, changed));
  return jsonReply(ACKNOWLEDGED);
}

async function refresh(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const writable = writableOf(asked);
  refuseUnknownParameters(asked, INDEX_ROUTE_PARAMETERS);
  const names = indexesInPath(asked);
  let total = 0;
  for (const name of names) {
    const definition = writable.definition(name);
    total += 1 + (definition?.settings.replicas ?? 0);
    // Other indexes have nothing to refresh.
    if (definition === undefined) continue;
    await unlessRemoved(storing('Searches find what they found before.', () => writable.refresh(name)));
  }
  return jsonReply({ _shards: { total, successful: names.length, failed: 0 } });
}

/**
 * The writable indexes of the server.
 *
 * @throws ElasticsearchError cluster_block_exception without `--writable`; security_exception for a request that is limited to a
 * view, which could leave it by changing documents.
 */
function writableOf({ request, routes, path }: ElasticsearchRequest): WritableIndexes {
  const { writable } = routes.config;
  if (!writable) {
    const what = path.index === undefined ? 'this server' : `index [${path.index.slice(0, 100)}]`;
    throw blocked(what, 'start the server with --writable FOLDER to make and fill indexes over HTTP');
  }
  if (!isLimited(request, routes.config)) return writable;
  const reason = 'A request that is limited to a view cannot write. Use a key or an address without a view.';
  throw new ElasticsearchError(403, { type: 'security_exception', reason });
}

/**
 * The definition of an index that a request changes.
 *
 * @throws ElasticsearchError index_not_found_exception, or cluster_block_exception for an index that was not made over HTTP.
 */
function requireWritable(asked: ElasticsearchRequest, name: string): IndexDefinition {
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
function requireContentType({ request, body }: ElasticsearchRequest): void {
  if (body === '' || (request.headers['content-type'] ?? '') !== '') return;
  throw new TrawlError('UNSUPPORTED_MEDIA_TYPE', 'Content-Type header is missing');
}

/**
 * Runs a change of the indexes. A full disk is an error in Elasticsearch's words.
 *
 * @param state a sentence that says what the failed change leaves behind.
 */
async function storing<T>(state: string, change: () => Promise<T>): Promise<T> {
  try {
    return await change();
  } catch (error) {
    if (asTrawlError(error).code !== 'DISK_FULL') throw error;
    const reason = `No space is left on the disk of --writable. ${state} Free some space, and send the request again.`;
    throw new ElasticsearchError(429, { type: 'cluster_block_exception', reason });
  }
}

/** Waits for a change of an index, which does nothing if another client has removed the index. */
async function unlessRemoved(change: Promise<void>): Promise<void> {
  try {
    await change;
  } catch (error) {
    if (!(error instanceof TrawlError) || error.code !== 'NOT_FOUND') throw error;
  }
}
