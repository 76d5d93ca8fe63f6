import { ElasticsearchError } from '../elasticsearch-error.ts';
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
    (occur: keyof typeof clauses, field: string) =>
    (value: JsonNode): void => {
      try {
        clauses[occur] = itemsOf(value).map(parse);
      } catch (error) {
        throw error instanceof ElasticsearchError ? withinBool(clause, field, value, error) : error;
      }
    };
  const boost = readParameters(clause, node, {
    must: queries('must', 'must'),
    should: queries('should', 'should'),
    filter: queries('filter', 'filter'),
    must_not: queries('mustNot', 'must_not'),
    mustNot: queries('mustNot', 'must_not'),
    minimum_should_match(value) {
      minimumShouldMatch = textOf(body, value, '[minimum_should_match]');
    },
    adjust_pure_negative(value) {
      adjustPureNegative = booleanOf(body, value, '[adjust_pure_negative]');
    },
  });
  return { type: 'bool', ...clauses, minimumShouldMatch, adjustPureNegative, boost };
}

/** Elasticsearch reports a fault within a bool as its cause, and as the root cause. */
function withinBool(
  { body, name }: Clause,
  field: string,
  at: JsonNode,
  { failure, root }: ElasticsearchError,
): ElasticsearchError {
  const { line, col } = 'line' in failure ? failure : body.locate(at.at);
  const reason = `[${line}:${col}] [${name}] failed to parse field [${field}]`;
  return new ElasticsearchError(400, { type: 'x_content_parse_exception', reason, caused_by: failure }, root);
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
