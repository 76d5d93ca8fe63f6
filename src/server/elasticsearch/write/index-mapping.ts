import {
  ANALYSERS,
  type AnalyserName,
  LEXICAL_FIELDS,
  type LexicalField,
} from '../../../engine/lexical/lexical-settings.ts';
import type { IndexDefinition } from '../../../index/document-store/index-definition.ts';
import { ElasticsearchError } from '../elasticsearch-error.ts';
import type { JsonNode, ObjectNode } from '../json-nodes.ts';

/** The part of a definition that a mapping decides. */
export type IndexMapping = Pick<IndexDefinition, 'fields' | 'analyser' | 'columns' | 'strict' | 'properties'>;

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
export function readMapping(mappings: ObjectNode | undefined): IndexMapping {
  const draft = new MappingDraft();
  for (const [name, node] of mappings?.members ?? []) {
    if (name === 'properties') draft.readProperties(node, '');
    else if (name === 'dynamic') draft.readDynamic(node);
    else throw refused(`Root mapping definition has unsupported parameters:  [${name.slice(0, 100)}]`);
  }
  return draft.mapping();
}

class MappingDraft {
  readonly #texts = new Map<string, AnalyserName>();
  readonly #columns: IndexDefinition['columns'] = [];
  #properties: Record<string, unknown> = {};
  #strict = false;

  readDynamic(node: JsonNode): void {
    const value = node.type === 'string' ? node.value : node.type === 'boolean' ? String(node.value) : '';
    if (value !== 'false' && value !== 'strict') {
      throw refused(
        `[dynamic] can be [false] or [strict], but is [${value.slice(0, 100)}]: only mapped fields are searched`,
      );
    }
    this.#strict = value === 'strict';
  }

  readProperties(node: JsonNode, prefix: string): void {
    const parent = prefix.slice(0, -1);
    const what = parent === '' ? '[properties]' : `[properties] of [${parent.slice(0, 100)}]`;
    if (node.type !== 'object') throw refused(`${what} must be an object`);
    if (prefix === '') this.#properties = plain(node) as Record<string, unknown>;
    for (const [name, field] of node.members) {
      const path = `${prefix}${name}`;
      if (name === '' || path.startsWith('_')) throw refused(`a field cannot have the name [${path.slice(0, 100)}]`);
      if (field.type !== 'object') throw refused(`Expected map for property [fields] on field [${path.slice(0, 100)}]`);
      this.#readField(path, field);
    }
  }

  #readField(path: string, { members }: ObjectNode): void {
    const given = members.get('type');
    const type = given?.type === 'string' ? given.value : undefined;
    if (isTextField(path) && type !== 'text') {
      throw refused(
        `The field [${path.slice(0, 100)}] must have the type [text], but has [${type?.slice(0, 100) ?? 'none'}]`,
      );
    }
    if ((given === undefined || type === 'object') && members.has('properties')) {
      refuseOthers(path, 'object', members, ['type', 'properties']);
      this.readProperties(members.get('properties')!, `${path}.`);
    } else if (type === 'text') this.#readText(path, members);
    else if (type !== undefined && Object.hasOwn(TYPES, type)) this.#readColumn(path, type, members);
    else if (type === undefined) throw refused(`No type specified for field [${path.slice(0, 100)}]`);
    else {
      throw refused(
        `The type [${type.slice(0, 100)}] of the field [${path.slice(0, 100)}] is not supported; there are text, ${Object.keys(TYPES).join(', ')}`,
      );
    }
  }

  #readText(path: string, members: ObjectNode['members']): void {
    if (!isTextField(path)) {
      throw refused(
        `The field [${path.slice(0, 100)}] cannot be [text]: only [title], [text] and [contents] can be; map it as [keyword], or leave it out`,
      );
    }
    refuseOthers(path, 'text', members, ['type', 'analyzer', 'search_analyzer']);
    const analyser = analyserOf(path, members.get('analyzer')) ?? DEFAULT_ANALYSER;
    const ofSearches = analyserOf(path, members.get('search_analyzer')) ?? analyser;
    if (ofSearches !== analyser)
      throw refused(`[search_analyzer] of the field [${path.slice(0, 100)}] must be its [analyzer]`);
    this.#texts.set(path, analyser);
  }

  #readColumn(path: string, type: string, members: ObjectNode['members']): void {
    refuseOthers(path, type, members, ['type', 'index', 'doc_values', 'store']);
    for (const name of ['index', 'doc_values', 'store']) {
      const value = members.get(name);
      if (value !== undefined && value.type !== 'boolean')
        throw refused(`[${name}] of the field [${path.slice(0, 100)}] must be a boolean`);
    }
    const index = members.get('index');
    // A field that is not indexed is only stored.
    if (index?.type === 'boolean' && !index.value) return;
    this.#columns.push({ name: path, type: TYPES[type]!, integer: NUMBERS[type] === true });
    if (this.#columns.length > MAX_COLUMNS) throw refused(`A mapping has at most ${MAX_COLUMNS} fields`);
  }

  mapping(): IndexMapping {
    const fields: LexicalField[] = this.#texts.has('contents') ? ['contents'] : ['title', 'text'];
    const other = [...this.#texts.keys()].find((name) => !(fields as string[]).includes(name));
    if (other !== undefined) {
      throw refused(`The field [${other}] cannot be [text] beside [contents]: map [title] and [text], or [contents]`);
    }
    const analysers = new Set(this.#texts.values());
    if (analysers.size > 1) {
      throw refused(`All text fields must have the same [analyzer], but there are [${[...analysers].join('], [')}]`);
    }
    const [analyser = DEFAULT_ANALYSER] = analysers;
    const added = fields.filter((field) => !this.#texts.has(field));
    const ofAdded = analyser === DEFAULT_ANALYSER ? { type: 'text' } : { type: 'text', analyzer: analyser };
    const properties = { ...this.#properties, ...Object.fromEntries(added.map((field) => [field, ofAdded])) };
    return { fields, analyser, columns: this.#columns, strict: this.#strict, properties };
  }
}

function isTextField(path: string): boolean {
  return (LEXICAL_FIELDS as readonly string[]).includes(path);
}

function analyserOf(path: string, node: JsonNode | undefined): AnalyserName | undefined {
  if (node === undefined) return undefined;
  const name = node.type === 'string' ? node.value : '';
  const known = ANALYSERS.find((analyser) => analyser === name);
  if (known !== undefined) return known;
  throw refused(
    `analyzer [${name.slice(0, 100)}] has not been configured in mappings for the field [${path.slice(0, 100)}]; there are ${ANALYSERS.join(', ')}`,
  );
}

function refuseOthers(path: string, type: string, members: ObjectNode['members'], known: readonly string[]): void {
  const other = [...members.keys()].find((name) => !known.includes(name));
  if (other === undefined) return;
  throw refused(
    `unknown parameter [${other.slice(0, 100)}] on mapper [${path.slice(0, 100)}] of type [${type}]; there are ${known.join(', ')}`,
  );
}

/** The JSON value of a node. */
function plain(node: JsonNode): unknown {
  if (node.type === 'object') return Object.fromEntries([...node.members].map(([name, value]) => [name, plain(value)]));
  if (node.type === 'array') return node.items.map(plain);
  return node.type === 'null' ? null : node.value;
}

function refused(why: string): ElasticsearchError {
  const root = { type: 'mapper_parsing_exception', reason: why };
  const reason = `Failed to parse mapping: ${why}`;
  return new ElasticsearchError(400, { ...root, reason, caused_by: root }, { ...root, reason });
}
