import type { JsonNode } from '../json-nodes.ts';
import { booleanOf, itemsOf, numberOf, textOf, tokenOf } from '../json-values.ts';
import { type Clause, readParameters } from './clause.ts';
import type { DslQuery } from './dsl-query.ts';

export function parseBool(clause: Clause): DslQuery {
  const { body, node, parse } = clause;
  const clauses: Record<'must' | 'should' | 'filter' | 'mustNot', DslQuery[]> = {
    must: [],
    should: [],
    filter: [],
    mustNot: [],
  };
  let minimumShouldMatch: string | undefined;
  let adjustPureNegative = true;
  const queries =
    (occur: keyof typeof clauses) =>
    (value: JsonNode): void => {
      clauses[occur] = itemsOf(value).map(parse);
    };
  const boost = readParameters(clause, node, {
    must: queries('must'),
    should: queries('should'),
    filter: queries('filter'),
    must_not: queries('mustNot'),
    mustNot: queries('mustNot'),
    minimum_should_match(value) {
      minimumShouldMatch = textOf(body, value, '[minimum_should_match]');
    },
    adjust_pure_negative(value) {
      adjustPureNegative = booleanOf(body, value, '[adjust_pure_negative]');
    },
  });
  return { type: 'bool', ...clauses, minimumShouldMatch, adjustPureNegative, boost };
}

export function parseDisMax(clause: Clause): DslQuery {
  const { body, name, node, parse } = clause;
  let queries: DslQuery[] | undefined;
  let tieBreaker = 0;
  const boost = readParameters(clause, node, {
    queries(value) {
      queries = itemsOf(value).map(parse);
    },
    tie_breaker(value) {
      tieBreaker = numberOf(body, value, '[tie_breaker]');
    },
  });
  if (queries === undefined || queries.length === 0)
    throw body.fault(node, `[${name}] requires 'queries' field with at least one clause`);
  return { type: 'dis-max', queries, tieBreaker, boost };
}

export function parseConstantScore(clause: Clause): DslQuery {
  const { body, name, node, parse } = clause;
  let filter: DslQuery | undefined;
  const boost = readParameters(clause, node, {
    filter(value) {
      if (value.type !== 'object') throw body.fault(value, `unexpected token [${tokenOf(value)}]`);
      filter = parse(value);
    },
  });
  if (filter === undefined) throw body.fault(node, `[${name}] requires a 'filter' element`);
  return { type: 'constant-score', filter, boost };
}

/** `match_all` and `match_none`. */
export function parseAllOrNone(type: 'match-all' | 'match-none') {
  return (clause: Clause): DslQuery => ({ type, boost: readParameters(clause, clause.node, {}) });
}
