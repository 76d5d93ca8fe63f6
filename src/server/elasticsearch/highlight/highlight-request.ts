import { illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode, Members } from '../json-node.ts';
import { type Read, readBoolean, readParameters } from '../query/clause.ts';

/** How a field is highlighted if the request does not say it. */
const DEFAULTS = {
  pre_tags: '<em>',
  post_tags: '</em>',
  /** `html`: the text between the tags is escaped. */
  encoder: 'default',
  /** Characters of a fragment, about; 0: whole sentences. */
  fragment_size: 100,
  /** 0: the whole text as one fragment. */
  number_of_fragments: 5,
  /** `score`: fragments are ordered by their scores, instead of their places. */
  order: 'none',
  /** Whether only words that the query has for this field are highlighted, instead of those for any field. */
  require_field_match: true,
};

export type HighlightOptions = typeof DEFAULTS;

export interface HighlightField {
  /** A name, or a pattern with `*`. */
  readonly pattern: string;
  readonly options: HighlightOptions;
}

/** A reply repeats a tag for each word, so a long one, or one that JSON has to escape, would make it larger than the longest string. */
const MAX_TAG_CHARACTERS = 100;

/** `highlight` of a body: `{"fields": {"text": {}}, "pre_tags": ["<b>"], …}`. Options of a field override the options of all fields. */
export function readHighlight(node: JsonNode): readonly HighlightField[] {
  refuseBoost(node.object('[highlight]'));
  const { fields = [], ...given } = readParameters('highlight', node, {
    ...READERS,
    fields: (value) => value.items.flatMap((item) => [...item.object('[fields] of [highlight]')]),
  });
  const shared = { ...DEFAULTS, ...given };
  return fields.map(([pattern, options]) => {
    refuseBoost(options.object(`[${pattern.slice(0, 100)}]`));
    return { pattern, options: { ...shared, ...readParameters('highlight', options, READERS) } };
  });
}

const READERS = {
  pre_tags: firstTag,
  post_tags: firstTag,
  encoder: choice('default', 'html'),
  fragment_size: atLeast0,
  number_of_fragments: atLeast0,
  order: choice('none', 'score'),
  require_field_match: readBoolean,
  type: choice('unified'),
  boundary_scanner: choice('sentence'),
  no_match_size(node: JsonNode, what: string): void {
    if (node.integer(what) !== 0) throw unsupported(what, 'expected 0');
  },
};

/** Refuses a boost: `readParameters` accepts one, but only queries have it. */
function refuseBoost(options: Members): void {
  const boost = options.get('boost');
  if (boost !== undefined) throw boost.fault('[highlight] query does not support [boost]');
}

/** Several tags stand for the importance of words in another highlighter; here the first one is used for all. */
function firstTag(node: JsonNode, what: string): string {
  const tag = node.items[0]?.text(what) ?? '';
  // JSON writes six characters for each of these.
  if (/[\0-\x1f\ud800-\udfff]/u.test(tag))
    throw illegalArgument(`${what} of [highlight] has a control character or half a character`);
  if (tag.length <= MAX_TAG_CHARACTERS) return tag;
  throw illegalArgument(
    `${what} of [highlight] has ${tag.length} characters; the limit of this server is ${MAX_TAG_CHARACTERS}`,
  );
}

function atLeast0(node: JsonNode, what: string): number {
  const value = node.integer(what);
  if (value < 0) throw illegalArgument(`${what} of [highlight] must be at least 0, but is ${value}`);
  return value;
}

function choice(...choices: readonly string[]): Read<string> {
  return (node, what) => {
    const given = node.text(what);
    if (choices.includes(given)) return given;
    throw unsupported(what, `it is [${given.slice(0, 100)}], expected ${choices.join(' or ')}`);
  };
}

function unsupported(what: string, why: string): Error {
  return illegalArgument(`${what} of [highlight] is not supported with this value by this server: ${why}`);
}
