import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../errors.ts';
import { COLUMN_TYPES } from '../../filter/column.ts';
import { DEFAULT_QUERY_TEMPLATE, QUERY_TEMPLATES } from '../../manifest/model-identity.ts';
import { withContents } from '../../passages/contents.ts';
import type { RerankerInfo } from '../../rerank/reranker.ts';
import type { FindResult } from '../../retrieval/calls/find-call.ts';
import type { RetrieverInfo } from '../../retrieval/retriever-info.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { clientSignal } from '../connections/client-signal.ts';
import { Document } from '../dialects/parts/common-fields.ts';
import { openingOf } from '../documents/openings.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { RetrieverHolder } from '../indexes/retriever-holder.ts';
import { retrieverFor } from '../indexes/view-choice.ts';
import { furtherRows, MAX_SAME_ID } from '../native-search/named-passages.ts';
import { PerturbationFacts, perturbationFact } from '../perturb-request.ts';
import { recordOpenings } from '../record-search.ts';
import type { ServerConfig } from '../server-config.ts';

export const PASSAGE_ROUTE = '/v1/passages/:id';

const TokenLimit = Type.Union([Type.Integer(), Type.Null()]);

const IndexFacts = Type.Object({
  name: Type.String(),
  default: Type.Boolean({ description: 'Whether requests that name no index use this one.' }),
  rows: Type.Integer({ description: 'Number of rows, deleted ones included.' }),
  deletedRows: Type.Integer({ description: 'Rows that searches no longer return.' }),
  removedRows: Type.Integer({ description: 'Former name of deletedRows.' }),
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
  perturbation: Type.Optional(PerturbationFacts),
});

export const PassageReply = Type.Object({
  index: Type.Optional(Type.String({ description: 'In a group of indexes: the index of the passage.' })),
  row: Type.Integer({ description: "The passage's row in the index." }),
  document: Document,
  sameId: Type.Optional(Type.Array(Type.Integer(), { description: 'Further rows with the same id, if any.' })),
});

export const NATIVE_OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/indexes',
    name: 'indexes',
    summary: 'The served indexes',
    access: 'read',
    reply: IndexesReply,
  },
  {
    path: '/v1/passages/{id}',
    name: 'passage',
    summary: 'A passage by its id',
    access: 'read',
    parameters: [{ name: 'id', description: 'The id as text, percent-encoded (a slash is %2F).', example: 's-0001' }],
    reply: PassageReply,
  },
];

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
  return { name, maxTokens, ...(sha256 === undefined ? {} : { sha256 }) };
}

function bm25Facts({
  fields,
  analyser,
  k1,
  b,
  scoredBy,
}: NonNullable<RetrieverInfo['bm25']>): Static<typeof IndexFacts>['bm25'] {
  return { fields: [...fields], analyser, k1, b, ...(scoredBy === undefined ? {} : { scoredBy }) };
}

export function registerNative(app: FastifyInstance, holder: RetrieverHolder, config: ServerConfig): void {
  app.get('/v1/indexes', async (_request, reply): Promise<Static<typeof IndexesReply>> => {
    reply.header('cache-control', 'no-store');
    holder.requireReady();
    const indexes = holder.slots.flatMap(({ name, retriever }, i) => {
      if (retriever === undefined) return [];
      const { rows, deletedRows, dimension, metric, generation, model, modes, bm25, columns, views, reranker, gpu } =
        retriever.info;
      const facts = {
        rows,
        deletedRows,
        removedRows: deletedRows,
        dimension,
        metric,
        generation,
        modes: [...modes],
        bm25: bm25 && bm25Facts(bm25),
        columns: columns.map(({ name, type }) => ({ name, type })),
        views: views.map(({ name, passages, sha256 }) => ({
          name,
          passages,
          ...(sha256 === undefined ? {} : { sha256 }),
        })),
        model: model && modelFacts(model),
        reranker: reranker && rerankerFacts(reranker),
        ...(gpu === undefined ? {} : { gpu }),
      };
      return [{ name, default: i === 0, ...facts }];
    });
    const groups = [...holder.groups].map(([name, members]) => ({ name, indexes: [...members] }));
    return { indexes, groups, ...perturbationFact(config) };
  });

  app.get<{ Params: { id: string } }>(PASSAGE_ROUTE, async (request, reply) => {
    const { id } = request.params;
    const signal = clientSignal(request.raw, reply.raw);
    const lease = holder.lease(chosenIndex(request));
    let found: FindResult['found'];
    try {
      const retriever = retrieverFor(request, lease.retriever, config);
      ({ found } = await retriever.find({ by: 'id', keys: [id], limit: MAX_SAME_ID, signal }));
      const opening = openingOf(id, found[0]!.slice(0, 1));
      recordOpenings([opening], { request, dialect: 'passage' }, retriever.info, config.record);
    } finally {
      lease.release();
    }
    const [first] = found[0]!;
    if (first === undefined) {
      throw new TrawlError('NOT_FOUND', `Passage ${JSON.stringify(id.slice(0, 100))} not found.`);
    }
    const { source } = first;
    const rows = furtherRows(found[0]!);
    const sameId = rows.length === 0 ? '' : `,"sameId":[${rows.join(',')}]`;
    const place =
      source === undefined ? `"row":${first.row}` : `"index":${JSON.stringify(source.index)},"row":${source.row}`;
    return reply
      .header('content-type', 'application/json; charset=utf-8')
      .header('cache-control', 'no-store')
      .send(`{${place},"document":${withContents(first.document)}${sameId}}`);
  });
}
