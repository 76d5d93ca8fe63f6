import type { BoundName } from '../../../engine/filter/filter.ts';
import { contentException, ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode } from '../json-node.ts';
import {
  type Clause,
  ignore,
  negativeBoost,
  onlyField,
  onlyNeutral,
  type Read,
  readBoolean,
  readInteger,
  readNumber,
  readParameters,
  readText,
  readValue,
} from './clause.ts';
import type { BoostedKnn, DslQuery, DslValue, FieldPattern, TextSearch } from './dsl-query.ts';

const PARSERS: ReadonlyMap<string, (clause: Clause) => DslQuery> = new Map([
  ['match', parseMatch],
  ['multi_match', parseMultiMatch],
  ['term', parseTerm],
  ['terms', parseTerms],
  ['range', parseRange],
  ['knn', parseKnn],
  ['ids', parseIds],
  ['exists', parseExists],
  ['bool', parseBool],
  ['dis_max', parseDisMax],
  ['constant_score', parseConstantScore],
  ['match_all', parseAllOrNone('match-all')],
  ['match_none', parseAllOrNone('match-none')],
]);

/** Queries that need the places of words in a passage, which the index does not have. */
const NEED_POSITIONS = ['match_phrase', 'match_phrase_prefix', 'intervals', 'span_near', 'span_term', 'span_or'];

/** Queries within queries. Elasticsearch allows 30; some of them are two levels in the engine, which allows 32. */
const MAX_DEPTH = 28;

/** Parses a query such as `{"match": {"text": "words"}}`. @throws ElasticsearchError */
export function parseQuery(node: JsonNode): DslQuery {
  return parse(node, 1);
}

function parse(node: JsonNode, depth: number): DslQuery {
  if (depth > MAX_DEPTH)
    throw illegalArgument(`The nested depth of the query exceeds the maximum of this server, ${MAX_DEPTH}`);
  if (node.members === undefined) throw node.fault('[_na] query malformed, must start with start_object');
  const [first, second] = node.members;
  if (first === undefined) {
    const { line, col } = node.location;
    throw illegalArgument(`query malformed, empty clause found at [${line}:${col}]`);
  }
  const [name, value] = first;
  if (value.members === undefined)
    throw value.fault(`[${name.slice(0, 100)}] query malformed, no start_object after query name`);
  const parser = PARSERS.get(name);
  if (parser === undefined) throw unknownQuery(name, value);
  const query = parser({ name, node: value, parse: (inner) => parse(inner, depth + 1) });
  if (second !== undefined) {
    const found = second[1].token;
    throw second[1].fault(`[${name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME] (${found})`);
  }
  return query;
}

function unknownQuery(name: string, value: JsonNode): ElasticsearchError {
  const { line, col } = value.location;
  const shown = name.slice(0, 100);
  const why = NEED_POSITIONS.includes(name)
    ? ': this server has no positions of words, so it cannot search phrases'
    : '';
  return value.fault(`unknown query [${shown}]${why}`, {
    caused_by: { type: 'named_object_not_found_exception', reason: `[${line}:${col}] unknown field [${shown}]` },
  });
}

/** `match`: `{"text": "words"}` or `{"text": {"query": "words", …}}`. */
function parseMatch(clause: Clause): DslQuery {
  const { name, node } = clause;
  const { field, value } = onlyField(clause);
  const readers = textReaders(name);
  if (value.members === undefined) {
    const query = readers.query(value);
    return { type: 'match', field, boost: 1, ...textSearch(name, node, { query }) };
  }
  const given = readParameters(name, value, readers);
  return { type: 'match', field, boost: given.boost, ...textSearch(name, value, given) };
}

/** Types of `multi_match` that can be answered, and their default tie breakers. */
const TIE_BREAKERS: ReadonlyMap<string, number> = new Map([
  ['best_fields', 0],
  ['most_fields', 1],
]);
const OTHER_TYPES = ['cross_fields', 'phrase', 'phrase_prefix', 'bool_prefix'];

