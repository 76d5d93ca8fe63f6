import { TrawlError } from '../../../base/errors.ts';
import type { WriteItem } from '../../../index/document-store/operations.ts';
import type { RequestedOperation } from '../../../index/document-store/parse-bulk.ts';
import { elapsedMs } from '../../metrics/server-timing.ts';
import { illegalArgument } from '../elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from '../elasticsearch-route.ts';
import { refuseUnknownParameters } from '../search-request.ts';
import { definitionForWrite, failureError, requireContentType, storing, writableOf } from './write-access.ts';
import { bulkItem, placeOf, type ReplyFacts, statusOf, writtenObject } from './write-reply.ts';

export const WRITE_ROUTES: readonly ElasticsearchRoute[] = [
  { method: ['POST', 'PUT'], url: '/_bulk', handle: bulk },
  { method: ['POST', 'PUT'], url: '/:index/_bulk', handle: bulk },
  { method: 'POST', url: '/:index/_doc', handle: (asked) => writeOne(asked, actionOf(asked)) },
  { method: ['POST', 'PUT'], url: '/:index/_doc/:id', handle: (asked) => writeOne(asked, actionOf(asked)) },
  { method: ['POST', 'PUT'], url: '/:index/_create/:id', handle: (asked) => writeOne(asked, 'create') },
  { method: 'DELETE', url: '/:index/_doc/:id', handle: (asked) => writeOne(asked, 'delete') },
  ...['/:index/_update/:id', '/:index/_update_by_query', '/:index/_delete_by_query'].map((url) => ({
    method: 'POST' as const,
    url,
    handle: refuseUpdate,
  })),
];

/** Parameters that change nothing here, and `refresh`. */
const PARAMETERS = [
  'error_trace',
  'human',
  'include_source_on_error',
  'index',
  'op_type',
  'pretty',
  'refresh',
  'timeout',
  'wait_for_active_shards',
];
/** Parameters that may have these values only. */
const NEUTRAL: Readonly<Record<string, readonly string[]>> = {
  list_executed_pipelines: ['false'],
  pipeline: ['_none'],
  require_alias: ['false'],
  require_data_stream: ['false'],
  version_type: ['internal'],
};

type Refresh = 'no' | 'wait' | 'forced';

async function bulk(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, body, path } = asked;
  writableOf(asked);
  requireContentType(request, body);
  const refresh = readParameters(asked);
  const items = await write(asked, body, path.index, refresh);
  const facts = factsOf(asked);
  const texts = items.map((item) => JSON.stringify(bulkItem(item, facts(item.index), refresh === 'forced')));
  const errors = items.some(({ outcome }) => 'failure' in outcome);
  const head = `{"errors":${String(errors)},"took":${Math.round(elapsedMs(request))},"items":[`;
  return { pieces: [head, ...texts.flatMap((text, i) => (i === 0 ? [text] : [',', text])), ']}'] };
}

async function writeOne(
  asked: ElasticsearchRequest,
  action: RequestedOperation['action'],
): Promise<ElasticsearchReply> {
  const { request, body, path } = asked;
  writableOf(asked);
  requireContentType(request, body);
  const refresh = readParameters(asked);
  if (action !== 'delete' && body.trim() === '') {
    throw failureError({ status: 400, type: 'parse_exception', reason: 'request body is required' });
  }
  const operation = {
    action,
    index: path.index ?? '',
    id: path.id,
    ...(action === 'delete' ? {} : { source: body }),
  };
  const [item] = await write(asked, [operation], undefined, refresh);
  const { outcome } = item!;
  const facts = factsOf(asked)(item!.index);
  if ('failure' in outcome) throw failureError(outcome.failure, placeOf(item!, facts));
  const text = JSON.stringify(writtenObject(item!, outcome, facts, refresh === 'forced'));
  return { status: statusOf(outcome), pieces: [text] };
}

function refuseUpdate(asked: ElasticsearchRequest): never {
  writableOf(asked);
  throw illegalArgument(
    'Updates and deletions by query are not supported. Send whole documents, and delete documents by their ids.',
  );
}

async function write(
  asked: ElasticsearchRequest,
  body: string | readonly RequestedOperation[],
  index: string | undefined,
  refresh: Refresh,
): Promise<readonly WriteItem[]> {
  const writable = writableOf(asked);
  const items = await storing('Nothing of the request is stored.', () =>
    writable.write(body, index, definitionForWrite),
  );
  if ('reason' in items) throw failureError(items);
  if (refresh === 'no') return items;
  const written = new Set(items.flatMap((item) => ('failure' in item.outcome ? [] : [item.index])));
  await storing('The documents are stored, but searches do not find them yet.', async () => {
    for (const name of written) {
      await writable.refresh(name).catch((error: unknown) => {
        // Another client has removed the index.
        if (!(error instanceof TrawlError) || error.code !== 'NOT_FOUND') throw error;
      });
    }
  });
  return items;
}

function factsOf({ routes }: ElasticsearchRequest): (index: string) => ReplyFacts {
  return (index) => routes.config.writable?.definition(index);
}

function actionOf({ parameters: { op_type: type } }: ElasticsearchRequest): 'index' | 'create' {
  if (type === undefined || type === 'index') return 'index';
  if (type === 'create') return 'create';
  throw illegalArgument(`opType must be 'create' or 'index', found: [${type.slice(0, 100)}]`);
}

function readParameters({ parameters, request }: ElasticsearchRequest): Refresh {
  for (const [name, values] of Object.entries(NEUTRAL)) {
    const value = parameters[name];
    if (value !== undefined && !values.includes(value)) {
      throw illegalArgument(`The parameter [${name}] can only be [${values[0]}] here`);
    }
  }
  refuseUnknownParameters(parameters, [...PARAMETERS, ...Object.keys(NEUTRAL)], request.url.split('?')[0]!);
  const { refresh } = parameters;
  if (refresh === undefined || refresh === 'false') return 'no';
  if (refresh === '' || refresh === 'true') return 'forced';
  if (refresh === 'wait_for') return 'wait';
  throw illegalArgument(`Unknown value for refresh: [${refresh.slice(0, 100)}].`);
}
