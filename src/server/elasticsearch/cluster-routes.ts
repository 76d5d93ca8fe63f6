import type { ColumnType } from '../../engine/filter/column.ts';
import type { IndexDefinition } from '../../index/document-store/index-definition.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { illegalArgument } from './elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { indexesOf } from './leased-indexes.ts';
import { similarityOf } from './query/knn-rows.ts';
import { VECTOR_FIELD } from './query/queried-field.ts';
import { refuseUnknownParameters } from './search-request.ts';
import { settingsJson } from './write/index-settings.ts';

export const CLUSTER_ROUTES: readonly ElasticsearchRoute[] = [
  { method: 'GET', url: '/_cluster/health', handle: health },
  { method: 'GET', url: '/_cluster/health/:index', handle: health },
  { method: 'GET', url: '/_cat/indices', handle: catIndices },
  { method: 'GET', url: '/_cat/indices/:index', handle: catIndices },
  { method: ['GET', 'HEAD'], url: '/:index', handle: describe },
  { method: 'GET', url: '/:index/_mapping', handle: describeMapping },
  { method: 'GET', url: '/:index/_settings', handle: describeSettings },
];

const SHARED = [
  'error_trace',
  'expand_wildcards',
  'human',
  'ignore_unavailable',
  'index',
  'local',
  'master_timeout',
  'pretty',
];

function indexes(asked: ElasticsearchRequest): readonly RetrieverInfo[] {
  const { path, parameters, routes } = asked;
  const names = indexesOf(routes.holder, {
    names: path.index,
    ignoreUnavailable: parameters.ignore_unavailable === 'true',
  });
  return names.flatMap((name) => routes.holder.slot(name).retriever?.info ?? []);
}

function health(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(
    asked.parameters,
    [...SHARED, 'level', 'timeout', 'wait_for_active_shards', 'wait_for_events', 'wait_for_nodes', 'wait_for_status'],
    '/_cluster/health',
  );
  const shards = indexes(asked).length;
  return json({
    cluster_name: 'trawl',
    status: 'green',
    timed_out: false,
    number_of_nodes: 1,
    number_of_data_nodes: 1,
    active_primary_shards: shards,
    active_shards: shards,
    relocating_shards: 0,
    initializing_shards: 0,
    unassigned_shards: 0,
    unassigned_primary_shards: 0,
    delayed_unassigned_shards: 0,
    number_of_pending_tasks: 0,
    number_of_in_flight_fetch: 0,
    task_max_waiting_in_queue_millis: 0,
    active_shards_percent_as_number: 100,
  });
}

/** A value of an index; `made` of one that was made over HTTP. */
type CatColumn = (info: RetrieverInfo, made: IndexDefinition | undefined) => string;

/** The columns of `_cat/indices` by name; those after `docs.deleted` are bytes. */
const COLUMNS: ReadonlyMap<string, CatColumn> = new Map<string, CatColumn>([
  ['health', () => 'green'],
  ['status', () => 'open'],
  ['index', ({ index }) => index],
  ['uuid', ({ generation }, made) => made?.uuid ?? generation.replace(/[^\w-]/g, '').slice(0, 22)],
  ['pri', (_, made) => String(made?.settings.shards ?? 1)],
  ['rep', (_, made) => String(made?.settings.replicas ?? 0)],
  ['docs.count', ({ rows, deletedRows }) => String(rows - deletedRows)],
  ['docs.deleted', ({ deletedRows }) => String(deletedRows)],
  ['store.size', sizeOf],
  ['pri.store.size', sizeOf],
  ['dataset.size', sizeOf],
]);

function sizeOf({ memory: { residentBytes, touchedBytes, mappedBytes, lexicalBytes } }: RetrieverInfo): string {
  return `${residentBytes + touchedBytes + mappedBytes + lexicalBytes}b`;
}

