import type { ColumnType } from '../../engine/filter/column.ts';
import { locator } from '../../engine/lexical/analysis/analysers.ts';
import { ANALYSERS } from '../../engine/lexical/lexical-settings.ts';
import type { IndexDefinition } from '../../index/document-store/index-files.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import { onlyIndex } from './continued-searches.ts';
import { illegalArgument } from './elasticsearch-error.ts';
import {
  type ElasticsearchReply,
  type ElasticsearchRequest,
  type ElasticsearchRoute,
  jsonReply,
} from './elasticsearch-route.ts';
import { parseJson } from './json-node.ts';
import { indexesInPath } from './leased-indexes.ts';
import { readMembers, readText } from './query/clause.ts';
import { similarityOf } from './query/knn-rows.ts';
import { VECTOR_FIELD } from './query/queried-field.ts';
import { COMMON_PARAMETERS, refuseLongTexts, refuseUnknownParameters } from './search-request.ts';
import { settingsJson } from './write/index-definition.ts';

export const CLUSTER_ROUTES: readonly ElasticsearchRoute[] = [
  { method: 'GET', url: '/_cluster/health', handle: health },
  { method: 'GET', url: '/_cluster/health/:index', handle: health },
  { method: ['GET', 'POST'], url: '/_analyze', handle: analyze },
  { method: ['GET', 'POST'], url: '/:index/_analyze', handle: analyze },
  { method: 'GET', url: '/_cat/indices', handle: catIndices },
  { method: 'GET', url: '/_cat/indices/:index', handle: catIndices },
  // elasticsearch-py's `reindex` asks whether the target is a data stream.
  { method: 'GET', url: '/_data_stream/:index', handle: () => jsonReply({ data_streams: [] }) },
  { method: ['GET', 'HEAD'], url: '/:index', handle: describe },
  { method: 'GET', url: '/:index/_mapping', handle: describeMapping },
  { method: 'GET', url: '/:index/_settings', handle: describeSettings },
];

const PARAMETERS = [...COMMON_PARAMETERS, 'expand_wildcards', 'ignore_unavailable', 'local', 'master_timeout'];
const DESCRIBE_PARAMETERS = [...PARAMETERS, 'allow_no_indices', 'flat_settings', 'include_defaults'];

function indexes(asked: ElasticsearchRequest): readonly RetrieverInfo[] {
  return indexesInPath(asked).flatMap((name) => asked.routes.holder.slot(name).retriever?.info ?? []);
}