/** `multi_match`. Without `fields` it searches all fields. */
function parseMultiMatch({ name, node }: Clause): DslQuery {
  const given = readParameters(name, node, {
    ...textReaders(name),
    fields: (value: JsonNode) => value.items.map((item) => fieldPattern(item.text('[fields]'))),
    type: tieBreakerOfType,
    tie_breaker: readNumber,
    slop: onlyNeutral(name, (value, what) => value.number(what) === 0),
  });
  return {
    type: 'multi-match',
    fields: given.fields?.length ? given.fields : [{ pattern: '*', boost: 1 }],
    tieBreaker: given.tie_breaker ?? given.type ?? 0,
    boost: given.boost,
    ...textSearch(name, node, given),
  };
}

function tieBreakerOfType(value: JsonNode, what: string): number {
  const type = value.text(what).toLowerCase();
  const tieBreaker = TIE_BREAKERS.get(type);
  if (tieBreaker !== undefined) return tieBreaker;
  if (OTHER_TYPES.includes(type)) {
    throw illegalArgument(
      `[multi_match] type [${type}] is not supported by this server. Use ${[...TIE_BREAKERS.keys()].join(' or ')}.`,
    );
  }
  const reason = `failed to parse [multi_match] query type [${type.slice(0, 100)}]. unknown type.`;
  throw new ElasticsearchError(400, { type: 'parse_exception', reason });
}

/** `title^2`: the field and its boost. */
function fieldPattern(text: string): FieldPattern {
  const at = text.indexOf('^');
  if (at === -1) return { pattern: text, boost: 1 };
  const boost = Number(text.slice(at + 1));
  if (boost < 0) throw negativeBoost(boost);
  if (text.slice(at + 1).trim() === '' || !Number.isFinite(Math.fround(boost))) {
    throw illegalArgument(`For input string: "${text.slice(at + 1, at + 101)}"`);
  }
  return { pattern: text.slice(0, at), boost };
}

/** The parameters that `match` and `multi_match` share. */
function textReaders(query: string) {
  return {
    query: (node: JsonNode) => node.text(`the text of [${query}]`),
    operator: choice(query, ['or', 'and']),
    minimum_should_match: readText,
    zero_terms_query: choice(query, ['none', 'all']),
    analyzer: onlyNeutral(query, () => false),
    fuzziness(node: JsonNode, what: string) {
      if (node.scalar === '0') return;
      throw node.fault(
        `[${query}] ${what} is [${node.scalar?.slice(0, 100) ?? node.token}], but this server finds whole words only: send 0 (Haystack: fuzziness="0"), or leave it out`,
      );
    },
    // Without fuzziness, these change nothing.
    prefix_length: ignore,
    max_expansions: ignore,
    fuzzy_rewrite: ignore,
    fuzzy_transpositions: readBoolean,
    lenient: readBoolean,
    auto_generate_synonyms_phrase_query: readBoolean,
  };
}

function textSearch(
  query: string,
  node: JsonNode,
  given: {
    readonly query?: string;
    readonly operator?: 'or' | 'and';
    readonly minimum_should_match?: string;
    readonly zero_terms_query?: 'none' | 'all';
  },
): TextSearch {
  const { query: text, operator = 'or', minimum_should_match, zero_terms_query = 'none' } = given;
  if (text === undefined) throw node.fault(`No text specified for ${query} query`);
  return { text, operator, minimumShouldMatch: minimum_should_match, zeroTerms: zero_terms_query };
}

function choice<Choice extends string>(query: string, choices: readonly Choice[]): Read<Choice> {
  return (node, what) => {
    const given = node.text(what).toLowerCase();
    const found = choices.find((each) => each === given);
    if (found !== undefined) return found;
    throw illegalArgument(`[${query}] ${what} is [${given.slice(0, 100)}]; expected ${choices.join(' or ')}`);
  };
}

/** `term`: `{"text": "word"}` or `{"text": {"value": "word", …}}`. The word is not analysed. */
function parseTerm(clause: Clause): DslQuery {
  const { name } = clause;
  const { field, value } = onlyField(clause);
  if (Array.isArray(value.value)) throw value.fault(`[${name}] query does not support array of values`);
  if (value.members === undefined) return { type: 'term', field, term: readValue(value, `[${name}]`), boost: 1 };
  const { boost, case_insensitive, ...given } = readParameters(name, value, {
    value: readValue,
    term: (node) => readValue(node, '[value]'),
    case_insensitive: onlyNeutral(name, (node, what) => !node.boolean(what)),
  });
  const term = Object.values(given).at(-1);
  if (term === undefined) throw value.fault(`[${name}] query has no [value]`);
  return { type: 'term', field, term, boost };
}

