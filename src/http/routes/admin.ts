import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { asTrawlError, ERROR_CODES, type ErrorCode, TrawlError } from '../../errors.ts';
import { nullable } from '../dialects/common-fields.ts';
import { readRequest } from '../dialects/read-request.ts';
import type { IndexSlot, IndexTarget } from '../index-slot.ts';
import { parseJsonBody, requireJsonMediaType } from '../json-body.ts';
import type { Operation } from '../openapi.ts';
import type { RetrieverHolder } from '../retriever-holder.ts';
import type { ServerMetrics } from '../server-metrics.ts';

/** The longest path of Linux. */
const MAX_PATH_CHARACTERS = 4_096;

export const RELOAD_ROUTE = '/admin/indexes/:name/reload';

const ReloadRequest = Type.Object(
  {
    folder: nullable(Type.String(), 'Directory of the new index on the server; absent, the one it has.'),
    model: nullable(
      Type.String(),
      "Query encoder; absent, with a folder the one the new index's manifest remembers, or --model, else the one it has.",
    ),
  },
  { additionalProperties: false },
);

const ReloadReply = Type.Object({
  name: Type.String(),
  generation: Type.String({ description: 'Of the index that answers from now on.' }),
  previous: Type.Union([Type.String(), Type.Null()], { description: 'Generation that it replaced.' }),
  rows: Type.Integer(),
  model: Type.String(),
  seconds: Type.Number({ description: 'From the request to the swap.' }),
});

export const ADMIN_OPERATIONS: readonly Operation[] = [
  {
    method: 'post',
    path: '/admin/indexes/{name}/reload',
    name: 'reload',
    summary:
      'Opens an index anew, with its query encoder, and puts it in the place of the old without losing a request',
    access: 'admin',
    parameters: [{ name: 'name', description: 'Name of the index.', example: 'sample' }],
    request: { schema: ReloadRequest, required: false, example: { folder: '/indexes/next' } },
    reply: ReloadReply,
    errors: { 409: 'The new index could not be opened; the old one goes on.' },
  },
];

/** What steers a running server. */
export function registerAdmin(app: FastifyInstance, holder: RetrieverHolder, metrics: ServerMetrics): void {
  app.route<{ Params: { name: string } }>({
    method: 'POST',
    url: RELOAD_ROUTE,
    config: { access: 'admin' },
    onRequest: async (request, reply) => requireJsonMediaType(request, reply),
    handler: async (request, reply): Promise<Static<typeof ReloadReply>> => {
      holder.requireReady();
      const slot = holder.slot(request.params.name);
      const target = readTarget(request);
      reply.header('cache-control', 'no-store');
      return reload(slot, target, request, metrics);
    },
  });
}

function readTarget({ body }: FastifyRequest): Partial<IndexTarget> {
  const empty = !(body instanceof Uint8Array) || body.length === 0;
  const { folder, model } = readRequest(ReloadRequest, empty ? {} : parseJsonBody(body), {
    items: 0,
    characters: MAX_PATH_CHARACTERS,
  });
  return { ...(folder === null ? {} : { folder }), ...(model === null ? {} : { model }) };
}

async function reload(
  slot: IndexSlot,
  target: Partial<IndexTarget>,
  request: FastifyRequest,
  metrics: ServerMetrics,
): Promise<Static<typeof ReloadReply>> {
  const start = performance.now();
  const previous = slot.retriever?.info.generation ?? null;
  try {
    const { info } = await slot.load(target);
    const { generation, rows, model } = info;
    metrics.reloaded(slot.name, 'done');
    const seconds = Number(((performance.now() - start) / 1000).toFixed(3));
    request.log.info({ index: slot.name, generation, previous, rows, model: model.name, seconds }, 'index reloaded');
    return { name: slot.name, generation, previous, rows, model: model.name, seconds };
  } catch (error) {
    metrics.reloaded(slot.name, 'failed');
    throw reloadFailed(slot.name, asTrawlError(error));
  }
}

/** The reply tells the kind of failure; what it names of the machine stays in the log. */
function reloadFailed(name: string, cause: TrawlError): TrawlError {
  if (cause.code === 'NOT_READY' || cause.code === 'NOT_SUPPORTED') return cause;
  const code: ErrorCode = cause.code;
  return new TrawlError(
    'RELOAD_FAILED',
    `The index ${name} could not be opened anew: ${code}: ${ERROR_CODES[code]} The old one goes on answering; the ` +
      "server's log has the details under the request id.",
    { details: { index: name, reason: code, message: cause.message }, cause },
  );
}
