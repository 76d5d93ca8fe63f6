import type { DialectClient } from '../dialect-client.ts';
import { documentHit, list } from '../reply-fields.ts';

/** Search-R1's server, and the projects that copied it. */
export const searchR1Client: DialectClient = {
  name: 'search-r1',
  path: '/retrieve',
  batch: true,
  request: (queries, k) => ({ queries, topk: k, return_scores: true }),
  lists: (reply) => list(reply, 'result').map((hits) => list(hits).map(documentHit)),
};

/** Servers with Search-R1's requests and replies under another name. */
export const stepSearchClient: DialectClient = { ...searchR1Client, name: 'stepsearch' };
export const asearcherClient: DialectClient = { ...searchR1Client, name: 'asearcher' };
export const agentLightningClient: DialectClient = { ...searchR1Client, name: 'agent-lightning' };