/** `terms`: `{"text": ["a", "b"]}`. */
function parseTerms({ name, node }: Clause): DslQuery {
  const [entry, more] = [...(node.members ?? [])].filter(([parameter]) => parameter !== 'boost');
  if (entry === undefined) throw node.fault(`[${name}] query requires a field name, followed by array of terms`);
  const [field, value] = entry;
  if (more !== undefined) throw more[1].fault(`[${name}] query does not support multiple fields`);
  if (!Array.isArray(value.value)) {
    throw value.fault(`[${name}] query does not support [${field.slice(0, 100)}] as ${value.token}; expected an array`);
  }
  const { boost, [field]: terms } = readParameters(name, node, {
    [field]: (list) => list.items.map((item) => readValue(item, `a value of [${name}]`)),
  });
  return { type: 'terms', field, terms: terms as readonly DslValue[], boost };
}

const RELATIONS = ['intersects', 'contains', 'within'];
const UTC = ['UTC', 'Z', 'GMT', '+00:00', '+0000'];
const OPPOSITE: Readonly<Record<BoundName, BoundName>> = { gt: 'gte', gte: 'gt', lt: 'lte', lte: 'lt' };

/** `range`: `{"year": {"gte": 1990, "lt": 2000}}`. Of `gt` and `gte`, or `lt` and `lte`, the last one counts. */
function parseRange(clause: Clause): DslQuery {
  const { name } = clause;
  if (clause.node.members?.size === 0) throw illegalArgument('field name is null or empty');
  const { field, value } = onlyField(clause);
  if (value.members === undefined) {
    throw value.fault(
      `[${name}] query does not support [${field.slice(0, 100)}] as ${value.token}; expected an object`,
    );
  }
  const { boost, format, relation, time_zone, ...given } = readParameters(name, value, {
    gt: readValue,
    gte: readValue,
    lt: readValue,
    lte: readValue,
    format: readText,
    relation: onlyNeutral(name, (node, what) => RELATIONS.includes(node.text(what).toLowerCase())),
    time_zone: onlyNeutral(name, (node, what) => UTC.includes(node.text(what))),
  });
  const bounds: { [Name in BoundName]?: DslValue } = {};
  for (const [bound, limit] of Object.entries(given) as [BoundName, DslValue][]) {
    delete bounds[OPPOSITE[bound]];
    bounds[bound] = limit;
  }
  return { type: 'range', field, bounds, format, boost };
}

/** `ids`: `{"values": ["1", "2"]}`. */
function parseIds({ name, node }: Clause): DslQuery {
  const { boost, values } = readParameters(name, node, {
    values(list) {
      if (!Array.isArray(list.value)) throw list.fault(`[${name}] [values] must be an array, but is ${list.token}`);
      return list.value.map((item) => item.text(`an id of [${name}]`));
    },
  });
  if (values === undefined) throw node.fault(`[${name}] query requires [values]`);
  return { type: 'ids', ids: values, boost };
}

/** `exists`: `{"field": "title"}`. */
function parseExists({ name, node }: Clause): DslQuery {
  const { boost, field } = readParameters(name, node, { field: readText });
  if (field === undefined || field === '') throw node.fault(`[${name}] must be provided with a [field]`);
  return { type: 'exists', field, boost };
}

/** Elasticsearch's limit. The search is exact, so `num_candidates` changes nothing here. */
const MAX_CANDIDATES = 10_000;

/** `knn` beside `query`, one or several. */
export function parseKnnSearches(node: JsonNode, parse: (node: JsonNode) => DslQuery): readonly BoostedKnn[] {
  return node.items.map((item) => {
    if (item.members === undefined) throw item.fault(`[knn] malformed, expected START_OBJECT but found ${item.token}`);
    return parseKnn({ node: item, parse });
  });
}

