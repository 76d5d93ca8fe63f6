import { BOUND_NAMES, type BoundName } from '../../../engine/filter/filter.ts';
import { illegalArgument } from '../elasticsearch-error.ts';
import type { JsonNode } from '../json-nodes.ts';
import { textOf, tokenOf } from '../json-values.ts';
import { type Clause, dslValueOf, onlyField, onlyNeutral, readParameters } from './clause.ts';
import type { DslQuery, DslValue } from './dsl-query.ts';

const RELATIONS = ['intersects', 'contains', 'within'];
const UTC = ['UTC', 'Z', 'GMT', '+00:00', '+0000'];

/** `range`: `{"year": {"gte": 1990, "lt": 2000}}`. Of `gt` and `gte`, or `lt` and `lte`, the last one counts. */
export function parseRange(clause: Clause): DslQuery {
  const { body, name } = clause;
  if (clause.node.members.size === 0) throw illegalArgument('field name is null or empty');
  const { field, value } = onlyField(clause);
  if (value.type !== 'object') {
    throw body.fault(
      value,
      `[${name}] query does not support [${field.slice(0, 100)}] as ${tokenOf(value)}; expected an object`,
    );
  }
  const bounds: { [Name in BoundName]?: DslValue } = {};
  let format: string | undefined;
  const readers = BOUND_NAMES.map((bound): [string, (node: JsonNode) => void] => [
    bound,
    (node) => {
      delete bounds[OPPOSITE[bound]];
      bounds[bound] = dslValueOf(body, node, `[${bound}]`);
    },
  ]);
  const boost = readParameters(clause, value, {
    ...Object.fromEntries(readers),
    format(node) {
      format = textOf(body, node, '[format]');
    },
    relation: onlyNeutral(clause, 'relation', (node) =>
      RELATIONS.includes(textOf(body, node, '[relation]').toLowerCase()),
    ),
    time_zone: onlyNeutral(clause, 'time_zone', (node) => UTC.includes(textOf(body, node, '[time_zone]'))),
  });
  return { type: 'range', field, bounds, format, boost };
}

const OPPOSITE: Readonly<Record<BoundName, BoundName>> = { gt: 'gte', gte: 'gt', lt: 'lte', lte: 'lt' };
