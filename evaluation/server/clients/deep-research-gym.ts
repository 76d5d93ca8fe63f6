import type { DialectClient } from '../dialect-client.ts';
import { idText, list, member, text, textPassage } from '../reply-fields.ts';

/** DeepResearchGym: a GET request; each result is base64 of a document. */
export const deepResearchGymClient: DialectClient = {
  name: 'deep-research-gym',
  method: 'GET',
  path: '/search',
  batch: false,
  request: ([query], k) => ({ query, k }),
  lists: (reply) => [
    list(reply, 'results').map((result) => {
      const page: unknown = JSON.parse(Buffer.from(text(result), 'base64').toString('utf8'));
      return { ...textPassage(text(member(page, 'Clean-Text'))), id: idText(member(page, 'ClueWeb22-ID')) };
    }),
  ],
};