/** `knn` as a query: `{"field": "vector", "query_vector": […], "k": 10}`. */
function parseKnn({ node, parse }: Pick<Clause, 'node' | 'parse'>): BoostedKnn {
  const given = readParameters('knn', node, {
    field: readText,
    query_vector: readVector,
    query_vector_builder(value): never {
      throw value.fault('[knn] [query_vector_builder] is not supported by this server: send [query_vector]');
    },
    k: readInteger,
    num_candidates: readInteger,
    similarity: readNumber,
    filter: (value) => value.items.map(parse),
  });
  const { field, query_vector: vector, k, num_candidates: candidates, similarity, filter = [], boost } = given;
  if (field === undefined) throw illegalArgument('Required [field]');
  if (vector === undefined) throw illegalArgument('either [query_vector_builder] or [query_vector] must be provided');
  if (k !== undefined && k < 1) throw illegalArgument('[k] must be greater than 0');
  if (k !== undefined && k > MAX_CANDIDATES) throw illegalArgument(`[k] cannot exceed [${MAX_CANDIDATES}]`);
  if (candidates !== undefined) {
    if (candidates < 1) throw illegalArgument('[num_candidates] must be greater than 0');
    if (k !== undefined && candidates < k) throw illegalArgument('[num_candidates] cannot be less than [k]');
    if (candidates > MAX_CANDIDATES) throw illegalArgument(`[num_candidates] cannot exceed [${MAX_CANDIDATES}]`);
  }
  return { type: 'knn', field, vector, k, similarity, filter, boost };
}

function readVector(node: JsonNode): readonly number[] {
  if (!Array.isArray(node.value))
    throw node.fault(`[knn] [query_vector] must be an array of numbers, but is ${node.token}`);
  return node.value.map((item) => {
    const value = item.number('a value of [query_vector]');
    if (Number.isFinite(Math.fround(value))) return value;
    throw illegalArgument(`[query_vector] has the value ${value}, which is out of the range of a float`);
  });
}

function parseBool({ name, node, parse }: Clause): DslQuery {
  const queries =
    (field: string): Read<DslQuery[]> =>
    (value) => {
      try {
        return value.items.map(parse);
      } catch (error) {
        throw error instanceof ElasticsearchError ? withinBool(error, field, value) : error;
      }
    };
  const { boost, must_not, mustNot, ...given } = readParameters(name, node, {
    must: queries('must'),
    should: queries('should'),
    filter: queries('filter'),
    must_not: queries('must_not'),
    mustNot: queries('must_not'),
    minimum_should_match: readText,
    adjust_pure_negative: readBoolean,
  });
  return {
    type: 'bool',
    must: given.must ?? [],
    should: given.should ?? [],
    filter: given.filter ?? [],
    mustNot: [...(must_not ?? []), ...(mustNot ?? [])],
    minimumShouldMatch: given.minimum_should_match,
    adjustPureNegative: given.adjust_pure_negative ?? true,
    boost,
  };
}

/** Elasticsearch reports a fault within a bool as its cause, and as the root cause. */
function withinBool({ failure, root }: ElasticsearchError, field: string, value: JsonNode): ElasticsearchError {
  const { line = value.location.line, col = value.location.col } = failure;
  return contentException({ line, col }, `[bool] failed to parse field [${field}]`, { caused_by: failure, root });
}

function parseDisMax({ name, node, parse }: Clause): DslQuery {
  const readers = { queries: (value: JsonNode) => value.items.map(parse), tie_breaker: readNumber };
  const { boost, queries = [], tie_breaker: tieBreaker = 0 } = readParameters(name, node, readers);
  if (queries.length === 0) throw node.fault(`[${name}] requires 'queries' field with at least one clause`);
  return { type: 'dis-max', queries, tieBreaker, boost };
}

function parseConstantScore({ name, node, parse }: Clause): DslQuery {
  const { boost, filter } = readParameters(name, node, {
    filter(value) {
      if (value.members === undefined) throw value.fault(`unexpected token [${value.token}]`);
      return parse(value);
    },
  });
  if (filter === undefined) throw node.fault(`[${name}] requires a 'filter' element`);
  return { type: 'constant-score', filter, boost };
}

function parseAllOrNone(type: 'match-all' | 'match-none') {
  return ({ name, node }: Clause): DslQuery => ({ type, boost: readParameters(name, node, {}).boost });
}
