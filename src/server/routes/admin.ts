import { realpath } from 'node:fs/promises';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { asTrawlError, ERROR_CODES, TrawlError } from '../../base/errors.ts';
import { defined } from '../../base/objects.ts';
import { orNull } from '../../base/or-null.ts';
import { folderSnapshot } from '../../index/files/index-snapshot.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { nullable } from '../dialects/parts/common-fields.ts';
import { readRequest } from '../dialects/parts/read-request.ts';
import { Issues, RequestError } from '../errors/request-error.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import type { IndexSlot, IndexTarget } from '../indexes/index-slot.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import type { ServerMetrics } from '../metrics/server-metrics.ts';

/** Longest path on Linux. */
const MAX_PATH_CHARACTERS = 4_096;

export const RELOAD_ROUTE = '/admin/indexes/:name/reload';

const ReloadRequest = Type.Object(
  {
    folder: nullable(Type.String(), 'Folder of the new index, on the server. Absent: the current folder of the index.'),
    model: nullable(
      Type.String(),
      "Folder or name of the query encoder. Absent: with a folder, that of --model; otherwise the one that the index was last opened with. If none was named there, the one in the new index's manifest.",
    ),
  },
  { additionalProperties: false },
);

const ReloadReply = Type.Object({
  name: Type.String(),
  generation: Type.String({ description: 'Generation of the new index.' }),
  previous: orNull(Type.String(), 'Generation of the replaced index.'),
  rows: Type.Integer(),
  model: orNull(Type.String(), 'Null for an index without vectors.'),
  seconds: Type.Number({ description: 'Time from the request to the replacement.' }),
});

const OpenedIndex = Type.Object({
  generation: Type.String(),
  snapshot: orNull(
    Type.String(),
    'Identifies the manifests, and so also codes and inverted indexes. Null if it is not known.',
  ),
  folder: Type.String({ description: 'With links resolved.' }),
});

const StateReply = Type.Object({
  name: Type.String(),
  generation: orNull(Type.String(), 'Generation that answers.'),
  folder_at_start: orNull(Type.String(), 'The folder that a restart opens.'),
  opened: Type.Array(OpenedIndex, {
    description: 'The indexes that were opened since the start, the current one last.',
  }),
  next: Type.Object(
    {
      generation: Type.Union([Type.String(), Type.Null()]),
      snapshot: Type.Union([Type.String(), Type.Null()]),
      folder: Type.String({ description: 'With links resolved.' }),
      problem: orNull(Type.String(), 'Why there is no index in the folder.'),
    },
    {
      description: 'What a reload with this folder would open: that of the parameter `folder`, else `folder_at_start`.',
    },
  ),
});

export const ADMIN_OPERATIONS: readonly Operation[] = [
  {
    path: '/admin/indexes/{name}',
    name: 'index-state',
    summary: 'Which folders the server has opened for an index, and what a reload would open',
    access: 'admin',
    parameters: [{ name: 'name', description: 'Name of the index.', example: 'sample' }],
    reply: StateReply,
    errors: { 501: 'The server knows no folder of the index.' },
  },
  {
    method: 'post',
    path: '/admin/indexes/{name}/reload',
    name: 'reload',
    summary: 'Reloads an index and its query encoder from disk, without losing a request',
    access: 'admin',
    parameters: [{ name: 'name', description: 'Name of the index.', example: 'sample' }],
    request: { schema: ReloadRequest, required: false, example: { folder: '/indexes/next' } },
    reply: ReloadReply,
    errors: { 409: 'The new index could not be opened; the old one still answers.' },
  },
];

