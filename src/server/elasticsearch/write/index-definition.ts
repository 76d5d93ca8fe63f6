import { randomUUID } from 'node:crypto';
import { BM25_PROFILES } from '../../../engine/lexical/bm25.ts';
import { ANALYSERS, type AnalyserName } from '../../../engine/lexical/lexical-settings.ts';
import { MAX_DIMENSION } from '../../../index/document-store/check-document.ts';
import { type IndexDefinition, VECTOR_SIMILARITIES } from '../../../index/document-store/index-files.ts';
import type { Failure } from '../../../index/document-store/operations.ts';
import { ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import { type JsonNode, type Members, parseNumber } from '../json-node.ts';
import { TIME_UNITS } from '../time-value.ts';

/** What a folder, a metric label and a log line can have, too. Elasticsearch allows a few more characters. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

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
  return nameFailure(name) ?? newDefinition(name, readMapping(undefined), DEFAULT_SETTINGS);
}

/** @throws ElasticsearchError invalid_index_name_exception. */
export function checkIndexName(name: string): void {
  const failure = nameFailure(name);
  if (failure === undefined) return;
  const { status, ...cause } = failure;
  throw new ElasticsearchError(status, { ...cause, index_uuid: '_na_', index: name.slice(0, 100) });
}

function nameFailure(name: string): Failure | undefined {
  const problem = nameProblem(name);
  if (problem === undefined) return undefined;
  const reason = `Invalid index name [${name.slice(0, 100)}], ${problem}`;
  return { status: 400, type: 'invalid_index_name_exception', reason };
}

/** Why a new index cannot have a name, in Elasticsearch's words where it refuses it too; undefined if it can. */
function nameProblem(name: string): string | undefined {
  if (name === '') return 'must not be empty';
  if (name !== name.toLowerCase()) return 'must be lowercase';
  if (name === '.' || name === '..') return "must not be '.' or '..'";
  if (/^[_+-]/.test(name)) return "must not start with '_', '-', or '+'";
  const bad = /[\s"*\\<|,>/?#:]/.exec(name)?.[0];
  if (bad !== undefined) return `must not contain the character [${bad}]`;
  if (name.length > 64) return `has ${name.length} characters; at most 64 are allowed`;
  if (NAME.test(name)) return undefined;
  return 'must begin with a letter from a to z or a digit, and have only these, dots, dashes and underscores';
}

type Settings = IndexDefinition['settings'];

export const DEFAULT_SETTINGS: Settings = { shards: 1, replicas: 1, refreshMs: 1_000 };

/** Timers cannot wait longer. */
const MAX_INTERVAL_MS = 2 ** 31 - 1;

/**
 * Reads settings, as `number_of_shards`, `index.number_of_shards` or `{index: {number_of_shards}}`. Shards and replicas are only
 * remembered: the documents of an index are one shard.
 *
 * @param current what settings that are not given keep.
 * @param isNew false for an index that exists, whose shards cannot change.
 * @throws ElasticsearchError illegal_argument_exception.
 */
export function readSettings(members: Members | undefined, current: Settings, isNew: boolean): Settings {
  let settings = current;
  for (const [name, value] of flattened(members, '')) {
    const key = name.startsWith('index.') ? name.slice('index.'.length) : name;
    if (key === 'number_of_shards' && isNew) settings = { ...settings, shards: readCount(name, value, 1) };
    else if (key === 'number_of_replicas') settings = { ...settings, replicas: readCount(name, value, 0) };
    else if (key === 'refresh_interval') settings = { ...settings, ...readInterval(value) };
    else if (key === 'number_of_shards') {
      throw illegalArgument(`final index setting [index.${key}], not updateable`);
    } else if (!(isNew && key.startsWith('similarity.'))) {
      throw illegalArgument(
        `unknown setting [index.${key.slice(0, 100)}]: this server knows number_of_shards, number_of_replicas and refresh_interval, and for a new index similarity`,
      );
    }
  }
  return settings;
}

type Similarity = NonNullable<IndexDefinition['bm25']>;
export type Similarities = ReadonlyMap<string, Similarity>;

const { k1, b } = BM25_PROFILES.elasticsearch;

/** The similarities by name: Elasticsearch's own, and the ones that the settings of a new index define. @throws ElasticsearchError illegal_argument_exception. */
export function readSimilarities(members: Members | undefined): Similarities {
  const similarities = new Map<string, Similarity>([['BM25', { k1, b }]]);
  for (const [path, value] of flattened(members, '')) {
    const [, name, parameter] = /^(?:index\.)?similarity\.(.+?)(?:\.([^.]+))?$/.exec(path) ?? [];
    if (name === undefined) continue;
    const similarity = similarities.get(name) ?? { k1, b };
    similarities.set(name, similarity);
    const number = value.scalar === undefined ? Number.NaN : parseNumber(value.scalar);
    const isKept =
      parameter === 'type' ? value.value === 'BM25' : parameter === 'discount_overlaps' && value.scalar === 'true';
    if (parameter === 'k1' && number >= 0 && number <= 1_000) similarity.k1 = number;
    else if (parameter === 'b' && number >= 0 && number <= 1) similarity.b = number;
    else if (!isKept) {
      throw illegalArgument(
        `[${path.slice(0, 100)}] is [${value.scalar?.slice(0, 100) ?? value.token}]: a similarity here has the type BM25, k1 of at least 0 and b from 0 to 1`,
      );
    }
  }
  return similarities;
}

/** The settings as Elasticsearch shows them: every value is a text. */
export function settingsJson({ name, uuid, createdAt, settings }: IndexDefinition): object {
  const { shards, replicas, refreshInterval } = settings;
  return {
    index: {
      refresh_interval: refreshInterval,
      number_of_shards: String(shards),
      provided_name: name,
      creation_date: String(createdAt),
      number_of_replicas: String(replicas),
      uuid,
    },
  };
}

/** The values of nested objects by their paths, with dots in between. */
function flattened(members: Members | undefined, prefix: string): [string, JsonNode][] {
  return [...(members ?? [])].flatMap(([name, value]): [string, JsonNode][] =>
    value.members === undefined ? [[`${prefix}${name}`, value]] : flattened(value.members, `${prefix}${name}.`),
  );
}

function readCount(name: string, node: JsonNode, least: number): number {
  const { scalar: text = '' } = node;
  const value = /^\d{1,4}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= 1_024) return value;
  throw wrong(name, text, `a whole number from ${least} to 1024`);
}

function readInterval(node: JsonNode): Pick<Settings, 'refreshMs' | 'refreshInterval'> {
  // Null asks for the default.
  if (node.value === null) return { refreshMs: DEFAULT_SETTINGS.refreshMs };
  const { scalar: refreshInterval = '' } = node;
  if (refreshInterval === '-1') return { refreshMs: -1, refreshInterval };
  const [, number, unit] = /^(\d{1,9})(ms|s|m|h|d)$/.exec(refreshInterval) ?? [];
  const refreshMs = Number(number) * (TIME_UNITS.get(unit ?? '') ?? Number.NaN);
  if (refreshMs <= MAX_INTERVAL_MS) return { refreshMs, refreshInterval };
  throw wrong('refresh_interval', refreshInterval, '-1 or a time such as 30s, at most 24 days');
}

function wrong(name: string, text: string, expected: string): ElasticsearchError {
  return illegalArgument(
    `Failed to parse value [${text.slice(0, 100)}] for setting [${name.slice(0, 100)}]; expected ${expected}`,
  );
}

type IndexMapping = Pick<
  IndexDefinition,
  'fields' | 'analyser' | 'bm25' | 'columns' | 'vector' | 'strict' | 'properties'
>;

/** The types of numbers, and whether they are integers. */
const NUMBERS: Readonly<Record<string, boolean>> = {
  long: true,
  integer: true,
  short: true,
  byte: true,
  double: false,
  float: false,
  half_float: false,
};
const TYPES: Readonly<Record<string, IndexDefinition['columns'][number]['type']>> = {
  keyword: 'string',
  boolean: 'boolean',
  date: 'date',
  ...Object.fromEntries(Object.keys(NUMBERS).map((type) => [type, 'number' as const])),
};
const DEFAULT_ANALYSER: AnalyserName = 'standard';
/** As in Elasticsearch. */
const MAX_FIELDS = 1_000;

/** Types of fields without a column. All but an indexed `dense_vector` are stored and never searched. */
const STORED_TYPES = ['dense_vector', 'sparse_vector', 'rank_features', 'binary'];
/** Members of `mappings` without an effect, since a field that is not mapped is never searched. */
const IGNORED = ['_meta', 'date_detection', 'dynamic_date_formats', 'dynamic_templates', 'numeric_detection'];

/**
 * Reads `mappings`. An index has the words of the fields that are mapped as text, or of `title` and `text` if no other is, and a column
 * for each member that is mapped as a keyword, a number, a boolean or a date. Members that are not mapped are stored, but not searched.
 *
 * @param similarities names that fields may have as their similarity; undefined for an index that exists: any.
 * @throws ElasticsearchError mapper_parsing_exception for everything else.
 */
export function readMapping(mappings: Members | undefined, similarities?: Similarities): IndexMapping {
  const texts = new Map<string, { analyser: AnalyserName; similarity: string }>();
  const columns: IndexDefinition['columns'] = [];
  let vector: IndexDefinition['vector'];
  let properties: Record<string, unknown> = {};
  let strict = false;
  for (const [name, node] of mappings ?? []) {
    if (name === 'dynamic') strict = readDynamic(node);
    else if (name === 'properties') {
      const paths = new Set<string>();
      for (const { path, type, members } of fieldsIn(node, '')) {
        if (paths.has(path)) throw refused(`The field [${path.slice(0, 100)}] is defined twice`);
        paths.add(path);
        if (type === 'dense_vector') {
          const read = readVector(path, members);
          if (read !== undefined && vector !== undefined) {
            throw refused(
              `An index searches one field of type [dense_vector], which is [${vector.field.slice(0, 100)}]: set [index] of the field [${path.slice(0, 100)}] to false`,
            );
          }
          vector ??= read;
        }
        if (STORED_TYPES.includes(type)) continue;
        if (type !== 'text') {
          if (isIndexed(path, type, members)) {
            columns.push({ name: path, type: TYPES[type]!, integer: NUMBERS[type] === true });
          }
        } else if (isSearchedText(path, members)) {
          texts.set(path, {
            analyser: readAnalyser(path, members),
            similarity: readSimilarity(path, members, similarities),
          });
        }
        if (columns.length + texts.size > MAX_FIELDS) throw refused(`A mapping has at most ${MAX_FIELDS} fields`);
      }
      properties = jsonValue(node) as Record<string, unknown>;
    } else if (!IGNORED.includes(name)) {
      throw refused(`Root mapping definition has unsupported parameters:  [${name.slice(0, 100)}]`);
    }
  }
  const analyser =
    onlyOne(
      'analyzer',
      Array.from(texts.values(), (field) => field.analyser),
    ) ?? DEFAULT_ANALYSER;
  const similarity =
    onlyOne(
      'similarity',
      Array.from(texts.values(), (field) => field.similarity),
    ) ?? 'default';
  const isUsual = [...texts.keys()].every((name) => name === 'title' || name === 'text');
  const added = analyser === DEFAULT_ANALYSER ? { type: 'text' } : { type: 'text', analyzer: analyser };
  for (const field of isUsual ? ['title', 'text'] : []) {
    if (texts.has(field) || Object.hasOwn(properties, field)) continue;
    texts.set(field, { analyser, similarity });
    properties = { ...properties, [field]: added };
  }
  if (texts.size === 0) throw refused('At least one field must be searched as [text]');
  return {
    fields: [...texts.keys()],
    analyser,
    bm25: similarities?.get(similarity),
    columns,
    vector,
    strict,
    properties,
  };
}

/** What all text fields have, because an index has one analyser and one similarity; undefined without text fields. */
function onlyOne<Value extends string>(parameter: string, values: readonly Value[]): Value | undefined {
  const different = new Set(values);
  if (different.size <= 1) return values[0];
  throw refused(`All text fields must have the same [${parameter}], but there are [${[...different].join('], [')}]`);
}

function readDynamic(node: JsonNode): boolean {
  const { scalar: value = '' } = node;
  if (typeof node.value !== 'number' && ['true', 'false', 'strict'].includes(value)) return value === 'strict';
  throw refused(`[dynamic] can be [true], [false] or [strict], but is [${value.slice(0, 100)}]`);
}

/** The fields of `properties`, those within objects included: `path` has their names with dots in between. Their types are known. */
function* fieldsIn(properties: JsonNode, prefix: string): Generator<{ path: string; type: string; members: Members }> {
  const parent = prefix.slice(0, -1);
  const what = parent === '' ? '[properties]' : `[properties] of [${parent.slice(0, 100)}]`;
  if (properties.members === undefined) throw refused(`${what} must be an object`);
  for (const [name, { members }] of properties.members) {
    const path = `${prefix}${name}`;
    const shown = path.slice(0, 100);
    if (name === '' || path.startsWith('_')) throw refused(`a field cannot have the name [${shown}]`);
    if (members === undefined) throw refused(`Expected map for property [fields] on field [${shown}]`);
    const given = members.get('type');
    const type = typeof given?.value === 'string' ? given.value : undefined;
    if (['text', 'contents'].includes(path) && type !== 'text') {
      throw refused(`The field [${shown}] must have the type [text], but has [${type?.slice(0, 100) ?? 'none'}]`);
    }
    if ((given === undefined || type === 'object') && members.has('properties')) {
      refuseOthers(path, 'object', members, ['type', 'properties']);
      yield* fieldsIn(members.get('properties')!, `${path}.`);
      continue;
    }
    if (type === undefined) throw refused(`No type specified for field [${shown}]`);
    if (type !== 'text' && !Object.hasOwn(TYPES, type) && !STORED_TYPES.includes(type)) {
      throw refused(
        `The type [${type.slice(0, 100)}] of the field [${shown}] is not supported; there are ${['text', ...Object.keys(TYPES), ...STORED_TYPES].join(', ')}`,
      );
    }
    yield { path, type, members };
  }
}

const TEXT_PARAMETERS = ['type', 'analyzer', 'search_analyzer', 'similarity', 'index', 'norms', 'store'];

/** Whether the words of a text field are searched. One that is not indexed is only stored. */
function isSearchedText(path: string, members: Members): boolean {
  refuseOthers(path, 'text', members, TEXT_PARAMETERS);
  const { norms = true } = readFlags(path, members, ['norms', 'store']);
  if (!norms)
    throw refused(`[norms] of the field [${path.slice(0, 100)}] must be true: scores depend on the length of texts`);
  return readFlags(path, members, ['index'])['index'] ?? true;
}

function readSimilarity(path: string, members: Members, similarities: Similarities | undefined): string {
  const given = members.get('similarity');
  const name = given === undefined ? 'default' : (given.scalar ?? given.token);
  if (name === 'default' || similarities?.has(name) !== false) return name;
  const known = [...(similarities ?? []).keys()].join('], [');
  throw refused(
    `Unknown Similarity type [${name.slice(0, 100)}] for field [${path.slice(0, 100)}]; there are [${known}]`,
  );
}

function readAnalyser(path: string, members: Members): AnalyserName {
  const analyser = knownAnalyser(path, members.get('analyzer')) ?? DEFAULT_ANALYSER;
  const ofSearches = knownAnalyser(path, members.get('search_analyzer')) ?? analyser;
  if (ofSearches === analyser) return analyser;
  throw refused(`[search_analyzer] of the field [${path.slice(0, 100)}] must be its [analyzer]`);
}

/** Whether a column is searched. One that is not indexed is only stored. */
function isIndexed(path: string, type: string, members: Members): boolean {
  refuseOthers(path, type, members, ['type', 'index', 'doc_values', 'store']);
  return readFlags(path, members, ['index', 'doc_values', 'store'])['index'] ?? true;
}

/** How the vectors of a field are searched; undefined if they are only stored. */
function readVector(path: string, members: Members): IndexDefinition['vector'] {
  const known = ['type', 'dims', 'element_type', 'index', 'index_options', 'similarity'];
  refuseOthers(path, 'dense_vector', members, known);
  const [index, given] = [readFlags(path, members, ['index'])['index'] ?? true, members.get('similarity')];
  const shown = path.slice(0, 100);
  const elements = members.get('element_type')?.value ?? 'float';
  if (!index) return undefined;
  if (elements !== 'float') throw refused(`[element_type] of the field [${shown}] must be [float] if it is indexed`);
  const similarity = VECTOR_SIMILARITIES.find((name) => name === (given?.value ?? VECTOR_SIMILARITIES[0]));
  if (similarity === undefined) {
    throw refused(`Unknown [similarity] of the field [${shown}]; there are [${VECTOR_SIMILARITIES.join('], [')}]`);
  }
  const dims = members.get('dims');
  if ((dims?.value ?? null) === null) return { field: path, similarity };
  const dimension = dims?.scalar === undefined ? Number.NaN : Number(dims.scalar);
  if (Number.isInteger(dimension) && dimension >= 1 && dimension <= MAX_DIMENSION)
    return { field: path, similarity, dimension };
  throw refused(
    `The number of dimensions should be in the range [1, ${MAX_DIMENSION}] but was [${dims?.scalar?.slice(0, 100) ?? dims?.token}] for the field [${shown}]`,
  );
}

function readFlags(path: string, members: Members, names: readonly string[]): Readonly<Record<string, boolean>> {
  const flags: Record<string, boolean> = {};
  for (const name of names) {
    const value = members.get(name)?.value;
    if (value === undefined) continue;
    if (typeof value !== 'boolean') throw refused(`[${name}] of the field [${path.slice(0, 100)}] must be a boolean`);
    flags[name] = value;
  }
  return flags;
}

function knownAnalyser(path: string, node: JsonNode | undefined): AnalyserName | undefined {
  if (node === undefined) return undefined;
  const name = typeof node.value === 'string' ? node.value : '';
  const known = ANALYSERS.find((analyser) => analyser === name);
  if (known !== undefined) return known;
  throw refused(
    `analyzer [${name.slice(0, 100)}] has not been configured in mappings for the field [${path.slice(0, 100)}]; there are ${ANALYSERS.join(', ')}`,
  );
}

function refuseOthers(path: string, type: string, members: Members, known: readonly string[]): void {
  const other = [...members.keys()].find((name) => !known.includes(name));
  if (other === undefined) return;
  throw refused(
    `unknown parameter [${other.slice(0, 100)}] on mapper [${path.slice(0, 100)}] of type [${type}]; there are ${known.join(', ')}`,
  );
}

/** The value as JSON.parse returns it. */
function jsonValue({ value }: JsonNode): unknown {
  if (value instanceof Map) return Object.fromEntries([...value].map(([name, member]) => [name, jsonValue(member)]));
  return Array.isArray(value) ? value.map(jsonValue) : value;
}

function refused(why: string): ElasticsearchError {
  const root = { type: 'mapper_parsing_exception', reason: why };
  const reason = `Failed to parse mapping: ${why}`;
  return new ElasticsearchError(400, { ...root, reason, caused_by: root }, { ...root, reason });
}
