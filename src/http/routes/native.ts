import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { withContents } from '../../passages/contents.ts';
import { clientSignal } from '../client-signal.ts';
import { Document } from '../dialects/common-fields.ts';
import type { GetOperation } from '../openapi.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';

/** Rows told of an id that several passages have. */
const MAX_SAME_ID = 100;

export const PASSAGE_ROUTE = '/v1/passages/:id';

const IndexFacts = Type.Object({
  name: Type.String(),
  rows: Type.Integer({ description: 'Passages.' }),
  dimension: Type.Integer(),
  metric: Type.String({ description: 'inner-product, cosine or l2.' }),
  generation: Type.String({ description: 'Changes whenever the index is built anew.' }),
  model: Type.Object({
    name: Type.String(),
    sha256: Type.String(),
    prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
    maxTokens: Type.Object({ query: Type.Integer(), passage: Type.Integer() }),
  }),
});

export const IndexesReply = Type.Object({ indexes: Type.Array(IndexFacts) });

export const PassageReply = Type.Object({
  row: Type.Integer({ description: 'Number of the passage in the index.' }),
  document: Document,
  sameId: Type.Optional(Type.Array(Type.Integer(), { description: 'Further rows with this id, if there are.' })),
});

export const NATIVE_OPERATIONS: readonly GetOperation[] = [
  {
    path: '/v1/indexes',
    name: 'indexes',
    summary: 'The indexes served',
    reply: IndexesReply,
  },
  {
    path: '/v1/passages/{id}',
    name: 'passage',
    summary: 'A passage by its id',
    parameters: [{ name: 'id', description: 'The id as text; a slash in it is %2F.', example: 's-0001' }],
    reply: PassageReply,
  },
];

export function registerNative(app: FastifyInstance, holder: RetrieverHolder): void {
  app.get('/v1/indexes', async (_request, reply): Promise<{ indexes: Static<typeof IndexFacts>[] }> => {
    reply.header('cache-control', 'no-store');
    const { index: name, rows, dimension, metric, generation, model } = holder.require().info;
    const { sha256, prefixes, maxTokens } = model;
    return {
      indexes: [
        { name, rows, dimension, metric, generation, model: { name: model.name, sha256, prefixes, maxTokens } },
      ],
    };
  });

  app.get<{ Params: { id: string } }>(PASSAGE_ROUTE, async (request, reply) => {
    const { id } = request.params;
    const signal = clientSignal(request.raw, reply.raw);
    const { found } = await holder.require().find({ by: 'id', keys: [id], limit: MAX_SAME_ID, signal });
    const [first, ...others] = found[0]!;
    if (first === undefined) {
      throw new TrawlError('NOT_FOUND', `No passage has the id ${JSON.stringify(id.slice(0, 100))}.`);
    }
    const sameId = others.length === 0 ? '' : `,"sameId":[${others.map(({ row }) => row).join(',')}]`;
    return reply
      .header('content-type', 'application/json; charset=utf-8')
      .header('cache-control', 'no-store')
      .send(`{"row":${first.row},"document":${withContents(first.document)}${sameId}}`);
  });
}