/** A table of text, or JSON with `format=json` or if the client accepts nothing else. */
function catIndices(asked: ElasticsearchRequest): ElasticsearchReply {
  const { parameters, request } = asked;
  refuseUnknownParameters(
    parameters,
    [...SHARED, 'bytes', 'format', 'h', 'v', 's', 'pri', 'health', 'time'],
    '/_cat/indices',
  );
  const names = parameters.h === undefined || parameters.h === '' ? [...COLUMNS.keys()] : parameters.h.split(',');
  const columns = names.map((name) => {
    const value = COLUMNS.get(name);
    if (value === undefined)
      throw illegalArgument(
        `Unable to list the column [${name.slice(0, 100)}]; there are ${[...COLUMNS.keys()].join(', ')}`,
      );
    return { name, value };
  });
  const rows = indexes(asked).map((info) => {
    const made = asked.routes.config.writable?.definition(info.index);
    return columns.map(({ value }) => value(info, made));
  });
  const accepted = /json/i.test(request.headers.accept ?? '');
  if (parameters.format === 'json' || (parameters.format === undefined && accepted)) {
    return json(rows.map((row) => Object.fromEntries(row.map((value, i) => [names[i], value]))));
  }
  const table = parameters.v === undefined || parameters.v === 'false' ? rows : [names, ...rows];
  const widths = names.map((_, i) => Math.max(0, ...table.map((row) => row[i]!.length)));
  const lines = table.map(
    (row) =>
      `${row
        .map((value, i) => value.padEnd(widths[i]!))
        .join(' ')
        .trimEnd()}\n`,
  );
  return { pieces: lines.length === 0 ? [''] : lines, type: 'text/plain; charset=UTF-8' };
}

/** Exists and what it has: for `HEAD /index` and `GET /index`. */
function describe(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(
    asked.parameters,
    [...SHARED, 'allow_no_indices', 'flat_settings', 'include_defaults', 'features'],
    '/',
  );
  const found = indexes(asked).map((info): [string, object] => [
    info.index,
    {
      aliases: {},
      mappings: mappingsOf(info, asked),
      settings: settingsOf(info, asked),
    },
  ]);
  return json(Object.fromEntries(found));
}

function describeMapping(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked.parameters, [...SHARED, 'allow_no_indices'], '/_mapping');
  return json(Object.fromEntries(indexes(asked).map((info) => [info.index, { mappings: mappingsOf(info, asked) }])));
}

function describeSettings(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(
    asked.parameters,
    [...SHARED, 'allow_no_indices', 'flat_settings', 'include_defaults', 'name'],
    '/_settings',
  );
  return json(Object.fromEntries(indexes(asked).map((info) => [info.index, { settings: settingsOf(info, asked) }])));
}

function settingsOf({ index, generation }: RetrieverInfo, { routes }: ElasticsearchRequest): object {
  const definition = routes.config.writable?.definition(index);
  if (definition !== undefined) return settingsJson(definition);
  return { index: { number_of_shards: '1', number_of_replicas: '0', provided_name: index, uuid: generation } };
}

const COLUMN_MAPPINGS: Readonly<Record<ColumnType, string>> = {
  string: 'keyword',
  number: 'double',
  boolean: 'boolean',
  date: 'date',
};

/** The fields that can be searched (those with words, the columns, the vectors), or the mapping with which an index was made over HTTP. */
function mappingsOf(info: RetrieverInfo, { routes }: ElasticsearchRequest): object {
  const definition = routes.config.writable?.definition(info.index);
  if (definition !== undefined) {
    return { dynamic: definition.strict ? 'strict' : 'false', properties: definition.properties };
  }
  const { bm25, columns, dimension } = info;
  const properties = new Map<string, object>();
  for (const { name, type } of columns) properties.set(name, { type: COLUMN_MAPPINGS[type] });
  for (const field of bm25?.fields ?? []) {
    const column = columns.find(({ name }) => name === field);
    const more = column === undefined ? {} : { fields: { keyword: { type: COLUMN_MAPPINGS[column.type] } } };
    properties.set(field, { type: 'text', analyzer: bm25?.analyser, ...more });
  }
  if (dimension > 0 && !properties.has(VECTOR_FIELD)) {
    const vectors = { type: 'dense_vector', dims: dimension, index: true, similarity: similarityOf(info) };
    properties.set(VECTOR_FIELD, vectors);
  }
  return { properties: Object.fromEntries(properties) };
}

function json(value: unknown): ElasticsearchReply {
  return { pieces: [JSON.stringify(value)] };
}