/** Routes that change a running server. */
export function registerAdmin(app: FastifyInstance, holder: IndexRegistry, metrics: ServerMetrics): void {
  app.get<{ Params: { name: string }; Querystring: { folder?: unknown } }>(
    '/admin/indexes/:name',
    { config: { access: 'admin' } },
    async (request): Promise<Static<typeof StateReply>> => {
      const slot = holder.slot(request.params.name);
      const { folder } = request.query;
      if (folder !== undefined && (typeof folder !== 'string' || folder.length > MAX_PATH_CHARACTERS)) {
        throw new RequestError('INVALID_REQUEST', 'The parameter folder must be one path.', [
          { type: 'string_type', loc: ['query', 'folder'], msg: 'Input should be one path' },
        ]);
      }
      refuseNul({ folder: folder ?? null });
      return stateOf(slot, folder);
    },
  );
  app.route<{ Params: { name: string } }>({
    method: 'POST',
    url: RELOAD_ROUTE,
    config: { access: 'admin' },
    onRequest: async (request) => requireJsonMediaType(request),
    handler: async (request): Promise<Static<typeof ReloadReply>> => {
      holder.requireReady();
      const slot = holder.slot(request.params.name);
      const target = readTarget(request);
      return reload(slot, target, request, metrics);
    },
  });
}

async function stateOf(slot: IndexSlot, folder: string | undefined): Promise<Static<typeof StateReply>> {
  const { target } = slot.requireFolder();
  const place = folder ?? slot.folderAtStart ?? target.folder;
  const real = await realpath(place).catch(() => place);
  const next = await folderSnapshot(real).then(
    ({ id, manifest }) => ({ generation: manifest.generation, snapshot: id, problem: null }),
    (error: unknown) => ({ generation: null, snapshot: null, problem: asTrawlError(error).message }),
  );
  return {
    name: slot.name,
    generation: slot.retriever?.info.generation ?? null,
    folder_at_start: slot.folderAtStart ?? null,
    opened: [...slot.opened],
    next: { ...next, folder: real },
  };
}

function readTarget({ body }: FastifyRequest): Partial<IndexTarget> {
  const empty = !(body instanceof Uint8Array) || body.length === 0;
  const { folder, model } = readRequest(ReloadRequest, empty ? {} : parseJsonBody(body), {
    items: 0,
    characters: MAX_PATH_CHARACTERS,
  });
  refuseNul({ folder, model });
  return defined({ folder: folder ?? undefined, model: model ?? undefined });
}

/** Refuses NUL in paths, for which Node's file functions would throw a TypeError. */
function refuseNul(paths: Readonly<Record<string, string | null>>): void {
  const issues = new Issues();
  for (const [name, path] of Object.entries(paths)) {
    if (path?.includes('\0') === true) issues.add('value_error', [name], 'A path cannot contain NUL', undefined);
  }
  issues.throwIfAny();
}

async function reload(
  slot: IndexSlot,
  target: Partial<IndexTarget>,
  request: FastifyRequest,
  metrics: ServerMetrics,
): Promise<Static<typeof ReloadReply>> {
  slot.requireFolder();
  const start = performance.now();
  const previous = slot.retriever?.info.generation ?? null;
  try {
    const { info } = await slot.load(target);
    const { generation, rows, model } = info;
    metrics.reloaded(slot.name, 'done');
    const seconds = Number(((performance.now() - start) / 1000).toFixed(3));
    request.log.info({ index: slot.name, generation, previous, rows, model: model?.name, seconds }, 'index reloaded');
    return { name: slot.name, generation, previous, rows, model: model?.name ?? null, seconds };
  } catch (error) {
    metrics.reloaded(slot.name, 'failed');
    throw reloadFailed(slot.name, asTrawlError(error));
  }
}

/** The reply has the error's code; the message, which may contain paths, is only logged. */
function reloadFailed(name: string, cause: TrawlError): TrawlError {
  const { code, message } = cause;
  // The server is stopping. The status of NOT_READY says so better than a 409, and its message has no paths.
  if (code === 'NOT_READY') return cause;
  return new TrawlError(
    'RELOAD_FAILED',
    `Index ${name} could not be reloaded: ${code}: ${ERROR_CODES[code]} The old index still answers. The server's log ` +
      'has the details under the request id.',
    { details: { index: name, reason: code, message }, cause },
  );
}
