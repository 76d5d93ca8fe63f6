import { TrawlError } from '../../base/errors.ts';
import { isLimited } from '../indexes/view-choice.ts';
import { documentId, rowOfId } from './document-id.ts';
import { ElasticsearchError, illegalArgument, indexNotFound } from './elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { elasticsearchError } from './error-format.ts';
import { JsonBody, type ObjectNode } from './json-nodes.ts';
import { itemsOf, objectOf, textOf } from './json-values.ts';
import { indexesOf, withIndexes } from './leased-indexes.ts';
import { refuseUnknownParameters } from './search-request.ts';
import { requestedIndexes } from './search-route.ts';
import { type SourceChoice, sourceChoiceFrom, sourceChoiceOf, sourceOf } from './source-filter.ts';

export const DOCUMENT_ROUTES: readonly ElasticsearchRoute[] = [
  { method: ['GET', 'HEAD'], url: '/:index/_doc/:id', handle: getDocument },
  { method: ['GET', 'HEAD'], url: '/:index/_source/:id', handle: getSource },
  { method: ['GET', 'POST'], url: '/_mget', handle: getMany },
  { method: ['GET', 'POST'], url: '/:index/_mget', handle: getMany },
];

/** Parameters that change nothing here, and those of `_source`. */
const PARAMETERS = [
  '_source',
  '_source_excludes',
  '_source_includes',
  'index',
  'preference',
  'pretty',
  'human',
  'error_trace',
  'realtime',
  'refresh',
  'routing',
];

/** A passage, and which of its changes it is. */
interface Found {
  /** The row of the corpus, or a document that was written over HTTP, as JSON text. */
  readonly document: string;
  readonly version: number;
  readonly seqNo: number;
}

interface Wanted {
  readonly index: string;
  readonly id: string;
  readonly source: SourceChoice;
}

async function getDocument(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const wanted = wantedOf(asked);
  const document = await find(asked, wanted);
  return { status: document === undefined ? 404 : 200, pieces: [documentJson(wanted, document)] };
}

async function getSource(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const wanted = wantedOf(asked);
  const document = await find(asked, wanted);
  if (document !== undefined) return { pieces: [sourceOf(document.document, wanted.source) ?? document.document] };
  const { index, id } = wanted;
  throw new ElasticsearchError(404, {
    type: 'resource_not_found_exception',
    reason: `Document not found [${index}]/[${id.slice(0, 100)}]`,
  });
}

/**
 * `{"docs": [{"_index", "_id", "_source"}]}` or `{"ids": [...]}`. An index that is missing, or that lacks a view of the request, is the
 * error of its document alone.
 */
async function getMany(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { request, body: text, parameters, routes } = asked;
  refuseUnknownParameters(parameters, PARAMETERS, request.url.split('?')[0]!);
  const body = new JsonBody(text);
  const root = objectOf(body, body.root, 'a multi-get');
  const source = sourceChoiceFrom(parameters) ?? 'all';
  const wanted: Wanted[] = [];
  for (const [name, node] of root.members) {
    const items = itemsOf(node);
    if (name === 'docs') {
      for (const item of items) wanted.push(partOf(body, objectOf(body, item, 'a document'), asked.path.index, source));
    } else if (name === 'ids') {
      const index = asked.path.index;
      if (index === undefined) throw illegalArgument('Validation Failed: 1: index is missing for doc 0;');
      for (const item of items) wanted.push({ index, id: textOf(body, item, 'an id'), source });
    } else throw body.fault(node, `unexpected token [${name.slice(0, 100)}], expected [docs] or [ids]`);
  }
  if (wanted.length === 0) throw illegalArgument('Validation Failed: 1: no documents to get;');
  const { maxHits } = routes.config;
  if (wanted.length > maxHits)
    throw illegalArgument(`The request has ${wanted.length} ids; the limit of this server is ${maxHits}`);
  const pieces: string[] = [];
  for (const one of wanted) {
    try {
      pieces.push(documentJson(one, await find(asked, one)));
    } catch (error) {
      if (!(error instanceof TrawlError && error.code === 'NOT_FOUND')) throw error;
      const { error: cause } = elasticsearchError(error, 404);
      pieces.push(JSON.stringify({ _index: one.index, _id: one.id, error: cause }));
    }
  }
  return { pieces: ['{"docs":[', ...pieces.flatMap((piece, i) => (i === 0 ? [piece] : [',', piece])), ']}'] };
}

function partOf(body: JsonBody, node: ObjectNode, ofPath: string | undefined, ofUrl: SourceChoice): Wanted {
  let index = ofPath;
  let id: string | undefined;
  let source = ofUrl;
  for (const [name, value] of node.members) {
    if (name === '_index') index = textOf(body, value, '[_index]');
    else if (name === '_id') id = textOf(body, value, '[_id]');
    else if (name === '_source') source = sourceChoiceOf(body, value);
    else if (name !== 'routing') {
      throw body.fault(value, `Unknown parameter [${name.slice(0, 100)}] of a document`);
    }
  }
  if (index === undefined) throw illegalArgument('Validation Failed: 1: index is missing for doc 0;');
  if (id === undefined) throw illegalArgument('Validation Failed: 1: id is missing for doc 0;');
  return { index, id, source };
}

function wantedOf(asked: ElasticsearchRequest): Wanted {
  const { request, path, parameters } = asked;
  refuseUnknownParameters(parameters, PARAMETERS, request.url.split('?')[0]!);
  const source = sourceChoiceFrom(parameters) ?? 'all';
  return { index: requestedIndexes(asked) ?? '', id: path.id ?? '', source };
}

/**
 * The passage with an id; undefined if the index has none. Of several the first counts. A document that was written over HTTP is found
 * before the next refresh, too, but in a view only what searches find.
 */
async function find(asked: ElasticsearchRequest, { index, id }: Wanted): Promise<Found | undefined> {
  const { request, routes } = asked;
  if (!indexesOf(routes.holder, { names: undefined }).includes(index)) throw indexNotFound(index);
  const { writable } = routes.config;
  if (writable?.definition(index) !== undefined && !isLimited(request, routes.config)) {
    const [stored] = await writable.read(index, [id]);
    return stored ? { ...stored, document: stored.source } : undefined;
  }
  const document = await passageById(asked, { index, id });
  // Every passage is in its first version.
  return document === undefined ? undefined : { document, version: 1, seqNo: 0 };
}

function passageById(
  asked: ElasticsearchRequest,
  { index, id }: Pick<Wanted, 'index' | 'id'>,
): Promise<string | undefined> {
  const { signal } = asked;
  return withIndexes(asked, [index], async ([retriever]) => {
    const row = rowOfId(id);
    const { found } = await retriever!.find({ by: 'id', keys: [id], limit: 1, signal });
    const [passage] = found[0]!;
    if (passage !== undefined || row === undefined) return passage?.document;
    // A passage with an id has no other name.
    const byRow = (await retriever!.find({ by: 'row', keys: [row], limit: 1, signal })).found[0]![0];
    return byRow !== undefined && documentId(byRow.document, byRow.row) === id ? byRow.document : undefined;
  });
}

function documentJson({ index, id, source }: Wanted, found: Found | undefined): string {
  const head = `{"_index":${JSON.stringify(index)},"_id":${JSON.stringify(id)}`;
  if (found === undefined) return `${head},"found":false}`;
  const chosen = sourceOf(found.document, source);
  const version = `"_version":${found.version},"_seq_no":${found.seqNo},"_primary_term":1`;
  return `${head},${version},"found":true${chosen === undefined ? '' : `,"_source":${chosen}`}}`;
}
