import { ElasticsearchError, illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode } from '../json-nodes.ts';
import { booleanOf, itemsOf, numberOf, textOf } from '../json-values.ts';
import { type Clause, negativeBoost, onlyField, onlyNeutral, readParameters } from './clause.ts';
import type { DslQuery, FieldPattern, TextSearch } from './dsl-query.ts';

/** `match`: `{"text": "words"}` or `{"text": {"query": "words", …}}`. */
export function parseMatch(clause: Clause): DslQuery {
  const { field, value } = onlyField(clause);
  const search = new TextSearchReader(clause);
  if (value.type !== 'object') {
    search.readText(value);
    return { type: 'match', field, boost: 1, ...search.result(clause.node) };
  }
  const boost = readParameters(clause, value, search.readers);
  return { type: 'match', field, boost, ...search.result(value) };
}

/** Types of `multi_match` that can be answered, and their default tie breakers. */
const TIE_BREAKERS: ReadonlyMap<string, number> = new Map([
  ['best_fields', 0],
  ['most_fields', 1],
]);
const OTHER_TYPES = ['cross_fields', 'phrase', 'phrase_prefix', 'bool_prefix'];

/** `multi_match`. Without `fields` it searches all fields. */
export function parseMultiMatch(clause: Clause): DslQuery {
  const { body, node } = clause;
  const search = new TextSearchReader(clause);
  let fields: FieldPattern[] = [];
  let tieBreaker: number | undefined;
  let tieBreakerOfType = 0;
  const boost = readParameters(clause, node, {
    ...search.readers,
    fields(value) {
      fields = itemsOf(value).map((item) => fieldPattern(textOf(body, item, '[fields]')));
    },
    type(value) {
      const type = textOf(body, value, '[type]').toLowerCase();
      const found = TIE_BREAKERS.get(type);
      if (found === undefined) throw unknownType(type);
      tieBreakerOfType = found;
    },
    tie_breaker(value) {
      tieBreaker = numberOf(body, value, '[tie_breaker]');
    },
    slop: onlyNeutral(clause, 'slop', (value) => numberOf(body, value, '[slop]') === 0),
  });
  return {
    type: 'multi-match',
    fields: fields.length === 0 ? [{ pattern: '*', boost: 1 }] : fields,
    tieBreaker: tieBreaker ?? tieBreakerOfType,
    boost,
    ...search.result(node),
  };
}

function unknownType(type: string): ElasticsearchError {
  if (!OTHER_TYPES.includes(type)) {
    const reason = `failed to parse [multi_match] query type [${type.slice(0, 100)}]. unknown type.`;
    return new ElasticsearchError(400, { type: 'parse_exception', reason });
  }
  return illegalArgument(
    `[multi_match] type [${type}] is not supported by this server. Use ${[...TIE_BREAKERS.keys()].join(' or ')}.`,
  );
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

/** Reads the parameters that `match` and `multi_match` share. */
class TextSearchReader {
  readonly #clause: Clause;
  #text: string | undefined;
  #operator: 'or' | 'and' = 'or';
  #minimum: string | undefined;
  #zeroTerms: 'none' | 'all' = 'none';

  constructor(clause: Clause) {
    this.#clause = clause;
  }

  readText(node: JsonNode): void {
    this.#text = textOf(this.#clause.body, node, `the text of [${this.#clause.name}]`);
  }

  get readers(): Readonly<Record<string, (node: JsonNode) => void>> {
    const clause = this.#clause;
    const { body } = clause;
    // Without fuzziness, these change nothing.
    const unused = (): void => undefined;
    return {
      query: (value) => this.readText(value),
      operator: (value) => {
        this.#operator = this.#choice(value, 'operator', ['or', 'and']);
      },
      minimum_should_match: (value) => {
        this.#minimum = textOf(body, value, '[minimum_should_match]');
      },
      zero_terms_query: (value) => {
        this.#zeroTerms = this.#choice(value, 'zero_terms_query', ['none', 'all']);
      },
      analyzer: onlyNeutral(clause, 'analyzer', () => false),
      fuzziness: onlyNeutral(clause, 'fuzziness', () => false),
      prefix_length: unused,
      max_expansions: unused,
      fuzzy_rewrite: unused,
      fuzzy_transpositions: (value) => void booleanOf(body, value, '[fuzzy_transpositions]'),
      lenient: (value) => void booleanOf(body, value, '[lenient]'),
      auto_generate_synonyms_phrase_query: (value) =>
        void booleanOf(body, value, '[auto_generate_synonyms_phrase_query]'),
    };
  }

  result(node: JsonNode): TextSearch {
    const { body, name } = this.#clause;
    if (this.#text === undefined) throw body.fault(node, `No text specified for ${name} query`);
    return {
      text: this.#text,
      operator: this.#operator,
      minimumShouldMatch: this.#minimum,
      zeroTerms: this.#zeroTerms,
    };
  }

  #choice<Choice extends string>(node: JsonNode, parameter: string, choices: readonly Choice[]): Choice {
    const { body, name } = this.#clause;
    const given = textOf(body, node, `[${parameter}]`).toLowerCase();
    const found = choices.find((choice) => choice === given);
    if (found !== undefined) return found;
    throw illegalArgument(`[${name}] [${parameter}] is [${given.slice(0, 100)}]; expected ${choices.join(' or ')}`);
  }
}
