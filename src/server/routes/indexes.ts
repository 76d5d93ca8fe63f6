import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { orNull } from '../../base/or-null.ts';
import { DEFAULT_QUERY_TEMPLATE, QUERY_TEMPLATES } from '../../encoder/identity/model-identity.ts';
import { COLUMN_TYPES } from '../../engine/filter/column.ts';
import { IndexDescription } from '../../search/opening/index-description.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { Operation } from '../api-docs/openapi.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { withRetriever } from '../indexes/view-choice.ts';
import { HookFacts, hookFacts } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';

const TokenLimit = Type.Union([Type.Integer(), Type.Null()]);

const IndexFacts = Type.Object({
  name: Type.String(),
  default: Type.Boolean({ description: 'Whether requests that name no index use this one.' }),
  rows: Type.Integer({ description: 'Number of rows, deleted ones included.' }),
  deletedRows: Type.Integer({ description: 'Rows that searches no longer return.' }),
  dimension: Type.Integer(),
  metric: orNull(Type.String(), 'inner-product, cosine or l2; null for an index without vectors.'),
  modes: Type.Array(Type.String(), {
    description: 'How the index can be searched: dense, bm25. The first is the default.',
  }),
  bm25: orNull(
    Type.Object({
      fields: Type.Array(Type.String(), { description: 'contents, or title and text as two fields.' }),
      analyser: Type.String(),
      k1: Type.Number(),
      b: Type.Number(),
      scoredBy: Type.Optional(
        Type.String({
          description:
            'The store whose own BM25 ranks the passages, such as OpenSearch; absent: Trawl. k1 and b of requests cannot be others then.',
        }),
      ),
    }),
    'The inverted indexes for mode bm25; null if there are none.',
  ),
  columns: Type.Array(Type.Object({ name: Type.String(), type: Type.Enum([...COLUMN_TYPES]) }), {
    description: 'The columns that filters can name; empty if there are none.',
  }),
  views: Type.Array(
    Type.Object({
      name: Type.String(),
      passages: Type.Integer({ description: 'Passages in the view, without deleted ones.' }),
      sha256: Type.Optional(Type.String({ description: 'Hash of the rows of the passages in the view.' })),
    }),
    { description: 'The views that a prefix /views/NAME of the path can name; empty if there are none.' },
  ),
  generation: Type.String({ description: 'Hash that identifies the content of the index.' }),
  model: orNull(
    Type.Object({
      name: Type.String(),
      sha256: Type.String(),
      prefixes: Type.Object({ query: Type.String(), passage: Type.String() }),
      maxTokens: Type.Object(
        { query: TokenLimit, passage: TokenLimit },
        { description: 'Token limits; null if the encoder is an endpoint that does not say them.' },
      ),
      queryTemplate: Type.Enum([...QUERY_TEMPLATES], {
        description: 'Which of question, history and query are embedded, unless the request names another template.',
      }),
    }),
    'The encoder; null for an index without vectors.',
  ),
  reranker: Type.Union(
    [
      Type.Object({
        name: Type.String(),
        maxTokens: orNull(Type.Integer(), 'Token limit of query and passage together; null if it is not known.'),
        sha256: Type.Optional(
          Type.String({ description: "Hash of the model's files. Absent if the reranker is a server." }),
        ),
      }),
      Type.Null(),
    ],
    { description: 'The reranker of the server; null if it has none.' },
  ),
  gpu: Type.Optional(
    Type.Object(
      {
        name: Type.String(),
        cuda: Type.String({ description: "The driver's version of CUDA." }),
        bytes: Type.Integer({ description: 'Memory of the GPU that the index takes.' }),
        failed: Type.Boolean({ description: 'Whether the GPU failed, so that searches run on the CPU now.' }),
      },
      { description: 'The GPU that searches the vectors; absent if the CPU does.' },
    ),
  ),
});

export const IndexesReply = Type.Object({
  indexes: Type.Array(IndexFacts),
  groups: Type.Array(Type.Object({ name: Type.String(), indexes: Type.Array(Type.String()) }), {
    description: 'The names by which requests can search several indexes as one.',
  }),
  perturbation: Type.Optional(HookFacts),
});

export const INDEXES_OPERATION: Operation = {
  path: '/v1/indexes',
  name: 'indexes',
  summary: 'The served indexes',
  access: 'read',
  reply: IndexesReply,
};

export function registerIndexes(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  app.get('/v1/indexes', async (): Promise<Static<typeof IndexesReply>> => {
    holder.requireReady();
    const indexes = holder.slots.flatMap(({ name, retriever }, i) =>
      retriever === undefined ? [] : [{ name, default: i === 0, ...indexFacts(retriever.info) }],
    );
    const groups = [...holder.groups].map(([name, members]) => ({ name, indexes: [...members] }));
    return { indexes, groups, ...hookFacts(config) };
  });
}

function indexFacts(info: RetrieverInfo): Omit<Static<typeof IndexFacts>, 'name' | 'default'> {
  const { rows, deletedRows, dimension, metric, generation, modes, columns, views, bm25, model, reranker, gpu } = info;
  return {
    rows,
    deletedRows,
    dimension,
    metric,
    generation,
    modes: [...modes],
    bm25: bm25 && {
      fields: [...bm25.fields],
      analyser: bm25.analyser,
      k1: bm25.k1,
      b: bm25.b,
      scoredBy: bm25.scoredBy,
    },
    columns: columns.map(({ name, type }) => ({ name, type })),
    views: views.map(({ name, passages, sha256 }) => ({ name, passages, sha256 })),
    model: model && {
      name: model.name,
      sha256: model.sha256,
      prefixes: model.prefixes,
      maxTokens: model.maxTokens,
      queryTemplate: model.queryTemplate ?? DEFAULT_QUERY_TEMPLATE,
    },
    reranker: reranker && { name: reranker.name, maxTokens: reranker.maxTokens, sha256: reranker.sha256 },
    gpu,
  };
}

const ManifestReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  ...IndexDescription.properties,
});

export const MANIFEST_OPERATION: Operation = {
  path: '/v1/manifest',
  name: 'manifest',
  summary: 'How an index was made: its corpus, its shards and their sizes',
  access: 'read',
  reply: ManifestReply,
  errors: { 501: 'A group of indexes, a replay bundle and an index in a store have no manifest here.' },
};

/** `GET /v1/manifest`, for the Index tab of the page. */
export function registerManifest(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  app.get(
    '/v1/manifest',
    (request): Promise<Static<typeof ManifestReply>> =>
      withRetriever(request, holder, config, async ({ info: { index, generation, description } }) => {
        if (description === undefined) {
          throw new TrawlError(
            'NOT_SUPPORTED',
            `${index} is not a folder of an index, so it has no shards to describe. GET /v1/indexes has its facts.`,
          );
        }
        return { index: { name: index, generation }, ...description };
      }),
  );
}
