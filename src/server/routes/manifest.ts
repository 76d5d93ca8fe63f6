import type { FastifyInstance } from 'fastify';
import { type Static, Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import type { Operation } from '../api-docs/operations.ts';
import { chosenIndex } from '../indexes/index-choice.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { retrieverFor } from '../indexes/view-choice.ts';
import type { ServerConfig } from '../server-config.ts';

const Bytes = Type.Integer({ description: '0 if the shard has none.' });

const ManifestReply = Type.Object({
  index: Type.Object({ name: Type.String(), generation: Type.String() }),
  corpus: Type.Object({
    files: Type.Array(Type.Object({ name: Type.String(), bytes: Type.Integer(), passages: Type.Integer() }), {
      description: 'The first 20 files of the corpus.',
    }),
    fileCount: Type.Integer({ description: 'All files of the corpus.' }),
    passages: Type.Integer({ description: 'Passages of all files.' }),
    skippedLines: Type.Integer({ description: 'Bad lines that the build skipped.' }),
    duplicateIds: Type.Integer({ description: 'Passages with the id of an earlier one.' }),
    truncatedPassages: Type.Integer({ description: 'Passages that were truncated to the token limit.' }),
    passageTemplate: Type.String({ description: 'Template of the embedded text.' }),
  }),
  encoder: Type.Union(
    [
      Type.Object({
        pooling: Type.Union([Type.String(), Type.Null()], { description: 'Null if an endpoint embeds.' }),
        normalize: Type.Boolean(),
        precision: Type.Union([Type.String(), Type.Null()], { description: 'Null if it is not known.' }),
      }),
      Type.Null(),
    ],
    { description: 'Null for an index without vectors.' },
  ),
  lastUpdate: Type.Union([Type.String(), Type.Null()], {
    description: 'The last change after the build: update, append or remove; null if there was none.',
  }),
  writer: Type.String({ description: 'Name and version of the program that wrote the manifest.' }),
  shards: Type.Array(
    Type.Object({
      firstRow: Type.Integer(),
      rows: Type.Integer({ description: 'Deleted rows included.' }),
      deletedRows: Type.Integer(),
      dtype: Type.Union([Type.String(), Type.Null()], {
        description: 'Number format of the vectors: float32 or float16; null without vectors.',
      }),
      adopted: Type.Boolean({ description: 'Whether the vectors are in a file of another program.' }),
      prefilter: Type.Union([Type.String(), Type.Null()], {
        description: 'Why the shard has a prefilter, or none; null if that was never measured.',
      }),
      bytes: Type.Object({
        vectors: Bytes,
        codes: Bytes,
        prefilter: Bytes,
        words: Bytes,
        columns: Bytes,
        passages: Bytes,
      }),
    }),
    { description: 'In row order.' },
  ),
});

export const MANIFEST_OPERATIONS: readonly Operation[] = [
  {
    path: '/v1/manifest',
    name: 'manifest',
    summary: 'How an index was made: its corpus, its shards and their sizes',
    access: 'read',
    reply: ManifestReply,
    errors: { 501: 'A group of indexes, a replay bundle and an index in a store have no manifest here.' },
  },
];

/** `GET /v1/manifest`, for the Index tab of the page. */
export function registerManifest(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  app.get('/v1/manifest', async (request, reply): Promise<Static<typeof ManifestReply>> => {
    const lease = holder.lease(chosenIndex(request));
    try {
      const { index, generation, description } = retrieverFor(request, lease.retriever, config).info;
      if (description === undefined) {
        throw new TrawlError(
          'NOT_SUPPORTED',
          `${index} is not a folder of an index, so it has no shards to describe. GET /v1/indexes has its facts.`,
        );
      }
      const { corpus, encoder, lastUpdate, writer, shards } = description;
      reply.header('cache-control', 'no-store');
      return {
        index: { name: index, generation },
        corpus: { ...corpus, files: [...corpus.files] },
        encoder,
        lastUpdate,
        writer,
        shards: [...shards],
      };
    } finally {
      lease.release();
    }
  });
}
