import type { JsonNode } from '../json-nodes.ts';
import { booleanOf, textOf, tokenOf } from '../json-values.ts';
import { type Clause, dslValueOf, onlyField, onlyNeutral, readParameters } from './clause.ts';
import type { DslQuery, DslValue } from './dsl-query.ts';

/** `term`: `{"text": "word"}` or `{"text": {"value": "word", …}}`. The word is not analysed. */
export function parseTerm(clause: Clause): DslQuery {
  const { body, name } = clause;
  const { field, value } = onlyField(clause);
  if (value.type === 'array') throw body.fault(value, `[${name}] query does not support array of values`);
  if (value.type !== 'object') return { type: 'term', field, term: dslValueOf(body, value, `[${name}]`), boost: 1 };
  let term: DslValue | undefined;
  const read = (given: JsonNode): void => {
    term = dslValueOf(body, given, '[value]');
  };
  const boost = readParameters(clause, value, {
    value: read,
    term: read,
    case_insensitive: onlyNeutral(clause, 'case_insensitive', (given) => !booleanOf(body, given, '[case_insensitive]')),
  });
  if (term === undefined) throw body.fault(value, `[${name}] query has no [value]`);
  return { type: 'term', field, term, boost };
}

/** `terms`: `{"text": ["a", "b"]}`. */
export function parseTerms(clause: Clause): DslQuery {
  const { body, name, node } = clause;
  const [entry, more] = [...node.members].filter(([parameter]) => parameter !== 'boost');
  if (entry === undefined) throw body.fault(node, `[${name}] query requires a field name, followed by array of terms`);
  const [field, value] = entry;
  if (more !== undefined) throw body.fault(more[1], `[${name}] query does not support multiple fields`);
  if (value.type !== 'array') {
    throw body.fault(
      value,
      `[${name}] query does not support [${field.slice(0, 100)}] as ${tokenOf(value)}; expected an array`,
    );
  }
  let terms: DslValue[] = [];
  const boost = readParameters(clause, node, {
    [field]() {
      terms = value.items.map((item) => dslValueOf(body, item, `a value of [${name}]`));
    },
  });
  return { type: 'terms', field, terms, boost };
}

/** `ids`: `{"values": ["1", "2"]}`. */
export function parseIds(clause: Clause): DslQuery {
  const { body, name, node } = clause;
  let ids: string[] | undefined;
  const boost = readParameters(clause, node, {
    values(value) {
      if (value.type !== 'array')
        throw body.fault(value, `[${name}] [values] must be an array, but is ${tokenOf(value)}`);
      ids = value.items.map((item) => textOf(body, item, `an id of [${name}]`));
    },
  });
  if (ids === undefined) throw body.fault(node, `[${name}] query requires [values]`);
  return { type: 'ids', ids, boost };
}

/** `exists`: `{"field": "title"}`. */
export function parseExists(clause: Clause): DslQuery {
  const { body, name, node } = clause;
  let field: string | undefined;
  const boost = readParameters(clause, node, {
    field(value) {
      field = textOf(body, value, '[field]');
    },
  });
  if (field === undefined || field === '') throw body.fault(node, `[${name}] must be provided with a [field]`);
  return { type: 'exists', field, boost };
}