function health(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked, [
    ...PARAMETERS,
    'level',
    'timeout',
    'wait_for_active_shards',
    'wait_for_events',
    'wait_for_nodes',
    'wait_for_status',
  ]);
  const shards = indexes(asked).length;
  return jsonReply({
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

/** As in Elasticsearch. */
const MAX_TOKENS = 10_000;

/** The words of a text with their places, by the analyser of an index or another one. */
function analyze(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked, COMMON_PARAMETERS);
  const root = parseJson(asked.body);
  root.object('an analysis');
  const { text, analyzer, field } = readMembers(
    root,
    { text: (node, what) => node.items.map((item) => item.text(what)), analyzer: readText, field: readText },
    (name) =>
      illegalArgument(`[_analyze] does not support [${name.slice(0, 100)}] here; there are text, analyzer and field`),
  );
  if (text === undefined) throw illegalArgument('[_analyze] requires [text]');
  const info = asked.path.index === undefined ? undefined : onlyIndex(indexes(asked), '[_analyze]');
  if (field !== undefined && info?.bm25?.fields.includes(field) !== true) {
    throw illegalArgument(`[field] is [${field.slice(0, 100)}], which is not a text field of the index in the path`);
  }
  const wanted = analyzer ?? info?.bm25?.analyser ?? 'standard';
  const name = ANALYSERS.find((each) => each === wanted);
  if (name === undefined) {
    throw illegalArgument(
      `failed to find global analyzer [${wanted.slice(0, 100)}]; there are ${ANALYSERS.join(', ')}`,
    );
  }
  refuseLongTexts([text.join('\n')], asked.routes.config);
  let [position, offset] = [0, 0];
  const tokens = text.flatMap((each) => {
    // Words that the analyser leaves out count, too.
    const words = locator(name === 'whitespace' || name === 'cjk' ? name : 'standard')(each);
    const places = new Map(words.map(({ start }, i) => [start, position + i]));
    const found = locator(name)(each).map(({ term, start, end }) => ({
      token: term,
      start_offset: offset + start,
      end_offset: offset + end,
      type: /^\p{N}+$/u.test(term) ? '<NUM>' : '<ALPHANUM>',
      position: places.get(start),
    }));
    // Elasticsearch puts a gap between two texts.
    position += words.length + 100;
    offset += each.length + 1;
    return found;
  });
  if (tokens.length > MAX_TOKENS) {
    throw illegalArgument(
      `The text has ${tokens.length} tokens, but [_analyze] returns at most [${MAX_TOKENS}]. Shorten it`,
    );
  }
  return jsonReply({ tokens });
}

/** A value of an index. `made`: its definition if it was made over HTTP. */
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
  refuseUnknownParameters(asked, [...PARAMETERS, 'bytes', 'format', 'h', 'v', 's', 'pri', 'health', 'time']);
  const names = parameters.h === undefined || parameters.h === '' ? [...COLUMNS.keys()] : parameters.h.split(',');
  const columns = names.map((name) => {
    const column = COLUMNS.get(name);
    if (column !== undefined) return column;
    const known = [...COLUMNS.keys()].join(', ');
    throw illegalArgument(`Unable to list the column [${name.slice(0, 100)}]; there are ${known}`);
  });
  const rows = indexes(asked).map((info) => {
    const made = asked.routes.config.writable?.definition(info.index);
    return columns.map((column) => column(info, made));
  });
  const accepted = /json/i.test(request.headers.accept ?? '');
  if (parameters.format === 'json' || (parameters.format === undefined && accepted)) {
    return jsonReply(rows.map((row) => Object.fromEntries(row.map((value, i) => [names[i], value]))));
  }
  const table = parameters.v === undefined || parameters.v === 'false' ? rows : [names, ...rows];
  const widths = names.map((_, i) => Math.max(0, ...table.map((row) => row[i]!.length)));
  const lines = table.map((row) => row.map((value, i) => value.padEnd(widths[i]!)).join(' '));
  return { pieces: lines.map((line) => `${line.trimEnd()}\n`), type: 'text/plain; charset=UTF-8' };
}

/** Whether indexes exist, and what they have. */
function describe(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked, [...DESCRIBE_PARAMETERS, 'features']);
  return describedBy(asked, (info) => ({
    aliases: {},
    mappings: mappings(info, asked),
    settings: settings(info, asked),
  }));
}

function describeMapping(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked, [...PARAMETERS, 'allow_no_indices']);
  return describedBy(asked, (info) => ({ mappings: mappings(info, asked) }));
}

function describeSettings(asked: ElasticsearchRequest): ElasticsearchReply {
  refuseUnknownParameters(asked, [...DESCRIBE_PARAMETERS, 'name']);
  return describedBy(asked, (info) => ({ settings: settings(info, asked) }));
}

function describedBy(asked: ElasticsearchRequest, describeOne: (info: RetrieverInfo) => object): ElasticsearchReply {
  return jsonReply(Object.fromEntries(indexes(asked).map((info) => [info.index, describeOne(info)])));
}

function settings({ index, generation }: RetrieverInfo, { routes }: ElasticsearchRequest): object {
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
function mappings(info: RetrieverInfo, { routes }: ElasticsearchRequest): object {
  const definition = routes.config.writable?.definition(info.index);
  if (definition !== undefined) {
    return { dynamic: definition.strict ? 'strict' : 'false', properties: definition.properties };
  }
  const { bm25, columns, dimension } = info;
  const properties = new Map<string, object>();
  for (const { name, type } of columns) properties.set(name, { type: COLUMN_MAPPINGS[type] });
  for (const field of bm25?.fields ?? []) {
    const column = columns.find(({ name }) => name === field);
    const fields = column && { keyword: { type: COLUMN_MAPPINGS[column.type] } };
    properties.set(field, { type: 'text', analyzer: bm25?.analyser, fields });
  }
  if (dimension > 0 && !properties.has(VECTOR_FIELD)) {
    const vectors = { type: 'dense_vector', dims: dimension, index: true, similarity: similarityOf(info) };
    properties.set(VECTOR_FIELD, vectors);
  }
  return { properties: Object.fromEntries(properties) };
}
