import { TrawlError } from '../../base/errors.ts';
import { separated } from '../dialects/parts/search-plan.ts';
import { isLimited } from '../indexes/view-choice.ts';
import { ElasticsearchError, errorObject, illegalArgument, indexNotFound } from './elasticsearch-error.ts';
import type { ElasticsearchReply, ElasticsearchRequest, ElasticsearchRoute } from './elasticsearch-route.ts';
import { type JsonNode, parseJson } from './json-node.ts';
import { requestedIndexes, withIndexes } from './leased-indexes.ts';
import { documentId } from './search-reply.ts';
import { COMMON_PARAMETERS, refuseUnknownParameters } from './search-request.ts';
import {
  parseSourceChoice,
  readSourceChoice,
  SOURCE_PARAMETERS,
  type SourceChoice,
  sourceJson,
} from './source-filter.ts';

export const DOCUMENT_ROUTES: readonly ElasticsearchRoute[] = [
  { method: ['GET', 'HEAD'], url: '/:index/_doc/:id', handle: getDocument },
  { method: ['GET', 'HEAD'], url: '/:index/_source/:id', handle: getSource },
  { method: ['GET', 'POST'], url: '/_mget', handle: getMany },
  { method: ['GET', 'POST'], url: '/:index/_mget', handle: getMany },
];

const PARAMETERS = [...COMMON_PARAMETERS, ...SOURCE_PARAMETERS, 'preference', 'realtime', 'refresh', 'routing'];

interface Wanted {
  readonly index: string;
  readonly id: string;
  readonly source: SourceChoice;
}

/** A passage, and which of its changes it is. */
interface Found {
  /** The row of the corpus, or a document that was written over HTTP, as JSON text. */
  readonly document: string;
  readonly version: number;
  readonly seqNo: number;
}

async function getDocument(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const wanted = wantedDocument(asked);
  const found = await findDocument(asked, wanted);
  return { status: found === undefined ? 404 : 200, pieces: [documentJson(wanted, found)] };
}

async function getSource(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const wanted = wantedDocument(asked);
  const found = await findDocument(asked, wanted);
  if (found !== undefined) return { pieces: [sourceJson(found.document, wanted.source) ?? found.document] };
  throw new ElasticsearchError(404, {
    type: 'resource_not_found_exception',
    reason: `Document not found [${wanted.index}]/[${wanted.id.slice(0, 100)}]`,
  });
}

function wantedDocument(asked: ElasticsearchRequest): Wanted {
  const { path, parameters } = asked;
  refuseUnknownParameters(asked, PARAMETERS);
  const source = parseSourceChoice(parameters) ?? 'all';
  return { index: requestedIndexes(asked).names ?? '', id: path.id ?? '', source };
}

/**
 * `{"docs": [{"_index", "_id", "_source"}]}` or `{"ids": [...]}`. An index that is missing, or that lacks a view of the request, is the
 * error of its document alone.
 */
async function getMany(asked: ElasticsearchRequest): Promise<ElasticsearchReply> {
  const { parameters, routes } = asked;
  refuseUnknownParameters(asked, PARAMETERS);
  const wanted = readMany(asked, parseSourceChoice(parameters) ?? 'all');
  if (wanted.length === 0) throw illegalArgument('Validation Failed: 1: no documents to get;');
  const { maxHits } = routes.config;
  if (wanted.length > maxHits)
    throw illegalArgument(`The request has ${wanted.length} ids; the limit of this server is ${maxHits}`);
  const documents: string[] = [];
  for (const one of wanted) {
    try {
      documents.push(documentJson(one, await findDocument(asked, one)));
    } catch (error) {
      if (!(error instanceof TrawlError && error.code === 'NOT_FOUND')) throw error;
      documents.push(JSON.stringify({ _index: one.index, _id: one.id, error: errorObject(error, 404).error }));
    }
  }
  return { pieces: ['{"docs":[', ...separated(documents, (document) => document), ']}'] };
}

function readMany({ body, path: { index } }: ElasticsearchRequest, source: SourceChoice): Wanted[] {
  return [...parseJson(body).object('a multi-get')].flatMap(([name, node]) => {
    if (name === 'docs') return node.items.map((item) => readWanted(item, index, source));
    if (name !== 'ids') throw node.fault(`unexpected token [${name.slice(0, 100)}], expected [docs] or [ids]`);
    if (index === undefined) throw illegalArgument('Validation Failed: 1: index is missing for doc 0;');
    return node.items.map((item) => ({ index, id: item.text('an id'), source }));
  });
}

function readWanted(node: JsonNode, indexInPath: string | undefined, sourceInUrl: SourceChoice): Wanted {
  let index = indexInPath;
  let id: string | undefined;
  let source = sourceInUrl;
  for (const [name, value] of node.object('a document')) {
    if (name === '_index') index = value.text('[_index]');
    else if (name === '_id') id = value.text('[_id]');
    else if (name === '_source') source = readSourceChoice(value);
    else if (name !== 'routing') throw value.fault(`Unknown parameter [${name.slice(0, 100)}] of a document`);
  }
  if (index === undefined) throw illegalArgument('Validation Failed: 1: index is missing for doc 0;');
  if (id === undefined) throw illegalArgument('Validation Failed: 1: id is missing for doc 0;');
  return { index, id, source };
}

/**
 * The passage with an id; undefined if the index has none. Of several the first counts. A document that was written over HTTP is found
 * before the next refresh, too, but in a view only what searches find.
 */
async function findDocument(asked: ElasticsearchRequest, { index, id }: Wanted): Promise<Found | undefined> {
  const { request, routes, signal } = asked;
  if (!routes.holder.slots.some(({ name }) => name === index)) throw indexNotFound(index);
  const { writable } = routes.config;
  if (writable?.definition(index) !== undefined && !isLimited(request, routes.config)) {
    const [stored] = await writable.read(index, [id]);
    return stored ? { ...stored, document: stored.source } : undefined;
  }
  return withIndexes(asked, [index], async ([retriever]) => {
    const byId = await retriever!.find({ by: 'id', keys: [id], limit: 1, signal });
    let [passage] = byId.found[0]!;
    // As `documentId` names a passage without an id.
    const row = /^row (\d{1,15})$/.exec(id)?.[1];
    if (passage === undefined && row !== undefined) {
      const byRow = await retriever!.find({ by: 'row', keys: [row], limit: 1, signal });
      passage = byRow.found[0]!.find((each) => documentId(each.document, each.row) === id);
    }
    // Every passage is in its first version.
    return passage && { document: passage.document, version: 1, seqNo: 0 };
  });
}

function documentJson({ index, id, source }: Wanted, found: Found | undefined): string {
  const head = `{"_index":${JSON.stringify(index)},"_id":${JSON.stringify(id)}`;
  if (found === undefined) return `${head},"found":false}`;
  const chosen = sourceJson(found.document, source);
  const version = `"_version":${found.version},"_seq_no":${found.seqNo},"_primary_term":1`;
  return `${head},${version},"found":true${chosen === undefined ? '' : `,"_source":${chosen}`}}`;
}
