import type { FastifyInstance } from 'fastify';
import { Type } from 'typebox';
import { TrawlError } from '../../base/errors.ts';
import { withContents } from '../../index/passages/contents.ts';
import type { Operation } from '../api-docs/openapi.ts';
import { clientSignal } from '../connections/client-signal.ts';
import { Document } from '../dialects/parts/common-fields.ts';
import { openingOf } from '../documents/whole-document.ts';
import type { IndexRegistry } from '../indexes/index-registry.ts';
import { withRetriever } from '../indexes/view-choice.ts';
import { furtherRows, MAX_SAME_ID } from '../native-search/named-passages.ts';
import { recordOpenings } from '../record-search.ts';
import type { ServerConfig } from '../server-config.ts';

export const PASSAGE_ROUTE = '/v1/passages/:id';

export const PassageReply = Type.Object({
  index: Type.Optional(Type.String({ description: 'In a group of indexes: the index of the passage.' })),
  row: Type.Integer({ description: "The passage's row in the index." }),
  document: Document,
  sameId: Type.Optional(Type.Array(Type.Integer(), { description: 'Further rows with the same id, if any.' })),
});

export const PASSAGE_OPERATION: Operation = {
  path: '/v1/passages/{id}',
  name: 'passage',
  summary: 'A passage by its id',
  access: 'read',
  parameters: [{ name: 'id', description: 'The id as text, percent-encoded (a slash is %2F).', example: 's-0001' }],
  reply: PassageReply,
};

export function registerPassage(app: FastifyInstance, holder: IndexRegistry, config: ServerConfig): void {
  app.get<{ Params: { id: string } }>(PASSAGE_ROUTE, async (request, reply) => {
    const { id } = request.params;
    const signal = clientSignal(request.raw, reply.raw);
    const passages = await withRetriever(request, holder, config, async (retriever) => {
      const { found } = await retriever.find({ by: 'id', keys: [id], limit: MAX_SAME_ID, signal });
      const opening = openingOf(id, found[0]!.slice(0, 1));
      recordOpenings([opening], { request, dialect: 'passage' }, retriever.info, config.record);
      return found[0]!;
    });
    const [first] = passages;
    if (first === undefined) {
      throw new TrawlError('NOT_FOUND', `Passage ${JSON.stringify(id.slice(0, 100))} not found.`);
    }
    const { row, source, document } = first;
    const place = JSON.stringify({ index: source?.index, row: source?.row ?? row }).slice(0, -1);
    const rows = furtherRows(passages);
    const sameId = rows.length === 0 ? '' : `,"sameId":${JSON.stringify(rows)}`;
    return reply
      .header('content-type', 'application/json; charset=utf-8')
      .send(`${place},"document":${withContents(document)}${sameId}}`);
  });
}
