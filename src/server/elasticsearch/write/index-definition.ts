import { randomUUID } from 'node:crypto';
import {
  ANALYSERS,
  type AnalyserName,
  LEXICAL_FIELDS,
  type LexicalField,
} from '../../../engine/lexical/lexical-settings.ts';
import type { IndexDefinition } from '../../../index/document-store/index-files.ts';
import type { Failure } from '../../../index/document-store/operations.ts';
import { ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode, Members } from '../json-node.ts';
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
    } else {
      throw illegalArgument(
        `unknown setting [index.${key.slice(0, 100)}]: this server knows number_of_shards, number_of_replicas and refresh_interval`,
      );
    }
  }
  return settings;
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

type IndexMapping = Pick<IndexDefinition, 'fields' | 'analyser' | 'columns' | 'strict' | 'properties'>;

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
const MAX_COLUMNS = 1_000;

/**
 * Reads `mappings`. An index has the words of `title` and `text`, or of `contents` if the mapping names it, and a column for each
 * member that is mapped as a keyword, a number, a boolean or a date. Members that are not mapped are stored, but not searched.
 *
 * @throws ElasticsearchError mapper_parsing_exception for everything else.
 */
export function readMapping(mappings: Members | undefined): IndexMapping {
  const texts = new Map<string, AnalyserName>();
  const columns: IndexDefinition['columns'] = [];
  let properties: Record<string, unknown> = {};
  let strict = false;
  for (const [name, node] of mappings ?? []) {
    if (name === 'dynamic') strict = readDynamic(node);
    else if (name === 'properties') {
      for (const { path, type, members } of fieldsIn(node, '')) {
        if (type === 'text') texts.set(path, readAnalyser(path, members));
        else if (isIndexed(path, type, members)) {
          columns.push({ name: path, type: TYPES[type]!, integer: NUMBERS[type] === true });
        }
        if (columns.length > MAX_COLUMNS) throw refused(`A mapping has at most ${MAX_COLUMNS} fields`);
      }
      properties = jsonValue(node) as Record<string, unknown>;
    } else throw refused(`Root mapping definition has unsupported parameters:  [${name.slice(0, 100)}]`);
  }
  const fields: LexicalField[] = texts.has('contents') ? ['contents'] : ['title', 'text'];
  const other = [...texts.keys()].find((name) => !(fields as string[]).includes(name));
  if (other !== undefined) {
    throw refused(`The field [${other}] cannot be [text] beside [contents]: map [title] and [text], or [contents]`);
  }
  const analysers = new Set(texts.values());
  if (analysers.size > 1) {
    throw refused(`All text fields must have the same [analyzer], but there are [${[...analysers].join('], [')}]`);
  }
  const [analyser = DEFAULT_ANALYSER] = analysers;
  const added = analyser === DEFAULT_ANALYSER ? { type: 'text' } : { type: 'text', analyzer: analyser };
  for (const field of fields) if (!texts.has(field)) properties = { ...properties, [field]: added };
  return { fields, analyser, columns, strict, properties };
}

function readDynamic(node: JsonNode): boolean {
  const value = typeof node.value === 'number' ? '' : (node.scalar ?? '');
  if (value === 'false' || value === 'strict') return value === 'strict';
  throw refused(
    `[dynamic] can be [false] or [strict], but is [${value.slice(0, 100)}]: only mapped fields are searched`,
  );
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
    const isText = (LEXICAL_FIELDS as readonly string[]).includes(path);
    if (isText && type !== 'text') {
      throw refused(`The field [${shown}] must have the type [text], but has [${type?.slice(0, 100) ?? 'none'}]`);
    }
    if ((given === undefined || type === 'object') && members.has('properties')) {
      refuseOthers(path, 'object', members, ['type', 'properties']);
      yield* fieldsIn(members.get('properties')!, `${path}.`);
      continue;
    }
    if (type === 'text' && !isText) {
      throw refused(
        `The field [${shown}] cannot be [text]: only [title], [text] and [contents] can be; map it as [keyword], or leave it out`,
      );
    }
    if (type === undefined) throw refused(`No type specified for field [${shown}]`);
    if (type !== 'text' && !Object.hasOwn(TYPES, type)) {
      throw refused(
        `The type [${type.slice(0, 100)}] of the field [${shown}] is not supported; there are text, ${Object.keys(TYPES).join(', ')}`,
      );
    }
    yield { path, type, members };
  }
}

function readAnalyser(path: string, members: Members): AnalyserName {
  refuseOthers(path, 'text', members, ['type', 'analyzer', 'search_analyzer']);
  const analyser = knownAnalyser(path, members.get('analyzer')) ?? DEFAULT_ANALYSER;
  const ofSearches = knownAnalyser(path, members.get('search_analyzer')) ?? analyser;
  if (ofSearches === analyser) return analyser;
  throw refused(`[search_analyzer] of the field [${path.slice(0, 100)}] must be its [analyzer]`);
}

/** Whether a column is searched. One that is not indexed is only stored. */
function isIndexed(path: string, type: string, members: Members): boolean {
  refuseOthers(path, type, members, ['type', 'index', 'doc_values', 'store']);
  for (const name of ['index', 'doc_values', 'store']) {
    const value = members.get(name)?.value;
    if (value !== undefined && typeof value !== 'boolean')
      throw refused(`[${name}] of the field [${path.slice(0, 100)}] must be a boolean`);
  }
  return members.get('index')?.value !== false;
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
