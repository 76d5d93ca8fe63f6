import { TrawlError } from '../../../base/errors.ts';
import { isSameJson } from '../../../base/objects.ts';
import { ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from '../elasticsearch-route.ts';
import { JsonBody, type ObjectNode } from '../json-nodes.ts';
import { objectOf } from '../json-values.ts';
import { indexesOf } from '../leased-indexes.ts';
import { refuseUnknownParameters } from '../search-request.ts';
import { readMapping } from './index-mapping.ts';
import { checkIndexName } from './index-name.ts';
import { DEFAULT_SETTINGS, readSettings } from './index-settings.ts';
import { newDefinition, requireContentType, requireWritable, storing, writableOf } from './write-access.ts';
import { shardsObject } from './write-reply.ts';

export const INDEX_ROUTES: readonly ElasticsearchRoute[] = [
  { method: 'PUT', url: '/:index', handle: create },
  { method: 'DELETE', url: '/:index', handle: remove },
  { method: ['PUT', 'POST'], url: '/:index/_mapping', handle: changeMapping },
  { method: 'PUT', url: '/:index/_settings', handle: changeSettings },
  { method: ['GET', 'POST'], url: '/_refresh', handle: refresh },
  { method: ['GET', 'POST'], url: '/:index/_refresh', handle: refresh },
];

const SHARED = [
  'allow_no_indices',
  'error_trace',
  'expand_wildcards',
  'human',
  'ignore_unavailable',
  'index',
  'master_timeout',
  'pretty',
  'timeout',
];
const ACKNOWLEDGED = { acknowledged: true };

async function create(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { parameters, path, request, body: text } = asked;
  const writable = writableOf(asked);
  requireContentType(request, text);
  refuseUnknownParameters(parameters, [...SHARED, 'wait_for_active_shards'], request.url.split('?')[0]!);
  const name = path.index ?? '';
  checkIndexName(name);
  const { mappings, settings } = membersOf(text, ['mappings', 'settings', 'aliases']);
  const definition = newDefinition(name, readMapping(mappings), readSettings(settings, DEFAULT_SETTINGS, true));
  try {
    await storing('The index was not made.', () => writable.create(definition));
  } catch (error) {
    if (error instanceof TrawlError && error.code === 'INDEX_EXISTS') {
      throw alreadyExists(name, writable.definition(name)?.uuid ?? '_na_');
    }
    if (error instanceof TrawlError && error.code === 'CONFIG_INVALID') throw illegalArgument(error.message);
    throw error;
  }
  return json({ acknowledged: true, shards_acknowledged: true, index: name });
}

async function remove(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { parameters, path, request, routes } = asked;
  const writable = writableOf(asked);
  refuseUnknownParameters(parameters, SHARED, request.url.split('?')[0]!);
  const names = path.index ?? '';
  if (names.includes('*') || names === '_all') {
    throw illegalArgument('Wildcard expressions or all indices are not allowed');
  }
  const found = indexesOf(routes.holder, { names, ignoreUnavailable: parameters.ignore_unavailable === 'true' });
  for (const name of found) requireWritable(asked, name);
  for (const name of found) {
    await storing('The index stays.', () => writable.remove(name)).catch((error: unknown) => {
      // Another client was faster.
      if (!(error instanceof TrawlError) || error.code !== 'NOT_FOUND') throw error;
    });
  }
  return json(ACKNOWLEDGED);
}

/** A mapping cannot change, but clients send it again to be sure of it. */
function changeMapping(asked: ElasticsearchRequest): ElasticsearchReply {
  const { parameters, path, request, body: text } = asked;
  const { properties, fields } = requireWritable(asked, path.index ?? '');
  requireContentType(request, text);
  refuseUnknownParameters(parameters, SHARED, request.url.split('?')[0]!);
  const body = new JsonBody(text);
  const wanted = readMapping(objectOf(body, body.root, 'a mapping'));
  const other = Object.entries(wanted.properties).find(
    ([name, field]) => !isSameJson(properties[name], field) && !isAdded(name, field),
  );
  if (other === undefined) return json(ACKNOWLEDGED);
  throw illegalArgument(
    `mapper [${other[0].slice(0, 100)}] cannot be added or changed in an index that exists; make the index anew with this field`,
  );

  /** Whether `readMapping` added the field to the request: it has the analyser that the index chose. */
  function isAdded(name: string, field: unknown): boolean {
    return (fields as string[]).includes(name) && isSameJson(field, { type: 'text' });
  }
}

async function changeSettings(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { parameters, path, request, body: text } = asked;
  const writable = writableOf(asked);
  const { name, settings } = requireWritable(asked, path.index ?? '');
  requireContentType(request, text);
  refuseUnknownParameters(parameters, [...SHARED, 'flat_settings', 'preserve_existing'], request.url.split('?')[0]!);
  const body = new JsonBody(text);
  const root = objectOf(body, body.root, 'settings');
  const inner = root.members.get('settings');
  const changed = readSettings(inner?.type === 'object' ? inner : root, settings, false);
  await storing('The settings stay.', () => writable.change(name, changed));
  return json(ACKNOWLEDGED);
}

async function refresh(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { parameters, path, request, routes } = asked;
  const writable = writableOf(asked);
  refuseUnknownParameters(parameters, SHARED, request.url.split('?')[0]!);
  const names = indexesOf(routes.holder, {
    names: path.index,
    ignoreUnavailable: parameters.ignore_unavailable === 'true',
  });
  let [total, successful] = [0, 0];
  for (const name of names) {
    const definition = writable.definition(name);
    // Other indexes have nothing to refresh.
    const shards = definition === undefined ? { total: 1 } : (shardsObject(definition) as { total: number });
    if (definition !== undefined) {
      await storing('Searches find what they found before.', () => writable.refresh(name)).catch((error: unknown) => {
        if (!(error instanceof TrawlError) || error.code !== 'NOT_FOUND') throw error;
      });
    }
    total += shards.total;
    successful++;
  }
  return json({ _shards: { total, successful, failed: 0 } });
}

/** The objects of a body, by their names. */
function membersOf<Name extends string>(text: string, names: readonly Name[]): Partial<Record<Name, ObjectNode>> {
  if (text.trim() === '') return {};
  const body = new JsonBody(text);
  const found: Partial<Record<Name, ObjectNode>> = {};
  for (const [name, node] of objectOf(body, body.root, 'an index').members) {
    const known = names.find((each) => each === name);
    if (known === undefined) {
      const reason = `unknown key [${name.slice(0, 100)}] for create index`;
      throw new ElasticsearchError(400, { type: 'parse_exception', reason });
    }
    if (node.type === 'null') continue;
    const object = objectOf(body, node, `[${name}]`);
    if (known === 'aliases' && object.members.size > 0) throw illegalArgument('[aliases] are not supported');
    found[known] = object;
  }
  return found;
}

function alreadyExists(name: string, uuid: string): ElasticsearchError {
  return new ElasticsearchError(400, {
    type: 'resource_already_exists_exception',
    reason: `index [${name}/${uuid}] already exists`,
    index_uuid: uuid,
    index: name,
  });
}

function json(value: unknown): ElasticsearchReply {
  return { pieces: [JSON.stringify(value)] };
}
