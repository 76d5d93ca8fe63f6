import { illegalArgument } from '../elasticsearch-error.ts';
import type { JsonBody, JsonNode, ObjectNode } from '../json-nodes.ts';
import { booleanOf, integerOf, itemsOf, objectOf, textOf } from '../json-values.ts';
import { readParameters } from '../query/clause.ts';

/** How a field is highlighted. */
export interface HighlightOptions {
  readonly before: string;
  readonly after: string;
  /** Whether the text between the tags is escaped for HTML. */
  readonly escapes: boolean;
  /** Characters of a fragment, about; 0: whole sentences. */
  readonly fragmentSize: number;
  /** 0: the whole text as one fragment. */
  readonly fragments: number;
  /** Whether fragments are ordered by their scores, instead of their places. */
  readonly byScore: boolean;
  /** Whether only words that the query has for this field are highlighted, instead of those for any field. */
  readonly onlyOwnWords: boolean;
}

export interface HighlightField {
  /** A name, or a pattern with `*`. */
  readonly pattern: string;
  readonly options: HighlightOptions;
}

const DEFAULTS: HighlightOptions = {
  before: '<em>',
  after: '</em>',
  escapes: false,
  fragmentSize: 100,
  fragments: 5,
  byScore: false,
  onlyOwnWords: true,
};

/** A reply repeats a tag for each word, so a long one, or one that JSON has to escape, would make it larger than the longest string. */
const MAX_TAG_CHARACTERS = 100;

type Mutable<T> = { -readonly [Key in keyof T]: T[Key] };
type Reader = (options: Mutable<HighlightOptions>, body: JsonBody, node: JsonNode) => void;

const READERS: Readonly<Record<string, Reader>> = {
  pre_tags: (options, body, node) => {
    options.before = firstOf(body, node, '[pre_tags]');
  },
  post_tags: (options, body, node) => {
    options.after = firstOf(body, node, '[post_tags]');
  },
  encoder: (options, body, node) => {
    options.escapes = choice(body, node, 'encoder', ['default', 'html']) === 'html';
  },
  fragment_size: (options, body, node) => {
    options.fragmentSize = atLeast0(body, node, 'fragment_size');
  },
  number_of_fragments: (options, body, node) => {
    options.fragments = atLeast0(body, node, 'number_of_fragments');
  },
  order: (options, body, node) => {
    options.byScore = choice(body, node, 'order', ['none', 'score']) === 'score';
  },
  require_field_match: (options, body, node) => {
    options.onlyOwnWords = booleanOf(body, node, '[require_field_match]');
  },
  type: (_options, body, node) => void choice(body, node, 'type', ['unified']),
  boundary_scanner: (_options, body, node) => void choice(body, node, 'boundary_scanner', ['sentence']),
  no_match_size: (_options, body, node) => {
    if (integerOf(body, node, '[no_match_size]') !== 0) throw unsupported('no_match_size', 'expected 0');
  },
};

/** `highlight` of a body: `{"fields": {"text": {}}, "pre_tags": ["<b>"], …}`. Options of a field count before those of all fields. */
export function highlightOf(body: JsonBody, node: JsonNode): readonly HighlightField[] {
  const root = objectOf(body, node, '[highlight]');
  let fields: readonly (readonly [string, ObjectNode])[] = [];
  const shared = optionsOf(body, root, DEFAULTS, {
    fields: (value) => {
      const objects = itemsOf(value).map((item) => objectOf(body, item, '[fields] of [highlight]'));
      fields = objects.flatMap(({ members }) =>
        [...members].map(([name, options]) => [name, objectOf(body, options, `[${name.slice(0, 100)}]`)] as const),
      );
    },
  });
  return fields.map(([pattern, options]) => ({ pattern, options: optionsOf(body, options, shared, {}) }));
}

function optionsOf(
  body: JsonBody,
  node: ObjectNode,
  defaults: HighlightOptions,
  more: Readonly<Record<string, (value: JsonNode) => void>>,
): HighlightOptions {
  const options = { ...defaults };
  const readers = Object.entries(READERS).map(([name, read]): [string, (value: JsonNode) => void] => [
    name,
    (value) => read(options, body, value),
  ]);
  if (node.members.has('boost'))
    throw body.fault(node.members.get('boost')!, '[highlight] query does not support [boost]');
  readParameters({ body, name: 'highlight' }, node, { ...Object.fromEntries(readers), ...more });
  return options;
}

/** Several tags stand for the importance of words in another highlighter; here the first one is used for all. */
function firstOf(body: JsonBody, node: JsonNode, name: string): string {
  const [first] = itemsOf(node);
  const tag = first === undefined ? '' : textOf(body, first, name);
  // JSON writes six characters for each of these.
  if (/[\0-\x1f\ud800-\udfff]/u.test(tag))
    throw illegalArgument(`${name} of [highlight] has a control character or half a character`);
  if (tag.length <= MAX_TAG_CHARACTERS) return tag;
  throw illegalArgument(
    `${name} of [highlight] has ${tag.length} characters; the limit of this server is ${MAX_TAG_CHARACTERS}`,
  );
}

function atLeast0(body: JsonBody, node: JsonNode, name: string): number {
  const value = integerOf(body, node, `[${name}]`);
  if (value < 0) throw illegalArgument(`[${name}] of [highlight] must be at least 0, but is ${value}`);
  return value;
}

function choice(body: JsonBody, node: JsonNode, name: string, choices: readonly string[]): string {
  const given = textOf(body, node, `[${name}]`);
  if (choices.includes(given)) return given;
  throw unsupported(name, `it is [${given.slice(0, 100)}], expected ${choices.join(' or ')}`);
}

function unsupported(name: string, why: string): Error {
  return illegalArgument(`[${name}] of [highlight] is not supported with this value by this server: ${why}`);
}
