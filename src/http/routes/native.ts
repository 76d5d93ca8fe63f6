import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { withContents } from '../../passages/contents.ts';
import { clientSignal } from '../client-signal.ts';
import { Document } from '../dialects/common-fields.ts';
import { chosenIndex } from '../index-choice.ts';
import type { Operation } from '../openapi.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';

/** Rows told of an id that several passages have. */
const MAX_SAME_ID = 100;

export const PASSAGE_ROUTE = '/v1/passages/:id';

const IndexFacts = Type.Object({
  name: Type.String(),
  default: Type.Boolean({ description: 'Whether requests that name none get this one.' }),
  rows: Type.Integer({ description: 'Row numbers are below this.' }),
  removedRows: Type.Integer({ description: 'Rows whose passages were removed: the others are the passages.' }),
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

export const NATIVE_OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/indexes',
    name: 'indexes',
    summary: 'The indexes served',
    access: 'read',
    reply: IndexesReply,
  },
  {
    path: '/v1/passages/{id}',
    name: 'passage',
    summary: 'A passage by its id',
    access: 'read',
    parameters: [{ name: 'id', description: 'The id as text; a slash in it is %2F.', example: 's-0001' }],
    reply: PassageReply,
  },
];

export function registerNative(app: FastifyInstance, holder: RetrieverHolder): void {
  app.get('/v1/indexes', async (_request, reply): Promise<{ indexes: Static<typeof IndexFacts>[] }> => {
    reply.header('cache-control', 'no-store');
    holder.requireReady();
    const indexes = holder.slots.flatMap(({ name, retriever }, i) => {
      if (retriever === undefined) return [];
      const { rows, removedRows = 0, dimension, metric, generation, model } = retriever.info;
      const { sha256, prefixes, maxTokens } = model;
      const facts = {
        rows,
        removedRows,
        dimension,
        metric,
        generation,
        model: { name: model.name, sha256, prefixes, maxTokens },
      };
      return [{ name, default: i === 0, ...facts }];
    });
    return { indexes };
  });

  app.get<{ Params: { id: string } }>(PASSAGE_ROUTE, async (request, reply) => {
    const { id } = request.params;
    const signal = clientSignal(request.raw, reply.raw);
    const { retriever, release } = holder.lease(chosenIndex(request));
    const { found } = await retriever.find({ by: 'id', keys: [id], limit: MAX_SAME_ID, signal }).finally(release);
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
