import { createHash } from 'node:crypto';
import { finished, Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { asTrawlError, ERROR_CODES, TrawlError } from '../../base/errors.ts';
import { orNull } from '../../base/or-null.ts';
import { bytesOf, type HeldIndex } from '../../index/files/held-index.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { HeldIndexes } from '../indexes/held-indexes.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import type { IndexSlot } from '../indexes/index-slot.ts';

/** Files that a server sends at the same time. A copy uses four. */
const MAX_TRANSFERS = 16;
const CHUNK_BYTES = 256 * 1024;

const FilesReply = Type.Object({
  name: Type.String(),
  generation: Type.String({ description: "Generation of the index in the server's folder." }),
  served: orNull(Type.String(), 'Generation that answers; another one if the folder was changed and not reloaded yet.'),
  snapshot: Type.String({ description: 'Identifies the manifests: names these files in the paths of the files.' }),
  files: Type.Array(
    Type.Object({
      path: Type.String({ description: 'Relative to the index.' }),
      bytes: Type.Integer(),
      sha256: orNull(
        Type.String(),
        'Of the file. Null for a passage file, whose content hash is in the manifest of its shard.',
      ),
      tag: Type.String({ description: 'The ETag of the file, without quotes.' }),
    }),
  ),
});

const NAME = { name: 'name', description: 'Name of the index.', example: 'sample' };

export const INDEX_FILE_OPERATIONS: readonly Operation[] = [
  {
    path: '/admin/indexes/{name}/files',
    name: 'index-files',
    summary: 'Lists the files of an index with sizes and checksums, and keeps them open for a while to be copied',
    access: 'admin',
    parameters: [NAME],
    reply: FilesReply,
    errors: { 501: 'The index in the folder cannot be read, or the server knows no folder of it.' },
  },
  {
    path: '/admin/indexes/{name}/files/{snapshot}/{path}',
    name: 'index-file',
    summary: 'A file of an index, or a range of its bytes; the path may have slashes',
    access: 'admin',
    parameters: [
      NAME,
      { name: 'snapshot', description: 'As the list of files has it.', example: '0123456789abcdef0123456789abcdef' },
      { name: 'path', description: 'As the list of files has it.', example: 'manifest.json' },
    ],
    reply: 'bytes',
    errors: { 410: 'The server no longer has these files; list them again.', 416: 'The file has no such range.' },
  },
];

type FileRequest = FastifyRequest<{ Params: { name: string; snapshot: string; '*': string } }>;

/** Routes from which `trawl sync` copies an index. They only read, and only files that the manifests name. */
export function registerIndexFiles(app: FastifyInstance, holder: IndexRegistry): void {
  const held = new HeldIndexes();
  const transfers = new Set<Readable>();
  // A transfer may take hours; the client resumes it elsewhere.
  app.addHook('preClose', async () => {
    for (const transfer of transfers) transfer.destroy();
  });
  app.addHook('onClose', async () => held.close());
  app.get<{ Params: { name: string } }>(
    '/admin/indexes/:name/files',
    { config: { access: 'admin' } },
    async (request) => {
      holder.requireReady();
      const slot = holder.slot(request.params.name);
      const index = await hold(held, slot);
      return fileList(slot.name, index, slot.retriever?.info.generation ?? null);
    },
  );
  app.get(
    '/admin/indexes/:name/files/:snapshot/*',
    { config: { access: 'admin' } },
    async (request: FileRequest, reply) => {
      holder.requireReady();
      const { name, snapshot, '*': path } = request.params;
      const slot = holder.slot(name);
      let use = held.use(slot.name, snapshot);
      if (use === undefined) {
        // The server may have been restarted since it listed the files.
        await hold(held, slot);
        use = held.use(slot.name, snapshot);
      }
      if (use === undefined) {
        throw new TrawlError(
          'SOURCE_CHANGED',
          `The server no longer has the files of this snapshot of ${slot.name}. List them again.`,
        );
      }
      try {
        if (transfers.size >= MAX_TRANSFERS) {
          throw new TrawlError('OVERLOADED', `The server is sending ${MAX_TRANSFERS} files, which is the limit.`);
        }
        const stream = sendFile(use.index, path, request, reply);
        if (stream === undefined) {
          use.release();
          return reply;
        }
        transfers.add(stream);
        const { release } = use;
        finished(stream, () => {
          transfers.delete(stream);
          release();
        });
        return reply.send(stream);
      } catch (error) {
        use.release();
        throw error;
      }
    },
  );
}

/** Opens the files in the folder of an index. @throws TrawlError as `HeldIndexes.hold`; NOT_SUPPORTED if they cannot be read. */
async function hold(held: HeldIndexes, slot: IndexSlot): Promise<HeldIndex> {
  const { name } = slot;
  try {
    return await held.hold(name, slot.requireFolder().target.folder);
  } catch (thrown) {
    const error = asTrawlError(thrown);
    const { code, message } = error;
    if (!code.startsWith('INDEX_')) throw error;
    throw new TrawlError('NOT_SUPPORTED', `The files of ${name} cannot be listed: ${code}: ${ERROR_CODES[code]}`, {
      details: { index: name, reason: code, message },
      cause: error,
    });
  }
}

function fileList(name: string, index: HeldIndex, served: string | null): Static<typeof FilesReply> {
  const { id, manifest, texts, files } = index.snapshot;
  const manifests = Array.from(texts, ([path, text]) => ({
    path,
    sha256: createHash('sha256').update(text).digest('hex'),
  }));
  return {
    name,
    generation: manifest.generation,
    served,
    snapshot: id,
    files: [...manifests, ...files].map(({ path, sha256 }) => {
      const { bytes, tag } = index.file(path)!;
      return { path, bytes, sha256, tag };
    }),
  };
}

/** Sets the headers. Returns the bytes to send; undefined if the headers are the whole reply. */
function sendFile(
  index: HeldIndex,
  path: string,
  { headers }: FastifyRequest,
  reply: FastifyReply,
): Readable | undefined {
  const file = index.file(path);
  if (file === undefined) throw new TrawlError('NOT_FOUND', 'The index has no such file.');
  const { bytes, tag } = file;
  const etag = `"${tag}"`;
  void reply.headers({ 'content-type': 'application/octet-stream', 'accept-ranges': 'bytes', etag });
  const isRange = headers.range !== undefined && (headers['if-range'] ?? etag) === etag;
  const range = isRange ? rangeOf(headers.range!, bytes) : undefined;
  if (range === 'none') {
    void reply.code(416).header('content-range', `bytes */${bytes}`).send('');
    return undefined;
  }
  const { first, last } = range ?? { first: 0, last: bytes - 1 };
  if (range !== undefined) void reply.code(206).header('content-range', `bytes ${first}-${last}/${bytes}`);
  void reply.header('content-length', last - first + 1);
  if (bytes === 0) {
    void reply.send('');
    return undefined;
  }
  return Readable.from(bytesOf(file, { first, last, chunkBytes: CHUNK_BYTES }), {
    objectMode: false,
    highWaterMark: CHUNK_BYTES,
  });
}

/** A single range (RFC 9110, section 14.1.2). Undefined for others, which a server may answer with the whole file. */
function rangeOf(
  header: string,
  bytes: number,
): { readonly first: number; readonly last: number } | 'none' | undefined {
  const [, from, to] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header) ?? [];
  if (from === undefined || to === undefined || (from === '' && to === '')) return undefined;
  if (from === '') {
    const count = Math.min(Number(to), bytes);
    return count === 0 ? 'none' : { first: bytes - count, last: bytes - 1 };
  }
  const first = Number(from);
  if (first >= bytes) return 'none';
  if (to === '') return { first, last: bytes - 1 };
  return Number(to) < first ? undefined : { first, last: Math.min(Number(to), bytes - 1) };
}
