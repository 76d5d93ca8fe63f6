import { type Static, type TSchema, Type } from 'typebox';
import { nullable } from '../dialects/parts/common-fields.ts';
import { Issues } from '../errors/request-error.ts';
import { readBody } from '../recording/read-origins.ts';

const Id = Type.Union([Type.String(), Type.Integer()]);
const Count = Type.Integer({ minimum: 0 });
/** Without a type, so that the reader of requests keeps its fields. */
const Tags = Type.Unsafe<Readonly<Record<string, string | number | boolean>>>({
  additionalProperties: { type: ['string', 'number', 'boolean'] },
});

/** One value for the request, or a list with one value (or null) per query. */
function perQuery<Schema extends TSchema>(schema: Schema, description: string) {
  return Type.Optional(
    Type.Union([schema, Type.Array(Type.Union([schema, Type.Null()])), Type.Null()], {
      description: `${description} One value, or a list with one value (or null) per query.`,
    }),
  );
}

/** Where the queries come from, for `--record`; it changes no reply. */
export const RecordField = nullable(
  Type.Object(
    {
      trajectory: perQuery(Id, 'Id of the rollout.'),
      turn: perQuery(Count, "The agent's turn, as the client counts."),
      questionId: perQuery(Id, 'Id of the question in its data set.'),
      dataset: perQuery(Type.String(), 'Name of the data set.'),
      policy: perQuery(Id, 'The run or checkpoint of the policy.'),
      step: perQuery(Count, 'Its training step.'),
      split: perQuery(Type.String(), 'Such as train or validation.'),
      tags: perQuery(Tags, 'Further texts by name.'),
      question: perQuery(Type.String(), 'The original question of a query that is searched without it.'),
    },
    { additionalProperties: false },
  ),
  'Where the queries come from: --record writes it to their lines (docs/recording.md). It does not change the reply.',
);

/**
 * Refuses values that could not be recorded, whether the server records or not.
 *
 * @throws RequestError INVALID_REQUEST.
 */
export function checkRecordField(record: Static<typeof RecordField>, queries: number): void {
  const issues = new Issues();
  for (const { name, reason } of readBody(record, queries).ignored) {
    const place = name.split('.').map((part) => (/^\d+$/.test(part) ? Number(part) : part));
    issues.add('value_error', place, `${reason[0]!.toUpperCase()}${reason.slice(1)}`, undefined);
  }
  issues.throwIfAny();
}
