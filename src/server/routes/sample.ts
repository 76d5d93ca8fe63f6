import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import type { Retriever } from '../../search/retriever.ts';
import type { Operation } from '../api-docs/operations.ts';
import { clientSignal } from '../connections/client-signal.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { isLimited, retrieverFor } from '../indexes/view-choice.ts';
import { drawSample, type Sample } from '../sample/draw-sample.ts';
import type { ServerConfig } from '../server-config.ts';

const Pair = Type.Array(Type.Number(), { minItems: 2, maxItems: 2 });

const SampleReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  passages: Type.Array(
    Type.Object({
      row: Type.Integer(),
      id: Type.Optional(Type.String()),
      title: Type.Optional(Type.String()),
      text: Type.String({ description: 'The beginning of the text.' }),
      words: Type.Integer({ description: 'Words of the whole text.' }),
    }),
    { description: 'Up to 256 passages at even distances in the row order.' },
  ),
  map: Type.Union(
    [
      Type.Object({
        points: Type.Array(Pair, { description: 'The first two principal components of each passage’s vector.' }),
        explained: Type.Array(Type.Number(), { description: 'The share of the variance of each component.' }),
        similarities: Type.Object({
          low: Type.Number(),
          high: Type.Number(),
          counts: Type.Array(Type.Integer(), {
            description: 'Dot products of all pairs of the passages, in buckets of equal width from low to high.',
          }),
        }),
      }),
      Type.Null(),
    ],
    { description: 'With map=true; else null.' },
  ),
});

export const SAMPLE_OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/sample',
    name: 'sample',
    summary: 'A sample of the passages, with map=true also a map of their vectors',
    access: 'read',
    reply: SampleReply,
  },
];

/** `GET /v1/sample`, for the Index tab of the page. */
export function registerSample(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  /** The maps of open indexes, because they cost embedding; those of views are not kept. */
  const maps = new WeakMap<Retriever, Sample>();
  app.get<{ Querystring: { map?: string | string[] } }>('/v1/sample', async (request, reply) => {
    const withMap = request.query.map === 'true';
    const lease = holder.lease(chosenIndex(request));
    try {
      const retriever = retrieverFor(request, lease.retriever, config);
      const { index, generation, model } = retriever.info;
      if (withMap && model === null) {
        throw new TrawlError('NOT_SUPPORTED', `Index ${index} has no vectors to map. Leave out map=true.`);
      }
      const keeps = withMap && !isLimited(request, config);
      const signal = clientSignal(request.raw, reply.raw);
      const kept = keeps ? maps.get(lease.retriever) : undefined;
      const sample = kept ?? (await drawSample(retriever, { map: withMap, signal }));
      if (keeps) maps.set(lease.retriever, sample);
      reply.header('cache-control', 'no-store');
      return { index: { name: index, generation }, ...sample } as Static<typeof SampleReply>;
    } finally {
      lease.release();
    }
  });
}
