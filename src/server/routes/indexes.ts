import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { DEFAULT_QUERY_TEMPLATE, QUERY_TEMPLATES } from '../../encoder/identity/model-identity.ts';
import type { RerankerInfo } from '../../encoder/rerank/reranker.ts';
import { COLUMN_TYPES } from '../../engine/filter/column.ts';
import type { RetrieverInfo } from '../../search/retriever-info.ts';
import type { Operation } from '../api-docs/operations.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { HookFacts, hookFacts } from '../search-hook.ts';
import type { ServerConfig } from '../server-config.ts';

const TokenLimit = Type.Union([Type.Integer(), Type.Null()]);

const IndexFacts = Type.Object({
  name: Type.String(),
  default: Type.Boolean({ description: 'Whether requests that name no index use this one.' }),
  rows: Type.Integer({ description: 'Number of rows, deleted ones included.' }),
  deletedRows: Type.Integer({ description: 'Rows that searches no longer return.' }),
  dimension: Type.Integer(),
  metric: Type.Union([Type.String(), Type.Null()], {
    description: 'inner-product, cosine or l2; null for an index without vectors.',
  }),
  modes: Type.Array(Type.String(), {
    description: 'How the index can be searched: dense, bm25. The first is the default.',
  }),
  bm25: Type.Union(
    [
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
      Type.Null(),
    ],
    { description: 'The inverted indexes for mode bm25; null if there are none.' },
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
  model: Type.Union(
    [
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
      Type.Null(),
    ],
    { description: 'The encoder; null for an index without vectors.' },
  ),
  reranker: Type.Union(
    [
      Type.Object({
        name: Type.String(),
        maxTokens: Type.Union([Type.Integer(), Type.Null()], {
          description: 'Token limit of query and passage together; null if it is not known.',
        }),
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

/** Adds the list of the indexes. */
export function registerIndexes(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  app.get('/v1/indexes', async (_request, reply): Promise<Static<typeof IndexesReply>> => {
    reply.header('cache-control', 'no-store');
    holder.requireReady();
    const indexes = holder.slots.flatMap(({ name, retriever }, i) =>
      retriever === undefined ? [] : [{ name, default: i === 0, ...indexFacts(retriever.info) }],
    );
    const groups = [...holder.groups].map(([name, members]) => ({ name, indexes: [...members] }));
    return { indexes, groups, ...hookFacts(config) };
  });
}

function indexFacts({
  rows,
  deletedRows,
  dimension,
  metric,
  generation,
  model,
  modes,
  bm25,
  columns,
  views,
  reranker,
  gpu,
}: RetrieverInfo): Omit<Static<typeof IndexFacts>, 'name' | 'default'> {
  return {
    rows,
    deletedRows,
    dimension,
    metric,
    generation,
    modes: [...modes],
    bm25: bm25 && bm25Facts(bm25),
    columns: columns.map(({ name, type }) => ({ name, type })),
    views: views.map(({ name, passages, sha256 }) => ({ name, passages, sha256 })),
    model: model && modelFacts(model),
    reranker: reranker && rerankerFacts(reranker),
    gpu,
  };
}

function modelFacts({
  name,
  sha256,
  prefixes,
  maxTokens,
  queryTemplate = DEFAULT_QUERY_TEMPLATE,
}: NonNullable<RetrieverInfo['model']>): Static<typeof IndexFacts>['model'] {
  return { name, sha256, prefixes, maxTokens, queryTemplate };
}

function rerankerFacts({ name, maxTokens, sha256 }: RerankerInfo): Static<typeof IndexFacts>['reranker'] {
  return { name, maxTokens, sha256 };
}

function bm25Facts({
  fields,
  analyser,
  k1,
  b,
  scoredBy,
}: NonNullable<RetrieverInfo['bm25']>): Static<typeof IndexFacts>['bm25'] {
  return { fields: [...fields], analyser, k1, b, scoredBy };
}
